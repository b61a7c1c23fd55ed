"""Reads a `datagen` table, at once or as a stream that keeps its pace."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from streamcore import Table
from streamcore.spark.reporting import report
from streamcore.spark.types import arrow_output

from .generate import Generator, Stretch

if TYPE_CHECKING:
    from .datagen import Datagen

_BATCH = 10_000


def _now() -> int:
    return time.time_ns() // 1000


class _Part(InputPartition):
    """The rows of one task."""

    def __init__(self, stretch: Stretch) -> None:
        self.value = stretch


class _Source:
    def __init__(self, connector: Datagen, table: Table) -> None:
        self._connector, self._table = connector, table

    def _parts(self, whole: Stretch) -> Sequence[InputPartition]:
        most = self._connector.parallelism or min(
            os.cpu_count() or 1, -(-whole.count // _BATCH) or 1
        )
        return [_Part(piece) for piece in _cut(whole, -(-whole.count // most) or 1)]

    def _rows(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        schema = arrow_output(self._table.output)
        fields = [column.field for column in self._table.output]
        generator = Generator(fields, self._connector.rules())
        rows = 0
        for piece in _cut(part.value, _BATCH):
            yield generator.batch(piece, schema)
            rows += piece.count
        report(self._table, "source", {"records": rows, "rows": rows})


class DatagenReader(_Source, DataSourceReader):
    """All rows at once."""

    def partitions(self) -> Sequence[InputPartition]:
        total = self._connector.total()
        assert total is not None
        now = _now()
        return self._parts(Stretch(0, total, now, now))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._rows(partition)


class DatagenStreamReader(_Source, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """So many rows each second; the time a query was down is not made up for."""

    def __init__(self, connector: Datagen, table: Table) -> None:
        super().__init__(connector, table)
        self._pace: tuple[int, int] | None = None
        self._once = False

    def initialOffset(self) -> dict[str, Any]:
        return {"row": 0, "time": _now()}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._once = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        now, row = _now(), int(start["row"])
        if self._pace is None:
            self._pace = (row, now)
            if self._once:
                # A stream without an end has one second's worth of rows "available now".
                self._pace = (row, now - 1_000_000)
        first, since = self._pace
        end = first + (now - since) * self._connector.rows_per_second // 1_000_000
        total = self._connector.total()
        if self._once:
            end = first + self._connector.rows_per_second if total is None else total
        if total is not None:
            end = min(end, total)
        if isinstance(limit, ReadMaxRows):
            end = min(end, row + limit.max_rows)
        return start if end <= row else {"row": end, "time": now}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        first = int(start["row"])
        count = int(end["row"]) - first
        return self._parts(Stretch(first, count, int(start["time"]), int(end["time"])))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._rows(partition)


def _cut(whole: Stretch, size: int) -> Iterator[Stretch]:
    """Cut a stretch into pieces of at most `size` rows, each with its share of the time."""
    span = whole.until - whole.since
    for at in range(0, max(whole.count, 1), size):
        count = min(size, whole.count - at)
        since = whole.since + span * at // max(whole.count, 1)
        until = whole.since + span * (at + count) // max(whole.count, 1)
        yield Stretch(whole.first + at, count, since, until)
