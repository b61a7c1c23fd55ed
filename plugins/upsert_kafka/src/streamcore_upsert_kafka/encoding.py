"""Changes of rows into messages: a value for an upsert, none for a delete, nothing for the past."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from streamcore import ROW_KIND, Encoder, Format, RecordError, Table
from streamcore.table import ROW_KINDS, ValueFields
from streamcore_kafka.messages import MessageEncoder, Messages, PartitionIds

if TYPE_CHECKING:
    from .connector import UpsertKafka


class Tombstone(Format):
    """Writes no value at all."""

    identifier = "tombstone"

    def encoder(self, schema: pa.Schema) -> Encoder:
        return _NoValue()


class _NoValue:
    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
        return [None] * rows.num_rows


class UpsertEncoder:
    """Encodes upserts and deletes each in their way, and keeps their order."""

    def __init__(
        self, kafka: UpsertKafka, table: Table, task: int, partition_ids: PartitionIds
    ) -> None:
        rows, keys = _without_kind(table), _keys_alone(table)
        gone = dataclasses.replace(kafka, format=Tombstone(), value_fields=ValueFields.EXCEPT_KEY)
        self._upserts = MessageEncoder(kafka, rows, task, partition_ids)
        self._deletes = MessageEncoder(gone, keys, task, partition_ids)
        self._key_names = [column.name for column in keys.columns]

    def encode(self, rows: pa.RecordBatch) -> Messages:
        """Encode a batch of changes; rows as they were before an update leave no message."""
        if ROW_KIND not in rows.schema.names:
            return self._upserts.encode(rows)
        rows = without_the_past(rows)
        deleted = pc.equal(rows.column(ROW_KIND), "-D")
        plain = rows.drop_columns([ROW_KIND])
        if not pc.any(deleted).as_py():
            return self._upserts.encode(plain)
        kept = self._upserts.encode(plain.filter(pc.invert(deleted)))
        gone = self._deletes.encode(plain.filter(deleted).select(self._key_names))
        gone.values = [None] * len(gone.keys or ())
        return _merged(kept, gone, deleted.to_pylist())


def without_the_past(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Leave out rows as they were before an update, or one could be taken for the latest."""
    if ROW_KIND not in rows.schema.names:
        return rows
    kinds = rows.column(ROW_KIND)
    known = pc.is_in(kinds, value_set=pa.array(ROW_KINDS, kinds.type))
    if not pc.all(known).as_py():
        wrong = kinds.filter(pc.invert(known))[0].as_py()
        said = "NULL" if wrong is None else f"'{wrong}'"
        raise RecordError(f"{ROW_KIND}: {said} is not one of {', '.join(ROW_KINDS)}")
    return rows.filter(pc.not_equal(kinds, "-U"))


def _merged(kept: Messages, gone: Messages, deleted: Sequence[bool]) -> Messages:
    """Put two encoded parts back into the order their rows had."""
    parts: dict[str, Any] = {}
    for field in dataclasses.fields(Messages):
        one, other = getattr(kept, field.name), getattr(gone, field.name)
        if one is None or isinstance(one, str):
            parts[field.name] = one
            continue
        first, second = iter(one), iter(other)
        parts[field.name] = [next(second) if is_gone else next(first) for is_gone in deleted]
    return Messages(**parts)


def _without_kind(table: Table) -> Table:
    columns = tuple(column for column in table.columns if column.name != ROW_KIND)
    return dataclasses.replace(table, columns=columns)


def _keys_alone(table: Table) -> Table:
    columns = tuple(
        column
        for column in table.columns
        if column.name in table.primary_key
        or (column.metadata and not column.virtual and column.name != ROW_KIND)
    )
    return dataclasses.replace(table, columns=columns)
