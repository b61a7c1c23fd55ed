"""A batch read of an upsert table: the latest row of every key that was not deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition
from streamcore import ROW_KIND, Table
from streamcore.spark.types import arrow_output
from streamcore_kafka.source import KafkaReader

from .origins import in_one_task, latest_changes, with_origins

if TYPE_CHECKING:
    from .connector import UpsertKafka


class SnapshotReader(KafkaReader):
    """Reads topics up to their end, and gives what the table holds then.

    A key of one topic is in one partition, and one task reads the whole of a partition, so each
    task can tell the latest row of its keys alone. Several topics are read by one task.
    """

    _kafka: UpsertKafka

    def __init__(self, kafka: UpsertKafka, table: Table) -> None:
        super().__init__(kafka, table, upsert=True)
        self._whole = with_origins(table, kafka)

    def partitions(self) -> Sequence[InputPartition]:
        return in_one_task(self._kafka, super().partitions())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        found = latest_changes(self._kafka, self._whole, partition.value or ())
        if found is None:
            return
        alive = found.filter(pc.not_equal(found.column(ROW_KIND), "-D"))
        if ROW_KIND in (column.name for column in self._table.output):
            inserts = pa.repeat(pa.scalar("+I"), alive.num_rows)
            at = alive.schema.get_field_index(ROW_KIND)
            alive = alive.set_column(at, ROW_KIND, inserts)
        output = arrow_output(self._table.output)
        yield from alive.select(output.names).cast(output).to_batches(max_chunksize=50_000)
