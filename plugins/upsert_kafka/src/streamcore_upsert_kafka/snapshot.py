"""A batch read of an upsert table: the latest row of every key that was not deleted."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition
from streamcore import ROW_KIND, Column, Table
from streamcore.spark.types import arrow_output
from streamcore_kafka.reading import read_rows
from streamcore_kafka.source import KafkaReader

from .latest import LatestRows

if TYPE_CHECKING:
    from .connector import UpsertKafka

_KIND = Column(ROW_KIND, "STRING", metadata="row-kind", virtual=True)


class SnapshotReader(KafkaReader):
    """Reads a topic up to its end, and gives what the table holds then.

    A key's messages are all in one partition, and one task reads the whole of a partition, so
    each task can tell the latest row of its keys alone.
    """

    def __init__(self, kafka: UpsertKafka, table: Table) -> None:
        super().__init__(kafka, table, upsert=True)
        self._whole = _with_key_and_kind(table)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = LatestRows(self._table.primary_key)
        ranges = partition.value or ()
        for batch in read_rows(self._kafka, self._whole, ranges, upsert=True):
            rows.add(batch)
        found = rows.take()
        if found is None:
            return
        alive = found.filter(pc.not_equal(found.column(ROW_KIND), "-D"))
        if ROW_KIND in (column.name for column in self._table.output):
            inserts = pa.repeat(pa.scalar("+I"), alive.num_rows)
            at = alive.schema.get_field_index(ROW_KIND)
            alive = alive.set_column(at, ROW_KIND, inserts)
        output = arrow_output(self._table.output)
        yield from alive.select(output.names).cast(output).to_batches(max_chunksize=50_000)


def _with_key_and_kind(table: Table) -> Table:
    """The table as the task must read it: with every key column and the kind of change."""
    columns = table.columns if ROW_KIND in table.by_name else (*table.columns, _KIND)
    wanted = [column.name for column in table.output]
    missing = [name for name in (*table.primary_key, ROW_KIND) if name not in wanted]
    whole = dataclasses.replace(table, columns=columns)
    return whole.reading([*wanted, *missing])
