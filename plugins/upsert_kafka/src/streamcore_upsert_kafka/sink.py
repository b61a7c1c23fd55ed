"""Writes changes to a topic: what the kafka sink does, with tombstones and a buffer by key."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from streamcore_kafka.messages import Messages, PartitionIds, RowEncoder
from streamcore_kafka.sink import KafkaStreamWriter, KafkaWriter

from .encoding import UpsertEncoder, without_the_past
from .latest import LatestRows

if TYPE_CHECKING:
    from .connector import UpsertKafka


class UpsertWriter(KafkaWriter):
    """Writes a DataFrame of changes, also one handed to foreachBatch."""

    _kafka: UpsertKafka

    def _encoder(self, task: int, ids: PartitionIds) -> RowEncoder:
        return UpsertEncoder(self._kafka, self._table, task, ids)

    def _encoded(self, iterator: Iterator[pa.RecordBatch], task: int) -> Iterator[Messages]:
        return super()._encoded(reduced(iterator, self._kafka, self._table.primary_key), task)

    def _merges(self) -> bool:
        return bool(self._kafka.buffer_rows)


class UpsertStreamWriter(KafkaStreamWriter):
    """Writes the micro-batches of a streaming query of changes."""

    _kafka: UpsertKafka

    def _encoder(self, task: int, ids: PartitionIds) -> RowEncoder:
        return UpsertEncoder(self._kafka, self._table, task, ids)

    def _encoded(self, iterator: Iterator[pa.RecordBatch], task: int) -> Iterator[Messages]:
        return super()._encoded(reduced(iterator, self._kafka, self._table.primary_key), task)

    def _merges(self) -> bool:
        return bool(self._kafka.buffer_rows)


def reduced(
    batches: Iterator[pa.RecordBatch], kafka: UpsertKafka, keys: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Hand on only the latest row of each key, whenever enough keys or enough time have come up."""
    if not kafka.buffer_rows:
        yield from batches
        return
    buffer = LatestRows(keys)
    seconds = kafka.buffer_interval.total_seconds()
    emitted = time.monotonic()
    for changes in batches:
        batch = without_the_past(changes)
        for first in range(0, batch.num_rows, kafka.buffer_rows):
            buffer.add(batch.slice(first, kafka.buffer_rows))
            if buffer.count() >= kafka.buffer_rows or time.monotonic() - emitted >= seconds:
                yield from _batches(buffer)
                emitted = time.monotonic()
    yield from _batches(buffer)


def _batches(buffer: LatestRows) -> Iterator[pa.RecordBatch]:
    rows = buffer.take()
    if rows is not None:
        yield from rows.to_batches()
