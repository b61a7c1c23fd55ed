"""Text to typed values, one by one or a column at once; JSON strings and CSV cells alike."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from streamcore.types import sql_text

from . import numbers, temporal
from .arrow_texts import cast, data_of, has_bytes
from .packed import packer
from .unreadable import Unreadable, shown

Value = Callable[[str], Any]
Column = Callable[[pa.StringArray], "pa.Array | None"]
Finished = tuple[pa.Array, Sequence[int]]

MOST_MILLISECONDS = 2**63 // 1000 - 1
"""An interval is carried in microseconds."""


# --- one value --------------------------------------------------------------------------


def value_of(field: pa.Field, *, iso: bool = False, csv: bool = False) -> Value:
    """A reader of one text, to Arrow's Python form; CSV is a little laxer with times."""
    kind, types = field.type, pa.types
    if types.is_string(kind):
        return clean
    if types.is_boolean(kind):
        return lambda text: numbers.trim(text).lower() == "true"
    if types.is_integer(kind):
        return _whole(*bounds(kind), sql_text(field))
    if types.is_duration(kind):
        milliseconds = _whole(-MOST_MILLISECONDS, MOST_MILLISECONDS, sql_text(field))
        return lambda text: milliseconds(text) * 1000
    if types.is_floating(kind):
        name = float_name(kind)
        return lambda text: numbers.double(text, name)
    if types.is_decimal(kind):
        return lambda text: numbers.decimal(text, kind.precision, kind.scale)
    if types.is_binary(kind):
        return base64
    convert = temporal.value_of(field, iso, loose=csv)
    if csv and types.is_timestamp(kind):
        return lambda text: convert(numbers.trim(text))
    return convert


def bounds(kind: pa.DataType) -> tuple[int, int]:
    """The least and the most an integer type holds."""
    return -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1


def float_name(kind: pa.DataType) -> str:
    """FLOAT or DOUBLE."""
    return "FLOAT" if kind == pa.float32() else "DOUBLE"


def _whole(least: int, most: int, name: str) -> Value:
    return lambda text: numbers.whole(numbers.trim(text), least, most, name)


def clean(text: str) -> str:
    """The text, unless it holds what UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        at = ord(text[error.start])
        byte = at - 0xDC00
        if 0x80 <= byte <= 0xFF:  # where decoding put bytes that are not UTF-8
            raise Unreadable(f"byte 0x{byte:02x} is not UTF-8") from error
        raise Unreadable(f"\\u{at:04x} is half a surrogate pair") from error
    return text


_BASE64_BLANKS = re.compile(r"[\x00-\x20]+")


def base64(text: str) -> bytes:
    """Padded base64 of the standard alphabet; blanks and line feeds in it are fine."""
    try:
        return binascii.a2b_base64(_BASE64_BLANKS.sub("", text), strict_mode=True)
    except ValueError as error:
        raise Unreadable(f"{shown(text)} is not base64 text") from error


# --- a column ---------------------------------------------------------------------------


def column_of(field: pa.Field, *, iso: bool = False) -> Column:
    """A reader of many texts at once; answers None where only `value_of` knows for sure."""
    kind, types = field.type, pa.types
    if types.is_string(kind):
        return lambda texts: texts
    if types.is_boolean(kind):
        return _booleans
    if types.is_integer(kind):
        return lambda texts: _integers(texts, kind)
    if types.is_duration(kind):
        return _durations
    if types.is_floating(kind):
        return lambda texts: _floats(texts, kind)
    if types.is_decimal(kind):
        return lambda texts: _decimals(texts, kind)
    if types.is_temporal(kind):
        return temporal.column_of(field, iso)
    return lambda texts: None


def _decimals(texts: pa.StringArray, kind: pa.DataType) -> pa.Array | None:
    # Arrow's parser wraps around silently beyond 38 digits
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    return None if longest > 38 or has_bytes(texts, b"eE") else cast(texts, kind)


def _booleans(texts: pa.StringArray) -> pa.Array | None:
    # Arrow also reads '1', '0' and capitals
    return None if data_of(texts).translate(None, b"truefals") else cast(texts, pa.bool_())


def _integers(texts: pa.StringArray, kind: pa.DataType) -> pa.Array | None:
    numbers = cast(texts, kind)
    if numbers is None or has_bytes(texts, b"xX"):  # Arrow reads hex, Java does not
        return None
    return numbers


def _durations(texts: pa.StringArray) -> pa.Array | None:
    milliseconds = _integers(texts, pa.int64())
    if milliseconds is None:
        return None
    try:
        return pc.multiply_checked(milliseconds, 1000).view(pa.duration("us"))
    except pa.ArrowInvalid:
        return None


def _floats(texts: pa.StringArray, kind: pa.DataType) -> pa.Array | None:
    numbers = cast(texts, pa.float64())
    if numbers is None:
        return None
    numbers = numbers.cast(kind)
    # 'inf' and 'nan' are Arrow's spellings; what is finite was read from plain digits
    return numbers if pc.all(pc.is_finite(numbers), min_count=0).as_py() else None


# --- a short column -----------------------------------------------------------------------


Numbers = Callable[[str], list[Any]]
_WHOLE: Numbers = msgspec.json.Decoder(list[int]).decode
_REAL: Numbers = msgspec.json.Decoder(list[float]).decode

FEW = 512
"""Values below which the fixed cost of Arrow's kernels counts more than their speed."""


def short_column_of(field: pa.Field, *, iso: bool = False) -> Callable[[Sequence[str]], Any]:
    """The same as `column_of` for few values, none of them NULL."""
    kind, types = field.type, pa.types
    if types.is_boolean(kind):
        return _few_booleans
    if types.is_integer(kind):
        return _few_numbers(_WHOLE, kind)
    if kind == pa.float64():
        return _few_numbers(_REAL, kind)
    if types.is_timestamp(kind) and kind.tz is None and temporal.fills_unit(field):
        return lambda values: temporal.few_timestamps(values, kind, iso)
    at_once = column_of(field, iso=iso)
    return lambda values: at_once(pa.array(values, pa.string()))


def _few_booleans(values: Sequence[str]) -> pa.Array | None:
    if not {"true", "false"}.issuperset(values):
        return None
    return pa.array([value == "true" for value in values], pa.bool_())


def _few_numbers(parse: Numbers, kind: pa.DataType) -> Callable[[Sequence[str]], Any]:
    """Numbers that JSON writes alike; texts are as many as values, or one holds a comma."""
    pack = packer(kind)

    def read(values: Sequence[str]) -> pa.Array | None:
        written = ",".join(values)
        if "-0" in written:  # which JSON does not tell from 0
            return None
        try:
            found = parse(f"[{written}]")
        except (msgspec.MsgspecError, UnicodeEncodeError):
            return None
        return pack(found) if len(found) == len(values) else None

    return read


def each_value(values: Sequence[Any], read: Value, field: pa.Field, forgiving: bool) -> Finished:
    """Read value by value; what cannot be read is NULL if that is forgiven, else in doubt."""
    bad: list[int] = []
    out: list[Any] = []
    for position, value in enumerate(values):
        result = None
        try:
            if value is not None:
                result = read(value)
                if result is None and not field.nullable:
                    bad.append(position)
        except Unreadable:
            if not forgiving:
                bad.append(position)
        out.append(result)
    return pa.array(out, field.type), bad
