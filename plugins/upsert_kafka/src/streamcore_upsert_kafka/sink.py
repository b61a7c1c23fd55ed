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


GROUP = 10_000
"""From so many keys on, the buffer looks at groups of rows."""


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
        return batches
    seconds = kafka.buffer_interval.total_seconds()
    by = _by_row if kafka.buffer_rows < GROUP else _by_group
    return by(map(without_the_past, batches), keys, kafka.buffer_rows, seconds)


def _by_row(
    batches: Iterator[pa.RecordBatch], keys: tuple[str, ...], most: int, seconds: float
) -> Iterator[pa.RecordBatch]:
    """Look at every row: with few keys to collect, groups of rows would be too small to be fast."""
    held: pa.RecordBatch | None = None
    emitted = time.monotonic()
    for batch in batches:
        rows = batch if held is None else pa.concat_batches([held, batch])
        ready: list[int] = []
        waiting: dict[tuple[int, ...], int] = {}
        codes = [rows.column(name).dictionary_encode().indices.to_pylist() for name in keys]
        for place, key in enumerate(zip(*codes, strict=True)):
            waiting[key] = place
            if len(waiting) >= most:
                ready += sorted(waiting.values())
                waiting.clear()
        if time.monotonic() - emitted >= seconds:
            ready += sorted(waiting.values())
            waiting.clear()
        if ready:
            emitted = time.monotonic()
            yield rows.take(pa.array(ready, pa.int64()))
        held = rows.take(pa.array(sorted(waiting.values()), pa.int64()))
    if held is not None and held.num_rows:
        yield held


def _by_group(
    batches: Iterator[pa.RecordBatch], keys: tuple[str, ...], most: int, seconds: float
) -> Iterator[pa.RecordBatch]:
    """Look at groups of as many rows as there may be keys; a few rows less may remain by that."""
    buffer = LatestRows(keys)
    emitted = time.monotonic()
    for batch in batches:
        for first in range(0, batch.num_rows, most):
            buffer.add(batch.slice(first, most))
            if buffer.count() >= most or time.monotonic() - emitted >= seconds:
                yield from _batches(buffer)
                emitted = time.monotonic()
    yield from _batches(buffer)


def _batches(buffer: LatestRows) -> Iterator[pa.RecordBatch]:
    rows = buffer.take()
    if rows is not None:
        yield from rows.to_batches()
