"""Arrays as the native reader gives them, turned into the columns of the table.

Whatever could differ from the exact path raises `Doubt` instead: a number out of range, text that
is not UTF-8, a null where none may be, a key twice in one map.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..packed import packer
from . import resolve
from .decimals import FEW, from_twos_complement

Convert = Callable[[pa.Array], pa.Array]
_STORAGE = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_ALL_LONGS = (-(1 << 63), (1 << 63) - 1)


class Doubt(Exception):  # noqa: N818 - a question, which the exact path answers
    """The batch holds something that only the exact path may judge."""


class Unsupported(Exception):  # noqa: N818 - a shape, not a mistake
    """A schema the native reader cannot take, or could be made to choke on."""


def converter(plan: resolve.Plan) -> Convert:
    """The function that turns what was read for this plan into the column."""
    build: Any = _CONVERTERS.get(type(plan))
    if build is None:
        raise Unsupported(plan.writer.label)
    convert: Convert = build(plan)
    return convert


def columns_of(plan: resolve.Struct, first: int = 0) -> Callable[[pa.StructArray], list[pa.Array]]:
    """The function that finds a record's columns in a struct whose child `first` starts it."""
    parts: list[tuple[int, Convert, bool] | None] = [None] * len(plan.names)
    index = first
    for _, avro, place, each in plan.steps:
        if avro.kind == "null":  # takes no bytes, so the native reader does not know of it
            if each is not None and not each.nullable:
                raise Unsupported("null for NOT NULL")
            continue
        if each is not None:
            parts[place] = (index, converter(each), each.nullable)
        index += 1

    def convert(rows: pa.StructArray) -> list[pa.Array]:
        columns = []
        for place, part in enumerate(parts):
            if part is None:
                columns.append(_repeat(plan.defaults[place], plan.arrow.field(place).type, rows))
                continue
            child, convert, nullable = part
            column = rows.field(child)
            if not nullable and column.null_count > rows.null_count:
                raise Doubt
            columns.append(convert(column))
        return columns

    return convert


def _struct(plan: resolve.Struct) -> Convert:
    columns = columns_of(plan)

    def convert(rows: pa.StructArray) -> pa.StructArray:
        validity = rows.buffers()[:1]
        children = columns(rows)
        return pa.Array.from_buffers(
            plan.arrow, len(rows), validity, rows.null_count, children=children
        )

    return convert


def _repeat(value: Any, arrow: pa.DataType, rows: pa.Array) -> pa.Array:
    if value is None:
        return pa.nulls(len(rows), arrow)
    return pa.array([value], arrow).take(pa.array(bytes(len(rows)), pa.int8()))


def _repeated(plan: resolve.Repeated) -> Convert:
    part = converter(plan.item)
    is_map = plan.writer.kind == "map"

    def convert(lists: pa.Array) -> pa.Array:
        items = lists.items if is_map else lists.values
        if not plan.item.nullable and items.null_count:
            raise Doubt
        child = part(items)
        if is_map:
            keys = _utf8(lists.keys)
            if _has_twins(lists):
                raise Doubt
            names = [plan.arrow.key_field, plan.arrow.item_field]
            child = pa.StructArray.from_arrays([keys, child], fields=names)
        buffers = lists.buffers()[:2]
        return pa.Array.from_buffers(
            plan.arrow, len(lists), buffers, lists.null_count, children=[child]
        )

    return convert


def _has_twins(maps: pa.MapArray) -> bool:
    """Tell whether a key comes twice in one map; the last one counts, so each must be looked at."""
    keys = maps.keys
    if len(keys) < 2:
        return False
    lists = pa.Array.from_buffers(  # the kernel below aborts the process when given a map
        pa.list_(pa.string()), len(maps), maps.buffers()[:2], maps.null_count, children=[keys]
    )
    rows = pc.list_parent_indices(lists)
    if len(keys) < FEW:
        return len(set(zip(rows.to_pylist(), keys.to_pylist(), strict=True))) < len(keys)
    encoded = keys.dictionary_encode()
    spread = pc.multiply(rows, pa.scalar(len(encoded.dictionary), pa.int64()))
    pairs = pc.add(spread, encoded.indices.cast(pa.int64()))
    return bool(pc.count_distinct(pairs).as_py() < len(keys))


def _choice(plan: resolve.Choice) -> Convert:
    branch = next((branch for branch in plan.branches if branch is not None), None)
    if branch is None:  # a union of null alone
        raise Unsupported(plan.writer.label)
    return converter(branch)


def _whole(plan: resolve.Whole) -> Convert:
    arrow, up, down, low, high = plan.arrow, plan.up, plan.down, plan.low, plan.high
    if up == down == 1 and (low, high) == _ALL_LONGS:
        return (lambda longs: longs) if arrow == pa.int64() else (lambda longs: longs.view(arrow))
    bits = 64 if pa.types.is_timestamp(arrow) else arrow.bit_width
    pack, all_of_it = packer(arrow), (low, high) == (-(1 << bits - 1), (1 << bits - 1) - 1)

    def convert(longs: pa.Array) -> pa.Array:
        if len(longs) > FEW:
            return _bounded(_scaled(longs, up, down), low, high).cast(_STORAGE[bits]).view(arrow)
        validity, data = longs.buffers()
        numbers = memoryview(data)[: 8 * len(longs)].cast("q").tolist()
        if up != down:
            numbers = [number * up // down for number in numbers]
        if not all_of_it and numbers and not low <= min(numbers) <= max(numbers) <= high:
            raise Doubt
        column = pack(numbers, validity, longs.null_count)
        if column is None:
            raise Doubt
        return column

    return convert


def _scaled(longs: pa.Array, up: int, down: int) -> pa.Array:
    if up > 1:
        try:
            return pc.multiply_checked(longs, up)
        except pa.ArrowInvalid:
            raise Doubt from None
    if down > 1:
        towards_zero = pc.divide(longs, down)
        above = pc.greater(pc.multiply(towards_zero, down), longs)
        return pc.subtract(towards_zero, above.cast(pa.int64()))
    return longs


def _bounded(longs: pa.Array, low: int, high: int) -> pa.Array:
    extremes = pc.min_max(longs)
    least, most = extremes["min"].as_py(), extremes["max"].as_py()
    if least is not None and not low <= least <= most <= high:
        raise Doubt
    return longs


def _same(plan: resolve.Same) -> Convert:
    kind, arrow = plan.writer.kind, plan.arrow
    if kind == "fixed":
        raise Unsupported(plan.writer.label)
    if kind in ("bytes", "string"):
        return _utf8 if pa.types.is_string(arrow) else (lambda texts: texts.view(arrow))
    read = {"float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_()}.get(kind)
    if read == arrow:
        return lambda column: column
    return lambda column: column.cast(arrow, safe=False)


def _utf8(texts: pa.Array) -> pa.Array:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise Doubt from None
    return texts


def _symbol(plan: resolve.Symbol) -> Convert:
    if plan.texts != plan.writer.symbols:
        raise Unsupported(plan.writer.label)
    return lambda texts: texts


def _digits(plan: resolve.Digits) -> Convert:
    if plan.writer.kind == "fixed":
        raise Unsupported(plan.writer.label)

    def convert(texts: pa.Array) -> pa.Array:
        found = from_twos_complement(texts.view(pa.binary()), plan.scale, plan.arrow)
        if found is None:
            raise Doubt
        return found

    return convert


_CONVERTERS = {
    resolve.Whole: _whole,
    resolve.Same: _same,
    resolve.Symbol: _symbol,
    resolve.Digits: _digits,
    resolve.Struct: _struct,
    resolve.Repeated: _repeated,
    resolve.Choice: _choice,
}
