"""Dates, times and timestamps between text and Arrow, by the value and by the column."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Sequence
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
from streamcore.types import sql_text

from .arrow_texts import cast, even_texts, has_bytes
from .unreadable import Unreadable, shown

DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_EPOCH = date(1970, 1, 1).toordinal()
_DAY = 86_400
_INT64 = 2**63

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_LOOSE_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{0,9}))?", re.ASCII)
_LOOSE_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{0,9}))?)?", re.ASCII)
_SQL = re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{0,9}))?", re.ASCII)
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{0,9}))?)?", re.ASCII)


# --- one value ----------------------------------------------------------------------


def date_days(text: str, loose: bool = False) -> int:
    """Days since 1970 of `yyyy-MM-dd`; `loose` allows a month or day of one digit."""
    match = (_LOOSE_DATE if loose else _DATE).fullmatch(text)
    if match:
        year, month, day = map(int, match.groups())
        if 1 <= month <= 12 and 1 <= day <= _month_length(year, month):
            return _days(year, month, day)
    raise Unreadable(f"{shown(text)} is not a DATE, write 'yyyy-MM-dd'")


def time_ticks(text: str, unit: str, precision: int, loose: bool = False) -> int:
    """Ticks since midnight of `HH:mm:ss[.f]`, cut to the precision; `loose` allows `HH:mm`."""
    match = (_LOOSE_TIME if loose else _TIME).fullmatch(text)
    if match:
        hour, minute, second = (int(part or 0) for part in match.groups()[:3])
        if hour < 24 and minute < 60 and second < 60:
            digits = DIGITS[unit]
            seconds = (hour * 60 + minute) * 60 + second
            ticks: int = seconds * 10**digits + _fraction(match[4], digits, precision)
            return ticks
    raise Unreadable(f"{shown(text)} is not a TIME, write 'HH:mm:ss[.f]'")


def timestamp_ticks(text: str, unit: str, precision: int, iso: bool, zoned: bool) -> int:
    """Ticks since 1970, cut to the precision; `zoned` texts end with a literal Z."""
    body = text[:-1] if zoned and text.endswith("Z") else None if zoned else text
    match = (_ISO if iso else _SQL).fullmatch(body) if body is not None else None
    if match:
        year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
        midnight = (hour, minute, second, int(match[7] or 0)) == (24, 0, 0, 0)
        if 1 <= month <= 12 and 1 <= day <= 31 and (hour < 24 or midnight):
            # like Flink: the 31st of a shorter month is its last day, 24:00 is the next midnight
            days = _days(year, month, min(day, _month_length(year, month)))
            if minute < 60 and second < 60:
                digits = DIGITS[unit]
                seconds = days * _DAY + (hour * 60 + minute) * 60 + second
                ticks: int = seconds * 10**digits + _fraction(match[7], digits, precision)
                if -_INT64 <= ticks < _INT64:
                    return ticks
                raise Unreadable(f"{shown(text)} is outside what nanoseconds can count")
    raise Unreadable(f"{shown(text)} is not a {_shape(iso, zoned)}")


def _shape(iso: bool, zoned: bool) -> str:
    body = "yyyy-MM-ddTHH:mm[:ss[.f]]" if iso else "yyyy-MM-dd HH:mm:ss[.f]"
    return f"TIMESTAMP_LTZ, write '{body}Z'" if zoned else f"TIMESTAMP, write '{body}'"


def _month_length(year: int, month: int) -> int:
    return monthrange(year or 400, month)[1]


def _days(year: int, month: int, day: int) -> int:
    if year == 0:  # Python's calendar starts one year later; 400 years are always 146097 days
        return date(400, month, day).toordinal() - 146_097 - _EPOCH
    return date(year, month, day).toordinal() - _EPOCH


def _fraction(text: str | None, digits: int, precision: int) -> int:
    return int(((text or "")[:precision] + "0" * digits)[:digits] or 0)


# --- a column -------------------------------------------------------------------------
# Each takes a string array and answers only where Arrow's parser is as strict as the value's
# own; else None, and the caller goes value by value.


def dates(texts: pa.StringArray) -> pa.Array | None:
    """A column of `yyyy-MM-dd`."""
    return cast(texts, pa.date32())


def times(texts: pa.StringArray, kind: pa.DataType) -> pa.Array | None:
    """A column of `HH:mm:ss[.f]` with no more digits than the type holds."""
    digits = DIGITS[kind.unit]
    if not _between(texts, 8, 9 + digits):
        return None
    stamped = pc.binary_join_element_wise("1970-01-01 ", texts, "")
    ticks = cast(stamped, pa.timestamp(kind.unit))
    if ticks is None:
        return None
    ticks = ticks.cast(pa.int64())
    return (ticks.cast(pa.int32()) if kind.bit_width == 32 else ticks).view(kind)


def timestamps(texts: pa.StringArray, kind: pa.DataType, iso: bool) -> pa.Array | None:
    """A column of timestamps with seconds, and no more digits than the type holds."""
    digits = DIGITS[kind.unit]
    if kind.tz is not None:
        if not pc.all(pc.ends_with(texts, "Z"), min_count=0).as_py():
            return None
        texts = pc.binary_slice(texts.view(pa.binary()), 0, -1).view(pa.string())
    if not _between(texts, 19, 20 + digits):
        return None
    if has_bytes(texts, b" " if iso else b"T"):  # Arrow takes either between date and time
        return None
    ticks = cast(texts, pa.timestamp(kind.unit))
    return ticks if ticks is None or kind.tz is None else ticks.cast(pa.int64()).view(kind)


def few_timestamps(values: Sequence[str], kind: pa.DataType, iso: bool) -> pa.Array | None:
    """The same for a few texts without a zone, checked before they become a column."""
    lengths = set(map(len, values))
    if not values or min(lengths) < 19 or max(lengths) > 20 + DIGITS[kind.unit]:
        return None
    joined = "".join(values)
    if (" " if iso else "T") in joined:
        return None
    if len(lengths) == 1 and joined.isascii():
        return cast(even_texts(joined, len(values[0]), len(values)), kind)
    return cast(pa.array(values, pa.string()), kind)


def _between(texts: pa.StringArray, least: int, most: int) -> bool:
    lengths = pc.min_max(pc.binary_length(texts)).as_py()
    return lengths["min"] is None or (lengths["min"] >= least and lengths["max"] <= most)


Column = Callable[[pa.StringArray], "pa.Array | None"]


def column_of(field: pa.Field, iso: bool) -> Column:
    """The by-column reader for a temporal type."""
    kind = field.type
    if pa.types.is_date(kind):
        return dates
    is_time = pa.types.is_time(kind)

    def whole(texts: pa.StringArray) -> pa.Array | None:
        return times(texts, kind) if is_time else timestamps(texts, kind, iso)

    if fills_unit(field):
        return whole
    if kind.unit == "ns":  # the first of them would wrap around when cut
        return lambda texts: None
    step = 10 ** (DIGITS[kind.unit] - precision_of(field))

    def cut(texts: pa.StringArray) -> pa.Array | None:
        ticks = whole(texts)
        return None if ticks is None else pc.floor_temporal(ticks, step, _STEPS[kind.unit])

    return cut


_STEPS = {"ms": "millisecond", "us": "microsecond"}


def precision_of(field: pa.Field) -> int:
    """How many digits of a second a TIME or TIMESTAMP was declared with."""
    return int(sql_text(field).partition("(")[2].rstrip(")"))


def fills_unit(field: pa.Field) -> bool:
    """Whether these are as many as Arrow's unit holds."""
    return precision_of(field) == DIGITS[field.type.unit]


def value_of(field: pa.Field, iso: bool, loose: bool = False) -> Callable[[str], int]:
    """The by-value reader for a temporal type, to Arrow's integer."""
    kind = field.type
    if pa.types.is_date(kind):
        return lambda text: date_days(text, loose)
    unit, precision = kind.unit, precision_of(field)
    if pa.types.is_time(kind):
        return lambda text: time_ticks(text, unit, precision, loose)
    zoned = kind.tz is not None
    return lambda text: timestamp_ticks(text, unit, precision, iso, zoned)


# --- back to text -----------------------------------------------------------------------

_ZEROS, _POINT = pc.TrimOptions("0"), pc.TrimOptions(".")


def texts_of(values: pa.Array, iso: bool = False) -> pa.StringArray:
    """A date, time or timestamp array as text: no zero fraction, no trailing zeros, Z for UTC."""
    kind = values.type
    if pa.types.is_date(kind):
        return values.cast(pa.string())
    zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    plain = values.cast(pa.int64()).view(pa.timestamp(kind.unit)) if zoned else values
    texts = plain.cast(pa.string())
    if kind.unit != "s":
        texts = pc.utf8_rtrim(pc.utf8_rtrim(texts, options=_ZEROS), options=_POINT)
    if iso and pa.types.is_timestamp(kind):
        texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
    return pc.binary_join_element_wise(texts, "Z", "") if zoned else texts
