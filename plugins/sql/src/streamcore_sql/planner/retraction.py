"""Aggregates over rows that change: each row counts by its sign, so that a row can be taken back.

A row that was inserted or updated to counts as one, a row that was deleted or updated from as
minus one. COUNT, SUM and AVG follow from that; what does not is refused.
"""

from __future__ import annotations

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


def delete_what_is_filtered(select: exp.Select, kind: str) -> None:
    """Delete rows that meet WHERE no more, and let deletes pass: they may have their key alone."""
    met = _met(select.args["where"])
    select.set("where", exp.Where(this=_parsed(f"{met} OR {kind} IN ('+U', '-D')")))
    _with_kind(select, f"IF({met}, {kind}, '-D')")


def _met(where: exp.Where) -> str:
    return f"COALESCE({where.this.sql(dialect='spark')}, FALSE)"


def _with_kind(select: exp.Select, kind: str) -> None:
    rows = select.args["from_"].this.alias_or_name
    for star in [each for each in select.expressions if each.is_star]:
        if star.text("table") not in ("", rows):
            continue  # the fields of a struct, which has no kind
        star.replace(_parsed(f"SELECT * EXCEPT (`{ROW_KIND}`)").expressions[0])
    select.select(_parsed(f"{kind} AS `{ROW_KIND}`"), copy=False)


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
