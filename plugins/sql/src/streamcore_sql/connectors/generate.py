"""Columns of made-up values, in Arrow; the same seed gives the same values."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from streamcore.types import SQL_TYPE

from .field_rules import FieldRule

_EXACT = 2**53  # up to here every whole number is a double
_TEXT_LENGTH = 100
_COLLECTION_LENGTH = 3
_DAY = 86_400_000_000


@dataclass(frozen=True)
class Stretch:
    """Some rows of a generated table: the first one's number, how many, and the time they span."""

    first: int
    count: int
    since: int
    """Microseconds since 1970 of the first row; the last is just before `until`."""
    until: int

    def times(self) -> pa.Array:
        """The moment each row is made, in microseconds."""
        if self.until <= self.since:
            return pa.repeat(pa.scalar(self.since, pa.int64()), self.count)
        step = (self.until - self.since) / max(self.count, 1)
        offsets = pc.multiply(_range(0, self.count).cast(pa.float64()), step)
        return pc.add(pc.cast(offsets, pa.int64(), safe=False), self.since)


class Generator:
    """Makes batches of the given fields."""

    def __init__(self, fields: Sequence[pa.Field], rules: Mapping[str, FieldRule]) -> None:
        self._fields, self._rules = list(fields), rules

    def batch(self, stretch: Stretch, schema: pa.Schema) -> pa.RecordBatch:
        """The rows of a stretch, in the types of `schema`."""
        if not self._fields:
            whole = pa.RecordBatch.from_arrays([pa.nulls(stretch.count)], ["_"])
            return whole.select([])
        arrays = [
            self._column(field, field.name, stretch, number).cast(target.type, safe=False)
            for number, (field, target) in enumerate(zip(self._fields, schema, strict=True))
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _column(self, field: pa.Field, path: str, stretch: Stretch, number: int) -> pa.Array:
        rule = self._rules.get(path, FieldRule())
        source = random.Random(f"{path}/{number}/{stretch.first}")
        if rule.kind == "sequence":
            assert rule.start is not None
            array = _range(rule.start + stretch.first, stretch.count).cast(field.type)
        elif pa.types.is_struct(field.type):
            parts = [
                self._column(part, f"{path}.{part.name}", stretch, number) for part in field.type
            ]
            array = pa.StructArray.from_arrays(parts, fields=list(field.type))
        else:
            array = _random(field, rule, stretch, source)
        if rule.null_rate:
            keep = pc.greater_equal(_uniform(stretch.count, source), rule.null_rate)
            array = pc.if_else(keep, array, pa.scalar(None, array.type))
        return array


def _random(field: pa.Field, rule: FieldRule, stretch: Stretch, source: random.Random) -> pa.Array:
    kind, count = field.type, stretch.count
    test: Any = pa.types
    if test.is_boolean(kind):
        return pc.less(_uniform(count, source), 0.5)
    if test.is_integer(kind):
        return _whole(kind, rule, count, source)
    if test.is_floating(kind):
        edge = 3.4028234663852886e38 if kind.bit_width == 32 else 1.7976931348623157e308
        return _spread(rule, count, source, Decimal(edge)).cast(kind)
    if test.is_decimal(kind):
        edge = Decimal(10) ** (kind.precision - kind.scale) - Decimal(10) ** -kind.scale
        drawn = pc.round(_spread(rule, count, source, edge), kind.scale)
        return drawn.cast(pa.decimal128(38, kind.scale), safe=False).cast(kind, safe=False)
    if test.is_string(kind) or test.is_binary(kind):
        return _texts(field, rule, count, source)
    if test.is_timestamp(kind):
        return _moments(rule, stretch, source).cast(pa.timestamp("us", kind.tz))
    if test.is_date(kind):
        days = pc.divide(stretch.times(), _DAY)
        return days.cast(pa.int32()).cast(pa.date32())
    if test.is_time(kind):
        times = stretch.times()
        clock = pc.subtract(times, pc.multiply(pc.divide(times, _DAY), _DAY))
        return clock.cast(pa.time64("us")).cast(kind, safe=False)
    if test.is_duration(kind):
        return _range(stretch.first, count).cast(pa.int64()).cast(kind)
    if test.is_list(kind) or test.is_map(kind):
        return _collections(kind, rule, stretch, source)
    raise TypeError(f"datagen cannot make {kind}")


# --- numbers ---------------------------------------------------------------------------


def _uniform(count: int, source: random.Random) -> pa.Array:
    return pc.random(count, initializer=source.getrandbits(63))


def _whole(kind: pa.DataType, rule: FieldRule, count: int, source: random.Random) -> pa.Array:
    half = 2 ** (kind.bit_width - 1)
    low = int(rule.min) if rule.min is not None else -half
    high = int(rule.max) if rule.max is not None else half - 1
    span = high - low + 1
    if span == 2**kind.bit_width:
        raw = pa.py_buffer(source.randbytes(count * kind.bit_width // 8))
        return pa.Array.from_buffers(kind, count, [None, raw])
    if span > _EXACT:
        return pa.array([source.randint(low, high) for _ in range(count)], kind)
    steps = pc.floor(pc.multiply(_uniform(count, source), float(span))).cast(pa.int64())
    return pc.add(steps, low).cast(kind)


def _spread(rule: FieldRule, count: int, source: random.Random, edge: Decimal) -> pa.Array:
    low = float(rule.min if rule.min is not None else -edge)
    high = float(rule.max if rule.max is not None else edge)
    share = _uniform(count, source)
    return pc.add(pc.multiply(pc.subtract(1.0, share), low), pc.multiply(share, high))


def _range(first: int, count: int) -> pa.Array:
    return pa.array(range(first, first + count), pa.int64())


# --- texts, times, collections ----------------------------------------------------------


def _texts(field: pa.Field, rule: FieldRule, count: int, source: random.Random) -> pa.Array:
    width = rule.length or _declared_length(field) or _TEXT_LENGTH
    is_text = pa.types.is_string(field.type)
    raw = source.randbytes(count * width if not is_text else (count * width + 1) // 2)
    data = raw.hex().encode() if is_text else raw
    if rule.var_len:
        lengths = [source.randint(1, width) for _ in range(count)]
        pieces = [data[i * width : i * width + size] for i, size in enumerate(lengths)]
        return pa.array(pieces, pa.binary()).cast(field.type)
    offsets = pa.array(range(0, (count + 1) * width, width), pa.int32())
    buffers = [None, offsets.buffers()[1], pa.py_buffer(data)]
    return pa.Array.from_buffers(field.type, count, buffers)


def _declared_length(field: pa.Field) -> int | None:
    """The n of CHAR(n) or BINARY(n); VARCHAR without one has the greatest n, which is no wish."""
    declared = (field.metadata or {}).get(SQL_TYPE, b"").decode()
    digits = declared.partition("(")[2].rstrip(")")
    return int(digits) if digits.isdigit() and int(digits) < 2**31 - 1 else None


def _moments(rule: FieldRule, stretch: Stretch, source: random.Random) -> pa.Array:
    times = stretch.times()
    if not rule.max_past:
        return times
    reach = rule.max_past // timedelta(microseconds=1)
    back = pc.multiply(_uniform(stretch.count, source), float(reach))
    return pc.subtract(times, pc.cast(back, pa.int64(), safe=False))


def _collections(
    kind: pa.DataType, rule: FieldRule, stretch: Stretch, source: random.Random
) -> pa.Array:
    size = rule.length or _COLLECTION_LENGTH
    inner = Stretch(stretch.first * size, stretch.count * size, stretch.since, stretch.until)
    offsets = pa.array(range(0, (stretch.count + 1) * size, size), pa.int32())
    if pa.types.is_list(kind):
        items = _random(kind.value_field, FieldRule(), inner, source)
        return pa.ListArray.from_arrays(offsets, items, type=kind)
    keys = _random(kind.key_field, FieldRule(), inner, source)
    values = _random(kind.item_field, FieldRule(), inner, source)
    return pa.MapArray.from_arrays(offsets, keys, values, type=kind)
