"""Whether the changes of a query belong to the rows that a sink's primary key tells apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot import exp
from streamcore.table import ROW_KIND

from ..cursor import SqlText
from ..errors import SqlError
from ..rewrite import Rewritten
from .changelog import changing
from .sources import Scan

_WRITE = "Declare the PRIMARY KEY of '{sink}' on what tells the query's rows apart: {keys}."


def check_key(
    rewritten: Rewritten,
    scans: tuple[Scan, ...],
    positions: Sequence[int | None],
    sink: str,
    query: SqlText,
) -> None:
    """Refuse changes whose key is not the sink's, as far as the query shows it.

    `positions` are the columns of the query that fill the sink's primary key. A sink that keeps
    the latest row of each key would mix up, or never delete, rows that have other keys.
    """
    tree: Any = sqlglot.parse_one(rewritten.sql, read="spark")
    if not isinstance(tree, exp.Select) or None in positions:
        return
    chosen = [each for each in tree.expressions if each.alias_or_name != ROW_KIND]
    if any(each.is_star for each in chosen):
        return
    filling = [chosen[at].unalias() for at in positions if at is not None and at < len(chosen)]
    if len(filling) != len(positions):
        return
    if rewritten.aggregations:
        _check_groups(tree, chosen, filling, sink, query)
    else:
        _check_rows(tree, filling, changing(rewritten, scans), sink, query)


def _check_groups(
    tree: exp.Select, chosen: Sequence[Any], filling: Sequence[Any], sink: str, query: SqlText
) -> None:
    keys = _grouped_by(tree, chosen)
    if keys is None:
        return
    names = [key.alias_or_name or key.sql(dialect="spark") for key in keys]
    hint = _hint(sink, names)
    for each in filling:
        if each.find(exp.AggFunc):
            trouble = (
                f"the primary key of '{sink}' is filled with {each.sql(dialect='spark')}, which "
                "changes with every row: rows written before could not be found again"
            )
            raise SqlError(trouble, query.place, hint)
    used = {column.name for each in filling for column in each.find_all(exp.Column)}
    for key, name in zip(keys, names, strict=True):
        parts = {column.name for column in key.find_all(exp.Column)}
        if parts and not parts & used:
            raise _left_out(name, names, sink, query)


def _check_rows(
    tree: exp.Select,
    filling: Sequence[Any],
    changed: Mapping[str, Scan],
    sink: str,
    query: SqlText,
) -> None:
    """Compare with the primary key of the one changing table that is read."""
    if len(changed) != 1:
        return
    ((view, read),) = changed.items()
    keys = read.bound.table.primary_key
    columns = [column for each in filling for column in each.find_all(exp.Column)]
    origins = [_origins(column, tree) for column in columns]
    if not keys or None in origins:
        return
    used = {name for found in origins for source, name in found or () if source == view}
    for name in keys:
        if name not in used:
            raise _left_out(name, keys, sink, query)
    wanted = {(view, name) for name in keys}
    other = {
        column.name
        for column, found in zip(columns, origins, strict=True)
        if not set(found or ()) <= wanted
    }
    if other:
        trouble = (
            f"rows of this query are told apart by {', '.join(keys)}, but the primary key of "
            f"'{sink}' is filled with {', '.join(sorted(other))}: an update of it would leave the "
            "old row behind"
        )
        raise SqlError(trouble, query.place, _hint(sink, keys))


def _left_out(name: str, keys: Sequence[str], sink: str, query: SqlText) -> SqlError:
    trouble = (
        f"rows of this query are told apart by {', '.join(keys)}, but the primary key of '{sink}' "
        f"leaves out {name}: its rows would replace and delete each other"
    )
    return SqlError(trouble, query.place, _hint(sink, keys))


def _hint(sink: str, keys: Sequence[str]) -> str:
    return _WRITE.format(sink=sink, keys=", ".join(keys) or "nothing")


def _grouped_by(tree: exp.Select, chosen: Sequence[Any]) -> list[Any] | None:
    """What the outermost aggregation groups by; None when it is further down."""
    group = tree.args.get("group")
    if group is None:
        return [] if any(tree.find_all(exp.AggFunc)) else None
    named = {each.alias: each.this for each in chosen if isinstance(each, exp.Alias)}
    found = []
    for each in group.expressions:
        if isinstance(each, exp.Literal) and not each.is_string:
            at = int(each.this) - 1
            found.append(chosen[at].unalias() if at < len(chosen) else each)
        elif isinstance(each, exp.Column) and not each.table:
            found.append(named.get(each.name, each))
        else:
            found.append(each)
    return found


def _origins(column: exp.Column, select: exp.Select) -> list[tuple[str, str]] | None:
    """The views and columns that a column is made of; None if the query does not show it."""
    sources = [select.args["from_"].this] if select.args.get("from_") else []
    sources += [join.this for join in select.args.get("joins") or []]
    if column.table:
        sources = [each for each in sources if each.alias_or_name == column.table]
    if len(sources) != 1 or select.args.get("laterals"):
        return None
    source = sources[0]
    if isinstance(source, exp.Table):
        return [(source.name, column.name)]
    inner = source.this if isinstance(source, exp.Subquery) else None
    if not isinstance(inner, exp.Select):
        return None
    for each in inner.expressions:
        if each.alias_or_name == column.name and not each.is_star:
            parts = [_origins(part, inner) for part in each.find_all(exp.Column)]
            return None if None in parts else [one for part in parts for one in part or ()]
    if any(isinstance(each, exp.Star) for each in inner.expressions):
        return _origins(exp.column(column.name), inner)
    return None
