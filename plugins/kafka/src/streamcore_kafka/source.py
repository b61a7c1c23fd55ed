"""Kafka tables as Spark reads them: as a batch, and as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from streamcore import Table

from .discovery import Cluster
from .fetching import record_size
from .group import GroupOffsets
from .planning import plan
from .progress import Progress, Range
from .reading import read_rows
from .tracking import Tracker

if TYPE_CHECKING:
    import pyarrow as pa

    from .connector import Kafka

_LAST_COMMIT_SECONDS = 5.0


class KafkaPartition(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        super().__init__(ranges)


class _Driver:
    """What lives in the driver while a query runs: never shipped to a task."""

    def __init__(self, kafka: Kafka, *, ordered: bool) -> None:
        self.cluster = Cluster(kafka)
        self.group = GroupOffsets(kafka, self.cluster)
        self.tracker = Tracker(
            kafka, self.cluster, lambda *where: record_size(kafka, *where), ordered=ordered
        )

    @cached_property
    def initial(self) -> Progress:
        """Spark may ask twice, and must get the same answer."""
        return self.tracker.initial()


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads topics batch by batch; what a batch holds is decided by its two offsets alone."""

    def __init__(self, kafka: Kafka, table: Table, *, upsert: bool = False) -> None:
        self._kafka, self._table, self._upsert = kafka, table, upsert
        self._opened: _Driver | None = None

    @property
    def _driver(self) -> _Driver:
        if self._opened is None:
            self._opened = _Driver(self._kafka, ordered=self._upsert)
        return self._opened

    def initialOffset(self) -> dict[str, Any]:
        return self._driver.initial.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._kafka.max_rows is not None:
            return ReadMaxRows(self._kafka.max_rows)
        if self._kafka.max_bytes is not None:
            return ReadMaxBytes(self._kafka.max_bytes)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._driver.tracker.fix_target()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Called for each batch, and once more when nothing is left.

        The batch that ended at `start` is committed by then, so this is where the group's offsets
        follow at the latest. `commit` comes too late: one batch behind, and never for the last.
        """
        before = Progress.from_json(start)
        self._driver.group.commit(before)
        everything = isinstance(limit, ReadAllAvailable)
        rows = None if everything else self._kafka.max_rows
        size = None if everything else self._kafka.max_bytes
        after = self._driver.tracker.advance(before, rows, size)
        if after is before:
            self._driver.group.settle(_LAST_COMMIT_SECONDS)  # there may be no later call
            return start
        end = after.to_json()
        self._driver.group.expect(end)
        return end

    def reportLatestOffset(self) -> dict[str, Any] | None:
        tracker = self._driver.tracker
        if not tracker.latest:
            return None
        report = Progress(tracker.latest).to_json()
        shown = {"offsets": report["offsets"]}
        if group := self._driver.group.report():
            shown["group"] = group
        return shown

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._driver.group.expect(end)  # once more, for one that an earlier run has planned
        after = Progress.from_json(end)
        readable = self._driver.tracker.still_readable(after)
        ranges = after.ranges_since(Progress.from_json(start))
        ranges = [each for each in ranges if each.partition in readable]
        return [KafkaPartition(share) for share in plan(ranges, after.tasks, after.split)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_rows(self._kafka, self._table, partition.value, upsert=self._upsert)

    def commit(self, end: dict[str, Any]) -> None:
        self._driver.group.commit(Progress.from_json(end))


class KafkaReader(DataSourceReader):
    """Reads topics once: up to the end the table declares, else up to the latest offset."""

    def __init__(self, kafka: Kafka, table: Table, *, upsert: bool = False) -> None:
        self._kafka, self._table, self._upsert = kafka, table, upsert

    def partitions(self) -> Sequence[InputPartition]:
        driver = _Driver(self._kafka, ordered=self._upsert)
        start = driver.tracker.initial()
        end = driver.tracker.advance(start, None, None)
        shares = plan(end.ranges_since(start), end.tasks, end.split)
        return [KafkaPartition(share) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark makes up a partition of nothing when there is none to read.
        return read_rows(self._kafka, self._table, partition.value or (), upsert=self._upsert)
