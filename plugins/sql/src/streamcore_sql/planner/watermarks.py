"""`WATERMARK FOR ts AS ts - INTERVAL '5' SECOND`: the two forms Spark can keep."""

from __future__ import annotations

import re

from ..cursor import Cursor
from ..errors import SqlError
from ..lexer import Kind
from ..source import Source
from ..statements import Watermark

_UNITS = ("WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_COMPOUND = {
    ("DAY", "HOUR"): r"(\d+) (\d+)",
    ("DAY", "MINUTE"): r"(\d+) (\d+):(\d+)",
    ("DAY", "SECOND"): r"(\d+) (\d+):(\d+):(\d+(?:\.\d+)?)",
    ("HOUR", "MINUTE"): r"(\d+):(\d+)",
    ("HOUR", "SECOND"): r"(\d+):(\d+):(\d+(?:\.\d+)?)",
    ("MINUTE", "SECOND"): r"(\d+):(\d+(?:\.\d+)?)",
}


def delay_of(watermark: Watermark) -> str:
    """The delay as Spark writes it, such as `5 second`."""
    cursor = Cursor(Source(watermark.expression.text))
    column = watermark.column.parts
    if len(column) > 1:
        hint = "Add a computed column for it: ts AS `row`.ts, WATERMARK FOR ts AS ts."
        raise SqlError("a watermark needs a column of the table itself", watermark.place, hint)
    try:
        read = [cursor.identifier()]
        while cursor.accept("."):
            read.append(cursor.identifier())
        delay = "0 second"
        if tuple(read) == column and cursor.accept("-"):
            cursor.expect("INTERVAL")
            delay = _interval(cursor)
        if tuple(read) == column and cursor.at_end():
            return delay
    except SqlError:
        pass  # told below, in words about watermarks
    name = watermark.column.sql()
    raise SqlError(
        f"watermark '{watermark.expression}' cannot be kept by Spark",
        watermark.expression.place,
        f"Write {name}, or {name} - INTERVAL '5' SECOND; compute anything else in a column first.",
    )


def _interval(cursor: Cursor) -> str:
    text = cursor.string().strip()
    first = _unit(cursor)
    if cursor.accept("TO"):
        last = _unit(cursor)
        pattern = _COMPOUND.get((first, last))
        match = re.fullmatch(pattern, text) if pattern else None
        if match is None:
            cursor.fail(f"'{text}' to read as {first} TO {last}")
        units = _UNITS[_UNITS.index(first) :]
        return " ".join(f"{n} {u.lower()}" for n, u in zip(match.groups(), units, strict=False))
    if not re.fullmatch(r"\d+(\.\d+)?", text):
        cursor.fail("a number that is not negative")
    return f"{text} {first.lower()}"


def _unit(cursor: Cursor) -> str:
    if cursor.token.kind is not Kind.WORD or cursor.token.word.rstrip("S") not in _UNITS:
        cursor.fail("a unit of time")
    unit = cursor.advance().word.rstrip("S")
    if cursor.accept("("):  # a precision, which says nothing about the length
        cursor.integer()
        if cursor.accept(","):
            cursor.integer()
        cursor.expect(")")
    return unit
