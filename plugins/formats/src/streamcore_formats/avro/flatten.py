"""The columns of a table in the plain shapes that Avro's primitives have."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from .decimals import to_twos_complement
from .resolve import ratio, unit_of
from .schema import Type

Flatten = Callable[[pa.Array], pa.Array]


def flattener(arrow: pa.DataType, avro: Type, *, bytes_as: pa.DataType) -> Flatten:
    """The function that leaves of a column only numbers, texts, bytes and their containers.

    `bytes_as` is how byte strings come out: as binary, or posing as text for the native writer.
    Fields of records are renamed `f0`, `f1`, ... because only their order matters.
    """
    bare, _ = avro.without_null()
    if pa.types.is_struct(arrow):
        return _struct(arrow, bare, bytes_as)
    if pa.types.is_list(arrow):
        return _list(flattener(arrow.value_type, bare.items, bytes_as=bytes_as))
    if pa.types.is_map(arrow):
        return _map(flattener(arrow.item_type, bare.items, bytes_as=bytes_as))
    if pa.types.is_decimal(arrow):
        return lambda column: to_twos_complement(column).view(bytes_as)
    if pa.types.is_binary(arrow):
        return lambda column: column.view(bytes_as)
    if pa.types.is_temporal(arrow):
        return _temporal(arrow, bare)
    plain = {"int": pa.int32(), "long": pa.int64()}.get(bare.kind, arrow)
    return (lambda column: column) if plain == arrow else (lambda column: column.cast(plain))


def _struct(arrow: pa.StructType, avro: Type, bytes_as: pa.DataType) -> Flatten:
    parts = [
        flattener(arrow.field(place).type, field.type, bytes_as=bytes_as)
        for place, field in enumerate(avro.fields)
    ]

    def flatten(rows: pa.StructArray) -> pa.StructArray:
        columns = [part(rows.field(place)) for place, part in enumerate(parts)]
        names = [f"f{place}" for place in range(len(columns))]
        if not rows.null_count:
            return pa.StructArray.from_arrays(columns, names)
        return pa.StructArray.from_arrays(columns, names, mask=rows.is_null())

    return flatten


def _list(part: Flatten) -> Flatten:
    def flatten(lists: pa.ListArray) -> pa.ListArray:
        items = part(lists.values)
        kind = pa.list_(items.type)
        buffers = lists.buffers()[:2]
        return pa.Array.from_buffers(
            kind, len(lists), buffers, lists.null_count, lists.offset, children=[items]
        )

    return flatten


def _map(part: Flatten) -> Flatten:
    def flatten(maps: pa.MapArray) -> pa.MapArray:
        items = part(maps.items)
        kind = pa.map_(pa.string(), items.type)
        entries = pa.StructArray.from_arrays(
            [maps.keys, items], fields=[kind.key_field, kind.item_field]
        )
        buffers = maps.buffers()[:2]
        return pa.Array.from_buffers(
            kind, len(maps), buffers, maps.null_count, maps.offset, children=[entries]
        )

    return flatten


def _temporal(arrow: pa.DataType, avro: Type) -> Flatten:
    storage = pa.int32() if arrow.bit_width == 32 else pa.int64()
    up = 1 if pa.types.is_date(arrow) else ratio(arrow.unit, unit_of(avro) or arrow.unit)[0]
    if up == 1:
        return lambda column: column.view(storage)
    plain = {"int": pa.int32(), "long": pa.int64()}[avro.kind]

    def flatten(column: pa.Array) -> pa.Array:
        numbers = column.view(storage).cast(pa.int64())
        return pc.multiply_checked(numbers, up).cast(plain)

    return flatten
