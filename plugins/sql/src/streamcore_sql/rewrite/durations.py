"""Intervals as the durations that Spark's window functions take."""

from __future__ import annotations

import re

from sqlglot import exp

from ..errors import SqlError
from ..source import Place

_MILLISECONDS = {
    "MILLISECOND": 1,
    "SECOND": 1000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
    "WEEK": 604_800_000,
}
_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")


def milliseconds(node: exp.Expr | None, what: str, place: Place) -> int:
    """How long an interval literal is."""
    if isinstance(node, exp.Neg):
        return -milliseconds(node.this, what, place)
    if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal):
        hint = f"Write the {what} as a literal, such as INTERVAL '10' MINUTE."
        raise SqlError(f"the {what} is not an interval literal", place, hint)
    unit = node.args.get("unit")
    text = str(node.this.this).strip()
    if isinstance(unit, exp.IntervalSpan):
        return _span(text, str(unit.this.name), str(unit.expression.name), what, place)
    size = _MILLISECONDS.get(str(unit.name if unit else "").upper().removesuffix("S"))
    if size is None:
        hint = "Months and years differ in length: write days, hours, minutes or seconds."
        raise SqlError(f"the {what} has no fixed length", place, hint)
    try:
        return round(float(text) * size)
    except ValueError:
        raise SqlError(f"the {what} '{text}' is not a number", place) from None


def _span(text: str, first: str, last: str, what: str, place: Place) -> int:
    """`'1 10:00:00' DAY TO SECOND`."""
    numbers = re.findall(r"\d+(?:\.\d+)?", text)
    if first.upper() not in _UNITS or last.upper() not in _UNITS:
        hint = "Months and years differ in length: write days, hours, minutes or seconds."
        raise SqlError(f"the {what} has no fixed length", place, hint)
    units = _UNITS[_UNITS.index(first.upper()) : _UNITS.index(last.upper()) + 1]
    if len(numbers) != len(units):
        raise SqlError(f"the {what} '{text}' does not say {first} TO {last}", place)
    total = sum(
        float(number) * _MILLISECONDS[unit] for number, unit in zip(numbers, units, strict=True)
    )
    return round(-total if text.startswith("-") else total)


def duration(length: int) -> str:
    """Spark's text for a length in milliseconds, in the largest unit that fits."""
    for unit in ("DAY", "HOUR", "MINUTE", "SECOND"):
        if length and length % _MILLISECONDS[unit] == 0:
            count = length // _MILLISECONDS[unit]
            return f"{count} {unit.lower()}{'' if abs(count) == 1 else 's'}"
    return f"{length} milliseconds"
