"""Aggregates over rows that change: each row counts by its sign, so that a row can be taken back.

A row that was inserted or updated to counts as one, a row that was deleted or updated from as
minus one. COUNT, SUM and AVG follow from that; what does not is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp, parse_one
from streamcore.table import ROW_KIND

from ..cursor import SqlText
from ..errors import SqlError

_BACK = f"`{ROW_KIND}` IN ('-U', '-D')"
_SIGN = f"IF({_BACK}, -1, 1)"


def aggregate_by_sign(select: exp.Select, query: SqlText) -> None:
    """Rewrite the aggregates of a SELECT in place, and give its rows a kind.

    A group whose last row is gone, or that no longer meets HAVING, is deleted.
    """
    _check_known(select, query)
    for found in list(select.find_all(exp.AggFunc)):
        if found.find_ancestor(exp.Select) is select:
            clause = found.parent if isinstance(found.parent, exp.Filter) else None
            (clause or found).replace(_signed(found, clause, query))
    delete_groups(select, *([f"SUM({_SIGN}) = 0"] if select.args.get("group") else []))


def delete_groups(select: exp.Select, *gone: str) -> None:
    """Give each group its kind: deleted if any of these is true of it, or if HAVING is not."""
    having = select.args.get("having")
    if having is not None:
        gone += (f"NOT COALESCE({having.this.sql(dialect='spark')}, FALSE)",)
        select.set("having", None)
    kind = f"IF({' OR '.join(gone)}, '-D', '+U')" if gone else "'+U'"
    select.select(_parsed(f"{kind} AS `{ROW_KIND}`"), copy=False)


def filter_by_kind(select: exp.Select) -> None:
    """Carry kinds through a SELECT over aggregates; a group that meets WHERE no more is deleted."""
    where = select.args.get("where")
    kind = f"`{ROW_KIND}`"
    if where is not None:
        kind = f"IF({_met(where)}, {kind}, '-D')"
        select.set("where", None)
    _with_kind(select, kind)


def keep_kind(select: exp.Select) -> None:
    """Carry kinds through a SELECT whose rows each stay one row."""
    _with_kind(select, f"`{ROW_KIND}`")


def delete_what_is_left_out(select: exp.Select) -> None:
    """Carry kinds through a SELECT into a table that keeps the latest row of each key.

    A row that meets WHERE no more, or finds nothing to join, is deleted. Deletes always pass: they
    may have their key alone, which meets and finds nothing.
    """
    joins, where = select.args.get("joins") or [], select.args.get("where")
    inner = [join for join in joins if not join.side]
    if where is not None and len(joins) == len(inner) == 1 and not joins[0].args.get("using"):
        # Of several rows that are found, those that meet the condition must not be deleted.
        on = joins[0].args.get("on")
        joins[0].set("on", exp.and_(on, where.this) if on is not None else where.this)
        select.set("where", None)
        where = None
    met = [_met(where)] if where is not None else []
    found: dict[str, str] = {}
    for at, join in enumerate(inner, start=1):
        found[join.this.alias_or_name or str(at)] = mark = f"_found_{at}"
        _find(join, mark)
        met.append(f"COALESCE(`{mark}`, FALSE)")
    kind = f"`{ROW_KIND}`"
    if met:
        both = " AND ".join(met)
        kept = _parsed(f"({both}) OR {kind} IN ('+U', '-D')")
        select.set("where", exp.Where(this=kept))
        kind = f"IF({both}, {kind}, '-D')"
    _with_kind(select, kind, found)


def _find(join: exp.Join, mark: str) -> None:
    """Let a join keep rows that find nothing, and mark those that do."""
    source = join.this
    marked = exp.select("*", _parsed(f"TRUE AS `{mark}`")).from_(source.copy())
    alias = exp.TableAlias(this=exp.to_identifier(source.alias_or_name, quoted=True))
    join.set("this", exp.Subquery(this=marked, alias=alias if source.alias_or_name else None))
    join.set("side", "LEFT")
    join.set("kind", None)
    if not join.args.get("using") and join.args.get("on") is None:
        join.set("on", exp.true())


def _met(where: exp.Where) -> str:
    return f"COALESCE({where.this.sql(dialect='spark')}, FALSE)"


def _with_kind(select: exp.Select, kind: str, found: Mapping[str, str] | None = None) -> None:
    """Put the kind last; `found` are the marks of joins, which stars must not show."""
    marks = found or {}
    rows = select.args["from_"].this.alias_or_name
    joined = {join.this.alias_or_name for join in select.args.get("joins") or []}
    for star in [each for each in select.expressions if each.is_star]:
        qualifier = star.table if isinstance(star, exp.Column) else ""
        if qualifier and qualifier != rows and qualifier not in joined:
            continue  # the fields of a struct, which has no kind
        hidden = [ROW_KIND, *marks.values()]
        if qualifier:
            hidden = [marks.get(qualifier, "")] if qualifier in joined else [ROW_KIND]
        names = ", ".join(f"`{name}`" for name in hidden if name)
        text = f"`{qualifier}`.*" if qualifier else "*"
        text += f" EXCEPT ({names})" if names else ""
        star.replace(_parsed(f"SELECT {text}").expressions[0])
    named = kind if kind == f"`{ROW_KIND}`" else f"{kind} AS `{ROW_KIND}`"
    select.select(_parsed(named), copy=False)


def _check_known(select: exp.Select, query: SqlText) -> None:
    """Refuse functions that only Spark knows to be aggregates: they take columns of many rows."""
    group = select.args.get("group")
    keys = [*group.expressions] if group else []
    grouped = {column.name for key in keys for column in key.find_all(exp.Column)}
    places = {str(key.this) for key in keys if isinstance(key, exp.Literal)}
    for place, each in enumerate(select.expressions, start=1):
        if each.alias_or_name in grouped or str(place) in places:
            continue
        for call in each.find_all(exp.Anonymous):
            columns = call.find_all(exp.Column)
            if any(c.name not in grouped and not c.find_ancestor(exp.AggFunc) for c in columns):
                raise _cannot(call.sql(dialect="spark"), query)


def _signed(found: exp.AggFunc, clause: exp.Filter | None, query: SqlText) -> exp.Expr:
    argument = found.this
    by_sign = isinstance(found, exp.Count | exp.Sum | exp.Avg)
    if not by_sign or isinstance(argument, exp.Distinct) or found.args.get("expressions"):
        raise _cannot(_written(found), query)
    value = argument.sql(dialect="spark")
    if isinstance(argument, exp.Star | exp.Literal) and isinstance(found, exp.Count):
        value = "1"
    if clause is not None:
        condition = clause.expression.this.sql(dialect="spark")
        value = f"IF({condition}, {value}, NULL)"
    rows = f"SUM(IF({value} IS NULL, 0, {_SIGN}))" if value != "1" else f"SUM({_SIGN})"
    if isinstance(found, exp.Count):
        return _parsed(f"COALESCE({rows}, 0)")
    # Negation keeps the type, and with it the digits of a long DECIMAL; times -1 would not.
    total = f"SUM(IF({_BACK}, -({value}), {value}))"
    if isinstance(found, exp.Sum):
        return _parsed(f"IF({rows} = 0, NULL, {total})")
    return _parsed(f"({total} / NULLIF({rows}, 0))")


def _written(found: exp.AggFunc) -> str:
    """The aggregate in the words of the query; on a stream distinct values are put into a set."""
    if isinstance(found, exp.ArrayUniqueAgg | exp.ApproxDistinct):
        return "COUNT(DISTINCT ...)"
    return str(found.sql(dialect="spark"))


def _cannot(name: str, query: SqlText) -> SqlError:
    return SqlError(
        f"{name} cannot take a row back, and this query reads rows that are updated and deleted",
        query.place,
        "COUNT, SUM and AVG can; or aggregate a bounded table, which has only its latest rows.",
    )


def _parsed(text: str) -> exp.Expr:
    return parse_one(text, read="spark")
