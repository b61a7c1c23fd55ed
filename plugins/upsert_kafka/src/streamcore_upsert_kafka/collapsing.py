"""A streaming read for normalisation: of each key only the latest change of a micro-batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from streamcore import Column, Table
from streamcore.spark.task import Task
from streamcore.spark.types import arrow_output
from streamcore_kafka.source import KafkaStreamReader

from .origins import in_one_task, latest_changes, with_key_and_kind, with_origins

if TYPE_CHECKING:
    from .connector import UpsertKafka

BATCH = Column("_batch", "BIGINT", metadata="offset", virtual=True)
"""The number of the micro-batch a row came in.

It has no metadata key of its own, which tables could declare: it goes by that of the offset.
"""


class CollapsingStreamReader(KafkaStreamReader):
    """Reads one change of each key, as far as a task sees them."""

    _kafka: UpsertKafka

    def __init__(self, kafka: UpsertKafka, table: Table) -> None:
        super().__init__(kafka, table, upsert=True)
        names = [column.name for column in table.output if column.name != BATCH.name]
        columns = tuple(column for column in table.columns if column.name != BATCH.name)
        plain = dataclasses.replace(table, columns=columns).reading(names)
        self._read_as = with_origins(plain, kafka)

    def partitions(
        self, start: dict[str, object], end: dict[str, object]
    ) -> Sequence[InputPartition]:
        return in_one_task(self._kafka, super().partitions(start, end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        found = latest_changes(self._kafka, self._read_as, partition.value or ())
        if found is None:
            return
        number = pa.scalar(Task.current().batch or 0, pa.int64())
        found = found.append_column(BATCH.name, pa.repeat(number, found.num_rows))
        output = arrow_output(self._table.output)
        yield from found.select(output.names).cast(output).to_batches(max_chunksize=50_000)


def with_batch(table: Table) -> Table:
    """The table as normalisation reads it: with its key, the kind of change, and the batch."""
    keyed = with_key_and_kind(table)
    whole = dataclasses.replace(keyed, columns=(*keyed.columns, BATCH))
    return whole.reading([*(column.name for column in keyed.output), BATCH.name])


def is_collapsed(table: Table) -> bool:
    """Whether a read is asked for what normalisation needs."""
    return BATCH in table.output
