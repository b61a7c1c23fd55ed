"""A column of pieces of JSON text, each the template's own around one scalar, to Arrow.

A reader gives the column and, where not every row is proven, the mask of those that are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from . import texts
from .arrow_texts import cast, data_of
from .json_exact import Rules

NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
TEXT = r'"[^"\\]*"'
_SCALAR = rf"\A(?:{TEXT}|{NUMBER}|true|false|null)\z"
_ENDLESS = 2**31 - 1


class Piece(NamedTuple):
    """What stands between two commas: the template's text, around one value."""

    key: str
    before: bytes
    after: bytes


class Doubt(Exception):  # noqa: N818 - no error: the chunk is read another way
    """Nothing of the chunk can be read by its template."""


Read = Callable[[pa.BinaryArray, Piece], tuple[pa.Array, Any]]


def piece_reader(field: pa.Field, rules: Rules) -> Read:
    """The reader of one wanted column."""
    kind, types = field.type, pa.types
    read: Read
    if types.is_boolean(kind):
        read = _booleans
    elif types.is_string(kind):
        read = _strings
    elif types.is_integer(kind) or types.is_duration(kind):
        read = _numbers(field, r"\A(?:0|-?[1-9][0-9]{0,17})\z", _is_whole)
    elif types.is_floating(kind) or types.is_decimal(kind):
        read = _numbers(field, rf"\A{NUMBER}\z", _is_decimal)
    else:
        read = _texts(field, rules)
    return read if field.nullable else _never_null(read)


def _never_null(read: Read) -> Read:
    def strict(column: pa.BinaryArray, piece: Piece) -> tuple[pa.Array, Any]:
        array, good = read(column, piece)
        return array, both(good, array.is_valid()) if array.null_count else good

    return strict


def both(one: Any, other: Any) -> Any:
    """The rows that two masks agree on; None is a mask without gaps."""
    if one is None or other is None:
        return other if one is None else one
    return pc.and_(one, other)


def _some(good: pa.BooleanArray) -> Any:
    return None if good.true_count == len(good) else good


def _around(column: pa.BinaryArray, before: bytes, after: bytes) -> Any:
    """Which values have these texts on their two ends, without sharing a byte."""
    good = _some(pc.starts_with(column, before))
    if after:
        good = both(good, _some(pc.ends_with(column, after)))
        least = len(before) + len(after)
        lengths = pc.binary_length(column)
        if (pc.min(lengths).as_py() or 0) < least:
            good = both(good, pc.greater_equal(lengths, least))
    return good


def _inside(column: pa.BinaryArray, before: bytes, after: bytes) -> pa.BinaryArray:
    return pc.binary_slice(column, len(before), -len(after) if after else _ENDLESS)


def unwanted(column: pa.BinaryArray, piece: Piece) -> tuple[pa.Array, Any]:
    """The reader of a column nobody wants: its values must be JSON all the same."""
    good = _around(column, piece.before, piece.after)
    inside = _inside(column, piece.before, piece.after)
    return column, both(good, _some(pc.match_substring_regex(inside, _SCALAR)))


def _booleans(column: pa.BinaryArray, piece: Piece) -> tuple[pa.Array, Any]:
    words = [piece.before + word + piece.after for word in (b"true", b"false", b"null")]
    true = pc.equal(column, words[0])
    good = pc.or_(true, pc.equal(column, words[1]))
    if good.true_count < len(good):
        null = pc.equal(column, words[2])
        true = pc.if_else(null, pa.scalar(None, pa.bool_()), true)
        good = pc.or_(good, null)
    return true, _some(good)


def _strings(column: pa.BinaryArray, piece: Piece) -> tuple[pa.Array, Any]:
    before, after = piece.before + b'"', b'"' + piece.after
    good = _around(column, before, after)
    inside = _inside(column, before, after)
    data = data_of(inside)
    for mark in (b'"', b"\\"):
        if mark in data:
            good = both(good, pc.invert(pc.match_substring(inside, mark)))
    if good is not None:
        null = pc.equal(column, piece.before + b"null" + piece.after)
        inside = pc.if_else(good, inside, pa.scalar(None, pa.binary()))
        good = pc.or_(good, null)
    strings = cast(inside, pa.string())
    if strings is None:  # some bytes are not UTF-8
        raise Doubt
    return strings, good


def _texts(field: pa.Field, rules: Rules) -> Read:
    at_once = texts.column_of(field, iso=rules.iso)
    one = texts.value_of(field, iso=rules.iso)

    def read(column: pa.BinaryArray, piece: Piece) -> tuple[pa.Array, Any]:
        strings, good = _strings(column, piece)
        array = at_once(strings)
        if array is not None:
            return array, good
        array, bad = texts.each_value(strings.to_pylist(), one, field, forgiving=False)
        fine = [True] * len(column)
        for place in bad:
            fine[place] = False
        return array, both(good, pa.array(fine, pa.bool_()))

    return read


def _numbers(
    field: pa.Field, grammar: str, is_plain: Callable[[pa.BinaryArray, bytes], bool]
) -> Read:
    kind, at_once = field.type, texts.column_of(field)

    def read(column: pa.BinaryArray, piece: Piece) -> tuple[pa.Array, Any]:
        good = _around(column, piece.before, piece.after)
        inside = _inside(column, piece.before, piece.after)
        strings = inside.view(pa.string())
        if good is None and is_plain(inside, data_of(inside)):
            array = at_once(strings)
            if array is not None:
                return array, None
        plain = both(good, pc.match_substring_regex(inside, grammar))
        plain = pc.and_not(plain, pc.equal(inside, b"-0"))  # as a float it would have a sign
        null = both(good, pc.equal(inside, b"null"))
        array = at_once(pc.if_else(plain, strings, pa.scalar(None, pa.string())))
        if array is None:
            return pa.nulls(len(column), kind), null
        return array, pc.or_(plain, null)

    return read


def _is_whole(inside: pa.BinaryArray, data: bytes) -> bool:
    """Whether numbers that Arrow takes for integers are integers in JSON too."""
    if b"-0" in data or b"x" in data or b"X" in data:
        return False
    zeros = pc.starts_with(inside, b"0")
    return not zeros.true_count or _all(pc.equal(inside.filter(zeros), b"0"))


def _is_decimal(inside: pa.BinaryArray, data: bytes) -> bool:
    """Whether numbers that Arrow takes for decimals are plain ones in JSON too."""
    if data.translate(None, b"0123456789."):
        return False
    dots = pc.or_(pc.starts_with(inside, b"."), pc.ends_with(inside, b"."))
    zeros = pc.starts_with(inside, b"0")
    if dots.true_count:
        return False
    if not zeros.true_count:
        return True
    small = inside.filter(zeros)
    return _all(pc.or_(pc.starts_with(small, b"0."), pc.equal(small, b"0")))


def _all(mask: pa.BooleanArray) -> bool:
    return bool(mask.true_count == len(mask))
