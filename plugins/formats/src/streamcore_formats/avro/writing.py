"""Rows to datums: one native call for a batch, or value by value where that cannot be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyruhvro import serialize_record_batch
from streamcore import RecordError

from .arrays import Unsupported
from .flatten import flattener
from .native import MOST_BYTES, Rewriting, record_schema
from .puts import BadValue, put, put_long
from .schema import Type


class DatumWriter:
    """Writes rows of `schema` as datums of the record `avro`, each behind the bytes of `header`.

    `avro` may be a union with null: rows are never null, so only the record's branch is written.
    """

    def __init__(self, schema: pa.Schema, avro: Type, header: bytes = b"") -> None:
        self._record, _ = avro.without_null()
        self._branch = avro.branches.index(self._record) if avro.branches else None
        self._header = header
        self._plain = _flatteners(schema, self._record, pa.binary())
        self._posing = _flatteners(schema, self._record, pa.string())
        self._schema = self._native_schema()
        fields = enumerate(self._record.fields)
        self._checked = [
            (at, field.type) for at, field in fields if _can_break_not_null(field.type)
        ]

    def write(self, rows: pa.RecordBatch) -> list[bytes]:
        """Encode each row; raises RecordError naming row and column."""
        if rows.num_rows > 1 and _is_huge(rows):
            half = rows.num_rows // 2
            return self.write(rows.slice(0, half)) + self.write(rows.slice(half))
        columns = rows.columns
        if not self._schema or any(
            _breaks_not_null(columns[at], avro) for at, avro in self._checked
        ):
            return self._one_by_one(rows)
        try:
            return self._natively(columns, rows.num_rows, self._schema)
        except (ValueError, pa.ArrowException):
            return self._one_by_one(rows)  # which says what is wrong, and where

    def _native_schema(self) -> str | None:
        front: list[tuple[str, Any]] = [("h", "boolean"), ("i", "float")] if self._header else []
        if self._branch is not None:
            front.append(("b", "long"))
        try:
            fields = Rewriting(widen=False).fields(self._record)
        except Unsupported:
            return None
        return json.dumps(record_schema("r", front + fields))

    def _natively(self, given: list[pa.Array], count: int, schema: str) -> list[bytes]:
        columns, names = [], []
        if self._header:
            columns.append(_constant(pa.bool_(), bytes(count // 8 + 1), count))
            columns.append(_constant(pa.float32(), self._header[1:] * count, count))
            names += ["h", "i"]
        if self._branch is not None:
            index = self._branch.to_bytes(8, "little")
            columns.append(_constant(pa.int64(), index * count, count))
            names.append("b")
        for place, (column, flatten) in enumerate(zip(given, self._posing, strict=True)):
            columns.append(flatten(column))
            names.append(f"f{place}")
        batch = pa.RecordBatch.from_arrays(columns, names)
        written: list[bytes] = serialize_record_batch(batch, schema, 1)[0].to_pylist()
        return written

    def _one_by_one(self, rows: pa.RecordBatch) -> list[bytes]:
        columns = []
        for field, column, flatten in zip(
            self._record.fields, rows.columns, self._plain, strict=True
        ):
            try:
                columns.append(flatten(column).to_pylist())
            except pa.ArrowException as error:
                raise RecordError(f"column '{field.name}': {error}") from None
        return [
            self._one(number, values) for number, values in enumerate(zip(*columns, strict=True))
        ]

    def _one(self, number: int, values: tuple[Any, ...]) -> bytes:
        out = bytearray(self._header)
        if self._branch is not None:
            put_long(out, self._branch)
        for field, value in zip(self._record.fields, values, strict=True):
            try:
                put(out, field.type, value)
            except BadValue as bad:
                bad.path.append(field.name)
                raise RecordError(f"row {number}: {bad}") from None
        return bytes(out)


def _flatteners(schema: pa.Schema, record: Type, bytes_as: pa.DataType) -> list[Any]:
    return [
        flattener(schema.field(place).type, field.type, bytes_as=bytes_as)
        for place, field in enumerate(record.fields)
    ]


def _constant(arrow: pa.DataType, data: bytes, count: int) -> pa.Array:
    return pa.Array.from_buffers(arrow, count, [None, pa.py_buffer(data)])


def _is_huge(rows: pa.RecordBatch) -> bool:
    # only the second look leaves out what lies around a slice, and it takes longer
    return bool(rows.get_total_buffer_size() > MOST_BYTES and rows.nbytes > MOST_BYTES)


def _can_break_not_null(avro: Type) -> bool:
    bare, nullable = avro.without_null()
    return not nullable or bare.kind in ("record", "array", "map")


def _breaks_not_null(column: pa.Array, avro: Type, present: pa.Array | None = None) -> bool:
    """Tell whether a null stands where Avro has none; what lies under a null row does not count."""
    bare, nullable = avro.without_null()
    if column.null_count:
        if not nullable:
            return present is None or bool(pc.any(pc.and_(column.is_null(), present)).as_py())
        present = column.is_valid() if present is None else pc.and_(present, column.is_valid())
    if bare.kind == "record":
        return any(
            _breaks_not_null(column.field(place), field.type, present)
            for place, field in enumerate(bare.fields)
        )
    if bare.kind == "array":
        return _breaks_not_null(column.flatten(), bare.items)
    if bare.kind == "map":
        return _breaks_not_null(column.items, bare.items)
    return False


class PlainEncoder:
    """Writes bare datums."""

    def __init__(self, schema: pa.Schema, avro: Type) -> None:
        self._writer = DatumWriter(schema, avro)

    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
        return self._writer.write(rows)
