"""Which numbers are whole: in Flink they divide and average to whole numbers, in Spark not."""

from __future__ import annotations

from sqlglot import exp

from .context import Context
from .function_table import INTEGRAL

_WHOLE = {"TINYINT", "SMALLINT", "INT", "BIGINT"}
_AS_FIRST_ARGUMENT = {"SUM", "MIN", "MAX", "ABS", "COALESCE", "IFNULL", "NULLIF", "MOD"}


def is_whole(node: exp.Expr, context: Context) -> bool | None:
    """Whether a number is a whole one; None when nobody knows."""
    if isinstance(node, exp.Paren | exp.Neg):
        return is_whole(node.this, context)
    if isinstance(node, exp.Literal):
        return not node.is_string and str(node.this).isdecimal()
    if isinstance(node, exp.Column):
        names = {kind.name for kind in context.types_of(node.name)}
        return names <= _WHOLE if names else None
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod | exp.Div | exp.IntDiv):
        sides = {is_whole(side, context) for side in (node.this, node.expression)}
        return False if False in sides else None if None in sides else True
    call = context.call_of(node)
    if call is None:
        return None
    if call.name in ("CAST", "TRY_CAST"):
        return str(node.expressions[1].this) in _WHOLE
    if call.name in _AS_FIRST_ARGUMENT and node.expressions:
        return is_whole(node.expressions[0], context)
    return True if call.name in INTEGRAL else None


def divide(division: exp.Div, context: Context) -> None:
    """Let whole numbers divide to a whole number, and say so where that is not known."""
    sides = (division.this, division.expression)
    whole = [is_whole(side, context) for side in sides]
    if all(whole):
        division.replace(exp.IntDiv(this=sides[0], expression=sides[1]))
    elif False not in whole:
        text = "if both are whole numbers, '/' gives a fraction: write CAST(a / b AS BIGINT)"
        context.note(text, context.place(division))
