"""Aggregates over rows that change: each row counts by its sign, so that a row can be taken back.

A row that was inserted or updated to counts as one, a row that was deleted or updated from as
minus one. COUNT, SUM and AVG follow from that; what does not is refused.
"""

from __future__ import annotations

from sqlglot import exp, parse_one
from streamcore.table import ROW_KIND

from ..cursor import SqlText
from ..errors import SqlError

_SIGN = f"CASE WHEN `{ROW_KIND}` IN ('-U', '-D') THEN -1 ELSE 1 END"


def aggregate_by_sign(select: exp.Select, query: SqlText) -> None:
    """Rewrite the aggregates of a SELECT in place, and give its rows a kind.

    A group whose last row is gone, or that no longer meets HAVING, is deleted.
    """
    for found in list(select.find_all(exp.AggFunc)):
        if found.find_ancestor(exp.Select) is select:
            found.replace(_signed(found, query))
    gone = "SUM(" + _SIGN + ") = 0"
    having = select.args.get("having")
    if having is not None:
        gone = f"({gone}) OR NOT ({having.this.sql(dialect='spark')})"
        select.set("having", None)
    kind = parse_one(f"IF({gone}, '-D', '+U') AS `{ROW_KIND}`", read="spark")
    select.select(kind, copy=False)


def _signed(found: exp.AggFunc, query: SqlText) -> exp.Expr:
    argument = found.this
    if isinstance(argument, exp.Distinct):
        raise _cannot("COUNT(DISTINCT ...)", query)
    text = argument.sql(dialect="spark") if argument is not None else "*"
    if isinstance(found, exp.Count):
        if text == "*" or isinstance(argument, exp.Literal):
            return _parsed(f"SUM({_SIGN})")
        return _parsed(f"SUM(IF({text} IS NULL, 0, {_SIGN}))")
    if isinstance(found, exp.Sum):
        return _parsed(f"SUM(({text}) * {_SIGN})")
    if isinstance(found, exp.Avg):
        rows = f"SUM(IF({text} IS NULL, 0, {_SIGN}))"
        return _parsed(f"(SUM(({text}) * {_SIGN}) / NULLIF({rows}, 0))")
    raise _cannot(found.sql_name(), query)


def _cannot(name: str, query: SqlText) -> SqlError:
    return SqlError(
        f"{name} cannot take a row back, and this query reads rows that are updated and deleted",
        query.place,
        "COUNT, SUM and AVG can; or aggregate a bounded table, which has only its latest rows.",
    )


def _parsed(text: str) -> exp.Expr:
    return parse_one(text, read="spark")
