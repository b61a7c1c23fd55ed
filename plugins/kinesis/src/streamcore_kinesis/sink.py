"""Batch and streaming writers: rows to records, each with its partition key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from streamcore import Table, Target
from streamcore.rows import Splitter, ValueFields, key_value
from streamcore.spark.reporting import report
from streamcore.spark.task import Task

from .options import StreamTable
from .partition_keys import spelled_keys
from .partitioners import random_keys
from .putting import Putter
from .settings import SinkSettings


@dataclass
class Written(WriterCommitMessage):
    """What one task put to the stream."""

    records: int
    bytes: int
    requests: int
    retried: int


class RecordWriter:
    """Writes the rows of one task, and returns once the stream has accepted all of them."""

    def __init__(self, connector: StreamTable, settings: SinkSettings, table: Table) -> None:
        self._connector, self._settings, self._table = connector, settings, table

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        layout = key_value(self._table, (), "", ValueFields.ALL)
        splitter = Splitter(self._table, layout, {})
        encoder = self._connector.format.encoder(layout.value_schema)
        target = Target(self._settings.stream_name, 0, Task.current().partition)
        with Putter(self._settings) as putter:
            for batch in iterator:
                split = splitter.split(batch)
                keys = self._keys(split.value, target)
                encoded = encoder.encode(split.value, split.kinds)
                putter.put_all(zip(encoded, keys, strict=True))
        counts = {"rows": putter.records, "bytes": putter.bytes, "retries": putter.retried}
        marks = {"send-ms": round(putter.seconds * 1000, 3)} if putter.records else {}
        report(self._table, "sink", counts, marks)
        return Written(putter.records, putter.bytes, putter.requests, putter.retried)

    def _keys(self, rows: pa.RecordBatch, target: Target) -> Sequence[str]:
        if self._table.partition_keys:
            return spelled_keys(rows, self._table.partition_keys, self._settings.delimiter)
        chosen = None
        if self._connector.partitioner is not None:
            chosen = self._connector.partitioner.assign_keys(rows, target)
        return chosen if chosen is not None else random_keys(rows.num_rows)


class KinesisWriter(RecordWriter, DataSourceArrowWriter):
    """Writes a batch query's rows."""


class KinesisStreamWriter(RecordWriter, DataSourceStreamArrowWriter):
    """Writes a streaming query's rows; a task that runs again writes its rows again."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to do: a task returns only when the stream has its records."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to undo: records cannot be taken back from a stream."""
