"""A streaming read for normalisation: of each key only the latest change of a micro-batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from streamcore import ROW_KIND, Column, Table
from streamcore.spark.task import Task
from streamcore.spark.types import arrow_output
from streamcore_kafka.reading import read_rows
from streamcore_kafka.source import KafkaStreamReader

from .latest import LatestRows

if TYPE_CHECKING:
    from .connector import UpsertKafka

BATCH = Column("_batch", "BIGINT", metadata="batch", virtual=True)
"""The number of the micro-batch a row came in; only tables that are normalised have it."""


_KIND = Column(ROW_KIND, "STRING", metadata="row-kind", virtual=True)


class CollapsingStreamReader(KafkaStreamReader):
    """Reads changes; a key's are all in one partition, and one task reads a partition's range."""

    def __init__(self, kafka: UpsertKafka, table: Table) -> None:
        super().__init__(kafka, table, upsert=True)
        names = [column.name for column in table.output if column.metadata != "batch"]
        self._read_as = dataclasses.replace(
            table, columns=tuple(c for c in table.columns if c.metadata != "batch")
        ).reading(names)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = LatestRows(self._table.primary_key)
        for batch in read_rows(self._kafka, self._read_as, partition.value, upsert=True):
            rows.add(batch)
        found = rows.take()
        if found is None:
            return
        number = pa.scalar(Task.current().batch or 0, pa.int64())
        for column in self._table.output:
            if column.metadata == "batch":
                found = found.append_column(column.name, pa.repeat(number, found.num_rows))
        output = arrow_output(self._table.output)
        yield from found.select(output.names).cast(output).to_batches(max_chunksize=50_000)


def with_batch(table: Table) -> Table:
    """The table as normalisation reads it: with its key, the kind of change, and the batch."""
    columns = [c for c in (_KIND, BATCH) if c.name not in table.by_name]
    wanted = [column.name for column in table.output]
    more = [n for n in (*table.primary_key, ROW_KIND, BATCH.name) if n not in wanted]
    whole = dataclasses.replace(table, columns=(*table.columns, *columns))
    return whole.reading([*wanted, *more])
