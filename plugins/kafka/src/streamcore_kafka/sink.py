"""Writes tables to Kafka: the batch writer and the streaming writer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from streamcore import Table
from streamcore.spark.task import Task

from .messages import MessageEncoder, check_routing

if TYPE_CHECKING:
    import pyarrow as pa

    from .connector import Kafka


@dataclass
class Written(WriterCommitMessage):
    """What one task has written; the driver sees it when the batch is committed."""

    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0


class _Writing:
    """What both writers share: everything but how Spark reports the end."""

    def __init__(self, kafka: Kafka, table: Table) -> None:
        check_routing(kafka, table)
        self._kafka, self._table = kafka, table

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Called by Spark in a task, with the rows of one partition."""
        from .client import partitions_of
        from .sender import Sender

        kafka, task = self._kafka, Task.current()
        ids = partial(partitions_of, properties=kafka.properties)
        sender = Sender(kafka.properties)
        encoder = MessageEncoder(kafka, self._table, task.partition, ids)
        try:
            for batch in iterator:
                if batch.num_rows:
                    sender.send(encoder.encode(batch))
            sender.flush()
        except BaseException:
            sender.discard()
            raise
        return Written(sender.rows, sender.bytes, sender.seconds)


class KafkaWriter(_Writing, DataSourceArrowWriter):
    """Writes a DataFrame, also one handed to foreachBatch."""


class KafkaStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """Writes the micro-batches of a streaming query."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Called by Spark on the driver, when every task of a batch has written."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Called by Spark on the driver, when a batch has failed; its tasks cleaned up already."""
