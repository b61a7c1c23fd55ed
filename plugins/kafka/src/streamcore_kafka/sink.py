"""Writes tables to Kafka: the batch writer and the streaming writer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from streamcore import Table
from streamcore.failpoints import reach
from streamcore.spark.reporting import report
from streamcore.spark.task import Task

from .connector import Delivery
from .messages import MessageEncoder, Messages, PartitionIds, RowEncoder, check_routing

if TYPE_CHECKING:
    import pyarrow as pa

    from .connector import Kafka
    from .sender import Sender
    from .tickets import Ticket


_WEAK = {"acks": 1, "enable.idempotence": False}
"""What 'none' asks of the brokers, unless the properties say it themselves."""


@dataclass
class Written(WriterCommitMessage):
    """What one task has written; the driver sees it when the batch is committed."""

    task: Task
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    repeated: bool = False


class _Counted:
    """Counts the rows that pass."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches, self.count = batches, 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.count += batch.num_rows
            yield batch


class _Writing:
    """What both writers share: everything but how Spark reports the end."""

    def __init__(self, kafka: Kafka, table: Table) -> None:
        check_routing(kafka, table)
        self._kafka, self._table = kafka, table
        self._ticket: Ticket | None = None
        if kafka.guarantee is Delivery.EXACTLY_ONCE:
            from .tickets import Ticket

            self._ticket = Ticket.issue(kafka)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Called by Spark in a task, with the rows of one partition."""
        task, rows = Task.current(), _Counted(iterator)
        messages = self._encoded(iter(rows), task.partition)
        if self._ticket is None:
            sender: Sender | None = self._sent(messages)
        else:
            sender = self._in_transaction(messages, self._ticket, task, rows)
        written = Written(task)
        if sender is not None:
            written = Written(task, sender.rows, sender.bytes, sender.seconds, sender.repeated)
        self._report(written)
        return written

    def _report(self, written: Written) -> None:
        counts: dict[str, float] = {"rows": written.rows, "bytes": written.bytes}
        if self._ticket is not None and (written.rows or written.repeated):
            counts["repeated-transactions" if written.repeated else "transactions"] = 1
        marks = {"send-ms": round(written.seconds * 1000, 3)} if written.rows else {}
        report(self._table, "sink", counts, marks)

    def _encoded(self, iterator: Iterator[pa.RecordBatch], task: int) -> Iterator[Messages]:
        from .client import partitions_of

        encoder = self._encoder(task, partial(partitions_of, properties=self._kafka.properties))
        return (encoder.encode(batch) for batch in iterator if batch.num_rows)

    def _encoder(self, task: int, ids: PartitionIds) -> RowEncoder:
        """What turns rows into messages; a sink that differs only in this overrides it."""
        return MessageEncoder(self._kafka, self._table, task, ids)

    def _sent(self, messages: Iterator[Messages]) -> Sender:
        from .sender import Sender

        properties = self._kafka.properties
        weak = _WEAK if self._kafka.guarantee is Delivery.NONE else {}
        settings = {key: value for key, value in weak.items() if key not in properties}
        with Sender.borrowed(properties, **settings) as sender:
            for batch in messages:
                sender.send(batch)
        return sender

    def _in_transaction(
        self, messages: Iterator[Messages], ticket: Ticket, task: Task, rows: _Counted
    ) -> Sender | None:
        from .transactions import Transaction

        count = (lambda: rows.count) if self._merges() else None
        return Transaction(self._kafka.properties, ticket, task, count).write(messages)

    def _merges(self) -> bool:
        """Whether several rows may become one message; a sink that does so overrides it."""
        return False

    def _committed(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Keep the markers from expiring while a query has nothing to write."""
        written = [each for each in messages if isinstance(each, Written)]
        if self._ticket is not None and written and not any(each.rows for each in written):
            from .markers import Markers

            marker = self._ticket.marker(written[0].task)
            if marker.query:
                ticket = self._ticket
                Markers(self._kafka.properties, ticket.prefix, ticket.place).put_empty(marker)


class KafkaWriter(_Writing, DataSourceArrowWriter):
    """Writes a DataFrame, also one handed to foreachBatch."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Called by Spark on the driver, when every task has written."""
        self._committed(messages)


class KafkaStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """Writes the micro-batches of a streaming query."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Called by Spark on the driver, when every task of a batch has written."""
        reach("batch")
        self._committed(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Called by Spark on the driver, when a batch has failed; its tasks cleaned up already."""
