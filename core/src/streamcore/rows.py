"""Puts key, value and metadata columns together into a table's rows, and takes them apart again.

Every connector assembles and splits rows here, in Arrow, so that `key.fields`,
`key.fields-prefix`, `value.fields-include` and metadata columns mean the same everywhere.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .api import Decoded, Decoder, Format, Rejected
from .errors import Problem, RecordError
from .origins import every_pair, picked, upto, without_columns
from .table import ROW_KIND, ROW_KINDS, Column, Table, is_physical
from .table import ValueFields as ValueFields
from .types import nullable_inside

INSERT, UPDATE_AFTER, DELETE = (ROW_KINDS.index(kind) for kind in ("+I", "+U", "-D"))


@functools.cache
def _kind_texts() -> pa.Array:
    """Made when first needed: making an array imports pandas where that is installed."""
    return pa.array(ROW_KINDS, pa.string())


@functools.lru_cache(maxsize=16)
def _same_kind(code: int, count: int) -> pa.Array:
    """Most batches of a source are equally long, and most of their rows of one kind."""
    return pa.repeat(pa.scalar(ROW_KINDS[code], pa.string()), count)


@dataclass(frozen=True)
class KeyValue:
    """Which physical columns the key and the value of a message carry."""

    key_columns: tuple[str, ...]
    value_columns: tuple[str, ...]
    key_schema: pa.Schema
    value_schema: pa.Schema


def key_value(
    table: Table, key_fields: Sequence[str], prefix: str, include: ValueFields
) -> KeyValue:
    """Lay the physical columns out over key and value; the key format never sees the prefix."""
    physical = table.physical
    hidden = set(key_fields) if include is ValueFields.EXCEPT_KEY else set()
    value = tuple(name for name in physical.names if name not in hidden)
    key = [physical.field(name).with_name(name.removeprefix(prefix)) for name in key_fields]
    return KeyValue(
        tuple(key_fields), value, pa.schema(key), pa.schema([physical.field(n) for n in value])
    )


def key_problems(
    table: Table,
    key_format: Format | None,
    key_fields: Sequence[str],
    prefix: str,
    include: ValueFields,
) -> Iterator[Problem]:
    """Complain about a key that the columns or the format cannot give."""
    names = table.physical.names
    if key_format is None and key_fields:
        yield Problem("key.fields", "can only be declared together with 'key.format'")
    if key_format is not None and not key_fields:
        yield Problem("key.format", "needs one or more 'key.fields'")
    for name in key_fields:
        if name not in names:
            choice = ", ".join(names)
            yield Problem(
                "key.fields",
                f"'{name}' is not a physical column of the table; choose from {choice}",
            )
        elif not name.startswith(prefix):
            yield Problem(
                "key.fields-prefix",
                f"every field in 'key.fields' must start with '{prefix}', but '{name}' does not",
            )
    if prefix and include is ValueFields.ALL:
        yield Problem(
            "key.fields-prefix",
            "is not allowed while 'value.fields-include' is 'ALL'; "
            "set it to 'EXCEPT_KEY' so that key and value columns do not overlap",
        )
    if key_format is not None and key_format.changelog:
        yield Problem(
            "key.format",
            f"'{key_format.identifier}' carries updates and deletes; "
            "a key needs an insert-only format",
        )


@dataclass
class Assembled:
    """Rows in the table's column order, and the messages that gave none."""

    batch: pa.RecordBatch
    rejected: Sequence[Rejected]
    ignored: int


class Assembler:
    """Turns messages into rows of a table; built once per task."""

    def __init__(
        self,
        table: Table,
        layout: KeyValue,
        key_format: Format | None,
        value_format: Format,
        output: pa.Schema,
        *,
        upsert: bool = False,
    ) -> None:
        self._columns, self._output, self._upsert = table.output, output, upsert
        wanted = [c.name for c in table.output if is_physical(c)]
        in_value = set(layout.value_columns)
        self._stripped = dict(zip(layout.key_columns, layout.key_schema.names, strict=True))
        key_wanted = [n for n in wanted if n in self._stripped and (upsert or n not in in_value)]
        if upsert:
            key_wanted = key_wanted or list(layout.key_columns[:1])
        # One column at least, so that the format can count rows even for a bare COUNT(*).
        self._value_wanted = [n for n in wanted if n in in_value] or list(layout.value_columns[:1])
        keys = [c.metadata for c in table.output if c.metadata]
        self._format_keys = [k.removeprefix("value.") for k in keys if k.startswith("value.")]
        self.metadata_keys = tuple(
            k for k in keys if not k.startswith("value.") and k != "row-kind"
        )
        """Connector metadata the query reads; the connector supplies nothing else."""
        value_schema = layout.value_schema
        if upsert and not value_format.marks_nulls:  # a key column may be missing in the value
            value_schema = _all_nullable(value_schema)
        self._value: Decoder = _NothingInside()
        if layout.value_columns or self._format_keys:
            self._value = value_format.decoder(value_schema, self._value_wanted, self._format_keys)
        self._key = None
        if key_format is not None and (key_wanted or upsert):
            stripped = [self._stripped[n] for n in key_wanted]
            self._key = key_format.decoder(layout.key_schema, stripped)
        self._key_wanted = key_wanted

    def assemble(
        self,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        metadata: Mapping[str, pa.Array],
    ) -> Assembled:
        """Decode one batch; `metadata` has an array of one value per message for each key."""
        decoded = self._value.decode(values)
        rejected = list(decoded.rejected)
        rows, origin, kinds = decoded.rows, decoded.origin, decoded.kinds
        if self._upsert:
            rows, origin, kinds = self._with_tombstones(decoded, values)
        key_rows: list[pa.Array] = []
        ignored = decoded.ignored
        if self._key is not None:
            rows, origin, kinds, key_rows, bad, lost = self._join_keys(keys, rows, origin, kinds)
            ignored += lost
            known = {index for index, _ in rejected}
            rejected += [each for each in bad if each.index not in known]
        batch = self._project(rows, origin, kinds, key_rows, metadata)
        return Assembled(batch, sorted(rejected), ignored)

    def _with_tombstones(
        self, decoded: Decoded, values: Sequence[bytes | None]
    ) -> tuple[pa.RecordBatch, pa.Int32Array | None, pa.Int8Array | None]:
        """Put a delete, all its columns null, where each null value stood."""
        if not values.count(None):
            return decoded.rows, decoded.origin, None
        gone = pa.array([i for i, value in enumerate(values) if value is None], pa.int32())
        origin = decoded.origin if decoded.origin is not None else upto(decoded.rows.num_rows)
        there = pc.invert(pc.is_in(origin, value_set=gone))
        if not pc.all(there).as_py():  # a format that has rows for null values, too
            origin = origin.filter(there)
            decoded = replace(decoded, rows=decoded.rows.filter(there))
        upserts = pa.repeat(pa.scalar(UPDATE_AFTER, pa.int8()), len(origin))
        deletes = pa.repeat(pa.scalar(DELETE, pa.int8()), len(gone))
        kinds = pa.concat_arrays([upserts, deletes])
        nulls = [pa.nulls(len(gone), column.type) for column in decoded.rows.columns]
        both = [
            pa.concat_arrays([column, null])
            for column, null in zip(decoded.rows.columns, nulls, strict=True)
        ]
        whole = pa.concat_arrays([origin, gone])
        order = pc.sort_indices(whole)
        rows = pa.RecordBatch.from_arrays([c.take(order) for c in both], decoded.rows.schema.names)
        if not both:
            rows = without_columns(len(whole))
        origin = whole.take(order)
        if len(origin) == len(values) and origin.equals(upto(len(values))):
            origin = None  # one row per message again, which is the cheap case for all that follows
        return rows, origin, kinds.take(order)

    def _join_keys(
        self,
        keys: Sequence[bytes | None],
        rows: pa.RecordBatch,
        origin: pa.Int32Array | None,
        kinds: pa.Int8Array | None,
    ) -> tuple[Any, Any, Any, list[pa.Array], list[Rejected], int]:
        """Give every row the key columns of its message; a bad key costs the message.

        Messages of an upsert table whose key the format leaves out are counted, and no rows.
        """
        assert self._key is not None
        decoded = self._key.decode(keys)
        bad = [Rejected(index, f"key: {reason}") for index, reason in decoded.rejected]
        if self._upsert and keys.count(None):
            bad += [Rejected(i, "the key is null") for i, key in enumerate(keys) if key is None]
        if decoded.origin is None and origin is None and not bad:
            return rows, origin, kinds, decoded.rows.columns, bad, 0
        origin = origin if origin is not None else upto(rows.num_rows)
        if bad:
            costs = pa.array([index for index, _ in bad], pa.int32())
            kept = pc.indices_nonzero(pc.invert(pc.is_in(origin, value_set=costs)))
            rows, origin, kinds = picked(rows, origin, kinds, kept)
        of_keys = decoded.origin if decoded.origin is not None else upto(decoded.rows.num_rows)
        lost = 0
        if self._upsert:
            has_key = pc.is_in(origin, value_set=of_keys)
            lost = pc.count_distinct(origin.filter(pc.invert(has_key))).as_py()
            if lost:
                rows, origin, kinds = picked(rows, origin, kinds, pc.indices_nonzero(has_key))
        if pc.count_distinct(of_keys).as_py() == len(of_keys):
            # A message without a key has null key columns.
            match = pc.index_in(origin, value_set=of_keys)
        else:
            pick, match = every_pair(origin, of_keys)
            rows, origin, kinds = picked(rows, origin, kinds, pick)
        keys_of = [column.take(match) for column in decoded.rows.columns]
        return rows, origin, kinds, keys_of, bad, lost

    def _project(
        self,
        rows: pa.RecordBatch,
        origin: pa.Int32Array | None,
        kinds: pa.Int8Array | None,
        key_rows: list[pa.Array],
        metadata: Mapping[str, pa.Array],
    ) -> pa.RecordBatch:
        values = dict(zip(self._value_wanted, rows.columns, strict=False))
        extra = rows.columns[len(self._value_wanted) :]
        from_format = dict(zip(self._format_keys, extra, strict=True))
        from_key = dict(zip(self._key_wanted, key_rows, strict=bool(key_rows)))
        arrays = []
        for column, target in zip(self._columns, self._output, strict=True):
            array = self._array(
                column, rows.num_rows, origin, kinds, values, from_key, from_format, metadata
            )
            arrays.append(array if array.type == target.type else _cast(array, target.type))
        if not arrays:
            return without_columns(rows.num_rows)
        return pa.RecordBatch.from_arrays(arrays, schema=self._output)

    def _array(
        self,
        column: Column,
        count: int,
        origin: pa.Int32Array | None,
        kinds: pa.Int8Array | None,
        values: Mapping[str, pa.Array],
        from_key: Mapping[str, pa.Array],
        from_format: Mapping[str, pa.Array],
        metadata: Mapping[str, pa.Array],
    ) -> pa.Array:
        if column.name == ROW_KIND or column.metadata == "row-kind":
            if kinds is None:
                return _same_kind(UPDATE_AFTER if self._upsert else INSERT, count)
            return _kind_texts().take(kinds)
        if column.metadata is None:
            if column.name not in values:
                return from_key[column.name]
            found = values[column.name]
            if self._upsert and found.null_count and column.name in from_key:
                return pc.coalesce(found, from_key[column.name])  # a tombstone has only its key
            return found
        if column.metadata.startswith("value."):
            return _cast(from_format[column.metadata.removeprefix("value.")], column.field.type)
        whole = metadata[column.metadata]
        return _cast(whole if origin is None else whole.take(origin), column.field.type)


class _NothingInside:
    """Stands in for a value format when every column is in the key: one row per message."""

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        present = [index for index, value in enumerate(messages) if value is not None]
        return Decoded(without_columns(len(present)), pa.array(present, pa.int32()))


@dataclass
class Split:
    """Rows taken apart for writing."""

    key: pa.RecordBatch | None
    value: pa.RecordBatch
    metadata: Mapping[str, pa.Array]
    kinds: pa.Int8Array | None


class Splitter:
    """Takes rows of a table apart into key, value, metadata and kinds; built once per task."""

    def __init__(
        self, table: Table, layout: KeyValue, metadata_types: Mapping[str, pa.DataType]
    ) -> None:
        self._table, self._layout, self._types = table, layout, metadata_types
        self._not_null = [c.name for c in table.writable if not c.nullable and is_physical(c)]

    def split(self, batch: pa.RecordBatch) -> Split:
        """Split a batch whose columns carry the table's writable columns, by name."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if missing := [c.name for c in self._table.writable if c.name not in columns]:
            raise RecordError(f"the rows lack the table's columns {', '.join(missing)}")
        for name in self._not_null:
            if columns[name].null_count:
                row = pc.index(columns[name].is_null(), True).as_py()
                raise RecordError(f"row {row}: column '{name}' is NOT NULL but its value is null")
        layout = self._layout
        key = (
            self._part(columns, layout.key_columns, layout.key_schema)
            if layout.key_columns
            else None
        )
        value = self._part(columns, layout.value_columns, layout.value_schema)
        metadata = {
            c.metadata: _as_metadata(c, columns[c.name], self._types[c.metadata])
            for c in self._table.writable
            if c.metadata and c.metadata in self._types
        }
        kinds = None
        if ROW_KIND in columns:
            kinds = pc.index_in(columns[ROW_KIND], value_set=_kind_texts()).cast(pa.int8())
            if kinds.null_count:
                strange = columns[ROW_KIND].filter(kinds.is_null())[0]
                raise RecordError(f"'{strange}' in {ROW_KIND} is not one of {', '.join(ROW_KINDS)}")
        return Split(key, value, metadata, kinds)

    def _part(
        self, columns: Mapping[str, pa.Array], names: Sequence[str], schema: pa.Schema
    ) -> pa.RecordBatch:
        loose = [field.with_type(nullable_inside(field.type)) for field in _all_nullable(schema)]
        arrays = [
            _cast(columns[name], field.type) for name, field in zip(names, loose, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(loose))


def castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether metadata of one type can be declared as a column of the other."""
    try:
        pc.cast(pa.nulls(0, source), target)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return False
    return True


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type == target:
        return array
    return pc.cast(array, target, safe=False)


def _as_metadata(column: Column, array: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return _cast(array, target)
    except pa.ArrowInvalid as error:  # it quotes the value, and says what it expected
        place = f"column '{column.name}', metadata '{column.metadata}'"
        raise RecordError(f"{place}: {error}") from None


def _all_nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])
