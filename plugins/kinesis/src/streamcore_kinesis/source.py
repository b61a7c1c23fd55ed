"""Batch and streaming readers: plan slices of time on the driver, read them in tasks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from streamcore import PluginError, Table
from streamcore.failures import BadRecord, FailurePolicy
from streamcore.rows import Assembler, ValueFields, key_value
from streamcore.spark.reporting import report
from streamcore.spark.types import arrow_output

from .aggregation import MAGIC, unpack
from .client import READ_SECONDS, kinesis
from .fetching import Record, SliceReader
from .options import StreamTable
from .positions import (
    TRIM,
    Offset,
    Position,
    Shard,
    Slice,
    at_time,
    known_time,
    next_frontier,
    plan,
    roots,
)
from .probing import Stream
from .retrying import Caller
from .settings import Position as Start
from .settings import SourceSettings
from .subscribing import SubscribedSliceReader

VERSION = 1


@dataclass
class SlicePartition(InputPartition):
    """The slices one task reads."""

    slices: list[Slice]
    consumer: str = ""
    """The ARN of the consumer to subscribe with; empty when polling."""
    iterators: dict[str, str] = field(default_factory=dict)
    """Shard iterators at the starts of slices, as far as planning has left some."""


class SliceSource:
    """What batch and streaming reads share: the start, and reading slices in a task."""

    def __init__(self, connector: StreamTable, settings: SourceSettings, table: Table) -> None:
        self._connector, self._settings, self._table = connector, settings, table
        self._opened: Stream | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}  # clients stay where they were opened

    @property
    def _stream(self) -> Stream:
        if self._opened is None:
            self._opened = Stream(self._settings)
        return self._opened

    def _start(self) -> dict[str, Position]:
        """The first frontier: every shard that reading starts with, and where in it."""
        stream, start = self._stream, self._settings.position
        if start is Start.TRIM_HORIZON:
            return {shard.name: dict(TRIM) for shard in roots(stream.shards(fresh=True))}
        if start is Start.AT_TIMESTAMP and self._settings.timestamp is not None:
            moment = self._settings.timestamp
            found = stream.shards_from(moment)
            begin = at_time(int(moment.timestamp() * 1000))
        else:
            # A moment, never LATEST itself: a restart before the first record loses nothing.
            found = stream.shards(Type="AT_LATEST")
            begin = at_time(stream.now())
        return {shard.name: dict(begin) for shard in roots(found)}

    def _partitions(
        self,
        start: dict[str, Position],
        stop: dict[str, Position],
        shards: Sequence[Shard],
        tasks: int,
    ) -> list[SlicePartition]:
        ranges = {shard.name: (shard.first_hash, shard.last_hash) for shard in shards}
        slices = [
            Slice(name, start.get(name, TRIM), end, *ranges.get(name, (0, 2**128 - 1)))
            for name, end in stop.items()
            if start.get(name, TRIM) != end
        ]
        stream = self._stream
        consumer = stream.consumer.arn if slices and stream.consumer else ""
        at = {each.shard: stream.iterator_at(each.shard, each.start) for each in slices}
        return [
            SlicePartition(
                group,
                consumer,
                {each.shard: found for each in group if (found := at[each.shard])},
            )
            for group in plan(slices, tasks)
        ]

    @property
    def _margin(self) -> int:
        return int(self._settings.margin.total_seconds() * 1000)

    def _all_so_far(self) -> int:
        """A moment before which lies whatever has been written when this is called.

        It is waited for, so that the shards of then are known and their records can be seen.
        """
        stream = self._stream
        stream.shards(fresh=True)  # sets our idea of the service's clock
        moment = stream.now() + 1000  # which is told in whole seconds, rounded down
        stream.wait_for(moment + self._margin)
        stream.shards(fresh=True)
        return moment

    def _tasks(self) -> int:
        return self._settings.parallelism or os.cpu_count() or 2

    def _read(self, part: SlicePartition) -> Iterator[pa.RecordBatch]:
        from .deadletters import dead_letter_sender

        settings, connector = self._settings, self._connector
        endpoint = settings.endpoint
        silence = settings.fan_out.silence.total_seconds() if settings.fan_out else READ_SECONDS
        client = kinesis(
            endpoint.provider,
            endpoint.region,
            endpoint.url,
            verify=endpoint.verify,
            read_seconds=max(1.0, silence),
        )
        caller = Caller(client, endpoint, settings.retries)
        output = arrow_output(self._table.output)
        layout = key_value(self._table, (), "", ValueFields.ALL)
        assembler = Assembler(self._table, layout, None, connector.format, output)
        policy = FailurePolicy(
            connector.failure_handler, dead_letter_sender(connector, caller, settings)
        )
        counts = dict.fromkeys(("records", "bytes", "rows"), 0)
        marks: dict[str, float] = {}
        for each in part.slices:
            if settings.fan_out is None:
                reader = SliceReader(caller, settings, each, part.iterators.get(each.shard))
            else:
                reader = SubscribedSliceReader(
                    caller, settings, each, settings.fan_out, part.consumer
                )
            for records in reader.records():
                fetched = time.time()
                made = self._rows(each, records, assembler, policy)
                arrived = records[-1]["ApproximateArrivalTimestamp"].timestamp()
                marks["fetch-lag-ms"] = round((fetched - arrived) * 1000)
                marks["emit-lag-ms"] = round((time.time() - arrived) * 1000)
                counts["records"] += len(records)
                counts["bytes"] += sum(len(record["Data"]) for record in records)
                counts["rows"] += made.num_rows
                if made.num_rows:
                    yield made
        told = {
            **counts,
            "skipped": policy.skipped,
            "dead-lettered": policy.dead_lettered,
            "retries": caller.retries,
        }
        report(self._table, "source", told, marks, policy.notes)

    def _rows(
        self, part: Slice, records: list[Record], assembler: Assembler, policy: FailurePolicy
    ) -> pa.RecordBatch:
        flat = _entries(records, part, self._settings.unpack)
        values = [entry[0] for entry in flat]
        metadata = {
            key: _ARRAYS[key](flat, part) for key in assembler.metadata_keys if key in _ARRAYS
        }
        made = assembler.assemble([None] * len(flat), values, metadata)
        policy.apply(
            [
                BadRecord(
                    f"stream '{self._settings.stream_name}' shard '{part.shard}' "
                    f"sequence number {flat[index][2]['SequenceNumber']}",
                    reason,
                    flat[index][1].encode(),
                    values[index],
                    (
                        ("stream", self._settings.stream_name),
                        ("shard-id", part.shard),
                        ("sequence-number", flat[index][2]["SequenceNumber"]),
                    ),
                )
                for index, reason in made.rejected
            ]
        )
        return made.batch


Entry = tuple[bytes, str, Record, int]
"""A record's data, its partition key, the record it came in, and its place in that record."""


def _entries(records: list[Record], part: Slice, unpacking: bool) -> list[Entry]:
    if not unpacking or not any(record["Data"].startswith(MAGIC) for record in records):
        return [(record["Data"], record["PartitionKey"], record, 0) for record in records]
    return [entry for record in records for entry in _unpacked(record, part)]


def _unpacked(record: Record, part: Slice) -> list[Entry]:
    inside = unpack(record["Data"])
    if inside is None:
        return [(record["Data"], record["PartitionKey"], record, 0)]
    return [
        (sub.data, sub.partition_key, record, sub.number)
        for sub in inside
        if part.first_hash <= sub.hash_key <= part.last_hash  # the rest went to another shard
    ]


_ARRAYS: dict[str, Any] = {
    "timestamp": lambda flat, _: pa.array(
        [entry[2]["ApproximateArrivalTimestamp"] for entry in flat], pa.timestamp("ms", "UTC")
    ),
    "shard-id": lambda flat, part: pa.repeat(pa.scalar(part.shard), len(flat)),
    "sequence-number": lambda flat, _: pa.array(
        [e[2]["SequenceNumber"] for e in flat], pa.string()
    ),
    "sub-sequence-number": lambda flat, _: pa.array([e[3] for e in flat], pa.int64()),
    "partition-key": lambda flat, _: pa.array([entry[1] for entry in flat], pa.string()),
}


class KinesisStreamReader(SliceSource, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream batch by batch; its offsets are all it needs to remember."""

    def __init__(self, connector: StreamTable, settings: SourceSettings, table: Table) -> None:
        super().__init__(connector, settings, table)
        self._initial: Offset | None = None
        self._until: int | None = None
        self._reached = 0

    def initialOffset(self) -> Offset:
        if self._initial is None:
            self._initial = {"version": VERSION, "initial": True, "shards": self._start()}
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self._all_so_far()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        _check_version(start)
        stream = self._stream
        if stream.consumer is not None:  # a query runs: one that is only looked at never comes here
            stream.consumer.prepare()
        stream.wait_until_due()
        frontier = next_frontier(start["shards"], stream.shards())
        horizon = self._horizon() if self._until is None else self._until
        ends, busy = stream.ends(frontier, horizon, returning="initial" not in start)
        while not busy and self._until is not None and stream.unsure:
            ends, busy = stream.ends(frontier, horizon)  # no later call would look any further
        self._reached = min((known_time(end) or horizon for end in ends.values()), default=horizon)
        if not busy and not start.get("initial"):
            if self._until is not None and stream.consumer:  # the last call of this query
                stream.consumer.remove()
            return start
        end: Offset = {
            "version": VERSION,
            "shards": dict(sorted(ends.items())),
            "tasks": self._tasks(),
            "at": self._reached,
        }
        if start.get("initial"):
            # Spark runs a first batch whatever there is to read, and does not keep where it began;
            # a replay must begin there again.
            end["began"] = start["shards"]
        return end

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        _check_version(start, end)
        begun: dict[str, Position] = start["shards"]
        if start.get("initial"):
            begun = end.get("began", begun)
        return self._partitions(begun, end["shards"], self._stream.shards(), end.get("tasks", 1))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SlicePartition)
        return self._read(partition)

    def stop(self) -> None:
        if self._opened is not None and self._opened.consumer is not None:
            self._opened.consumer.remove()

    def reportLatestOffset(self) -> Offset:
        return {"version": VERSION, "at": self._reached + self._stream.behind}

    def _horizon(self) -> int:
        return self._stream.now() - self._margin


class KinesisReader(SliceSource, DataSourceReader):
    """Reads a stream once, from its start position up to now."""

    def partitions(self) -> Sequence[InputPartition]:
        stream = self._stream
        frontier = self._start()
        horizon = self._all_so_far()
        shards = stream.shards()
        # Children of the frontier's shards are read as well; in one batch there is no waiting.
        below = _descendants(frontier, shards)
        start = {**{name: dict(TRIM) for name in below}, **frontier}
        stop = stream.final_ends(start, horizon)
        return self._partitions(start, stop, shards, self._tasks())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SlicePartition)
        return self._read(partition)


def _check_version(*offsets: Offset) -> None:
    for offset in offsets:
        version = offset.get("version", VERSION)
        if version > VERSION:
            raise PluginError(
                f"the checkpoint holds offsets of version {version}, and this streamcore-kinesis "
                f"reads them up to version {VERSION}. Install the version that wrote them, or "
                "start with a new checkpoint."
            )


def _descendants(frontier: dict[str, Position], shards: Sequence[Shard]) -> list[str]:
    known = set(frontier)
    found: list[str] = []
    for shard in sorted(shards, key=lambda s: s.name):  # children have later names than parents
        if shard.name not in known and known.intersection(shard.parents):
            known.add(shard.name)
            found.append(shard.name)
    return found
