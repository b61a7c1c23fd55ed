"""Columns that nothing in a query could give, told before Spark is asked.

A name is held against every column and alias of the query, wherever it stands: what is told here
is wrong in any case. The rest, such as a name that only another subquery has, is left to Spark.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from streamcore.table import ROW_KIND

from ..errors import SqlError, did_you_mean
from ..statements import CreateTable
from .context import Context, alias_of, output_name

_ALWAYS = frozenset({"window_start", "window_end", "window_time", ROW_KIND})
# Written like columns: units of time, and functions that Spark calls without parentheses.
_WORDS = """
MILLENNIUM CENTURY DECADE YEAR ISOYEAR QUARTER MONTH WEEK DAY DOW ISODOW DOY DAYOFWEEK DAYOFYEAR
HOUR MINUTE SECOND MILLISECOND MICROSECOND NANOSECOND EPOCH
CURRENT_USER SESSION_USER USER CURRENT_CATALOG CURRENT_DATABASE CURRENT_SCHEMA UNKNOWN ALL
"""
_NO_COLUMNS = frozenset(_WORDS.lower().split())
# What these give is named by nobody, or only when they run, unless an alias names it.
_NAMELESS = (exp.Pivot, exp.Lateral, exp.Unnest, exp.Values)

Sources = dict[str, list[str] | None]
"""What stands in FROM by its name, with its columns where that name means tables alone."""


def refuse_unknown_columns(tree: exp.Expr, context: Context) -> None:
    """Raise one error with every column that no table, view or subquery has."""
    declared: dict[str, list[str]] = {}
    for view, ref in context.tables.items():
        table = context.lookup(ref.name)
        if not isinstance(table, CreateTable) or not table.columns:
            return
        declared[view] = [column.name for column in table.columns]
    sources = _sources(tree, declared)
    if not declared or _gives_unnamed(tree, sources):
        return
    if problems := list(_unknown(tree, declared, sources, context)):
        raise SqlError.together(problems)


def _unknown(
    tree: exp.Expr, declared: dict[str, list[str]], sources: Sources, context: Context
) -> Iterator[SqlError]:
    columns = [name for names in declared.values() for name in names]
    columns += [*_given(tree), *(each.alias for each in tree.find_all(exp.Alias))]
    others = {*sources, *(part for ref in context.tables.values() for part in ref.name)}
    known = _lower({*columns, *others}) | _ALWAYS | _NO_COLUMNS
    told: set[str] = set()
    for column in tree.find_all(exp.Column):
        if column.is_star or isinstance(column.parent, exp.Kwarg):
            continue
        first, *rest = column.parts
        own: list[str] | None = None
        suspect = first  # the fields of a row are left to Spark
        if rest and first.name.lower() in sources:
            own, suspect = sources[first.name.lower()], rest[0]
        there = known if own is None else _lower(own) | _ALWAYS
        if suspect.name.lower() in there or column.sql() in told:
            continue
        told.add(column.sql())
        candidates = list(dict.fromkeys(columns if own is None else own))
        hint = did_you_mean(suspect.name, candidates) or f"Columns: {', '.join(candidates)}."
        yield SqlError(f"no column called '{suspect.name}'", context.place(suspect), hint)


def _lower(names: set[str] | list[str]) -> set[str]:
    return {name.lower() for name in names}


def _sources(tree: exp.Expr, declared: dict[str, list[str]]) -> Sources:
    found: Sources = {}
    for node in tree.find_all(exp.Table, exp.Subquery, exp.CTE, *_NAMELESS):
        name, alias = alias_of(node).lower(), node.args.get("alias")
        renamed = alias is not None and alias.args.get("columns")
        columns = None if renamed else declared.get(node.meta.get("view", ""))
        before = found.get(name, [])
        found[name] = None if before is None or columns is None else [*before, *columns]
    return found


def _given(tree: exp.Expr) -> Iterator[str]:
    """Names that are given to columns from outside, and those of a function's own arguments."""
    for alias in tree.find_all(exp.TableAlias):
        yield from (column.name for column in alias.args.get("columns") or ())
    for unnest in tree.find_all(exp.Unnest):
        if isinstance(unnest.args.get("offset"), exp.Identifier):
            yield unnest.args["offset"].name
    for function in tree.find_all(exp.Lambda):
        yield from (argument.name for argument in function.expressions)


def _gives_unnamed(tree: exp.Expr, sources: Sources) -> bool:
    """Whether there are columns whose names only Spark knows."""
    for node in tree.find_all(*_NAMELESS):
        alias = node.args.get("alias")
        if not (alias and alias.args.get("columns")):
            return True
    for star in tree.find_all(exp.Column):
        if star.is_star and star.parts[0].name.lower() not in sources:
            return True  # the fields of a row
    inner = [select for select in tree.find_all(exp.Select) if select.parent is not tree]
    projections = (each for select in inner for each in select.expressions)
    return any(not each.is_star and not output_name(each) for each in projections)
