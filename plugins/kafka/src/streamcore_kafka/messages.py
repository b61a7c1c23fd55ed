"""Rows of a table into Kafka messages: key, value, topic, partition, timestamp and headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from streamcore import OptionError, Partitioner, Problem, RecordError, Table, Target
from streamcore.rows import Splitter, key_value

from .explain import UnknownTopics
from .topics import java_pattern, matches
from .validation import written_formats

if TYPE_CHECKING:
    from .connector import Kafka

Headers = list[tuple[str, bytes | None]]
PartitionIds = Callable[[str], Sequence[int]]
_METADATA = {
    "topic": pa.string(),
    "timestamp": pa.timestamp("ms", "UTC"),
    "headers": pa.map_(pa.string(), pa.binary()),
    "header-list": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}
_CLIENT_CHOOSES, _CLIENT_DATES = -1, 0


@dataclass(slots=True)
class Messages:
    """A batch of messages in columns; what is None is the same for all: absent."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    topic: str | Sequence[str]
    partitions: Sequence[int] | None = None
    timestamps: Sequence[int] | None = None
    headers: Sequence[Headers | None] | None = None


class RowEncoder(Protocol):
    """Turns batches of rows into messages."""

    def encode(self, rows: pa.RecordBatch) -> Messages: ...


class MessageEncoder:
    """Encodes the rows of one task; `partition_ids` is asked for the partitions of a topic."""

    def __init__(self, kafka: Kafka, table: Table, task: int, partition_ids: PartitionIds) -> None:
        layout = key_value(table, kafka.key_fields, kafka.key_prefix, kafka.value_fields)
        self._splitter = Splitter(table, layout, _METADATA)
        self._router = Router(kafka)
        value, key = written_formats(kafka)
        self._value = value.encoder(layout.value_schema)
        self._key = key.encoder(layout.key_schema) if key else None
        self._partitioner, self._task, self._ids = kafka.partitioner, task, partition_ids
        self._seen: set[str] = set()

    def encode(self, rows: pa.RecordBatch) -> Messages:
        """Encode a batch; raises RecordError for a row that cannot be written."""
        split = self._splitter.split(rows)
        values = self._value.encode(split.value, split.kinds)
        keys = None
        if self._key is not None and split.key is not None:
            keys = self._key.encode(split.key)
        topic = self._router.topics(split.metadata.get("topic"))
        self._check_existence(topic)
        messages = Messages(values, keys, topic)
        messages.partitions = self._partitions(rows, keys, topic)
        if "timestamp" in split.metadata:
            messages.timestamps = _timestamps(split.metadata["timestamp"])
        if "headers" in split.metadata:
            messages.headers = _from_map(split.metadata["headers"])
        elif "header-list" in split.metadata:
            messages.headers = _from_list(split.metadata["header-list"])
        return messages

    def _check_existence(self, topic: str | Sequence[str]) -> None:
        """Ask for each topic once, since the client would look for a missing one for long."""
        missing: list[UnknownTopics] = []
        for name in sorted(({topic} if isinstance(topic, str) else set(topic)) - self._seen):
            try:
                self._ids(name)
                self._seen.add(name)
            except UnknownTopics as unknown:
                missing.append(unknown)
        if missing:
            names = [name for unknown in missing for name in unknown.names]
            raise UnknownTopics(missing[0].servers, *names)

    def _partitions(
        self,
        rows: pa.RecordBatch,
        keys: Sequence[bytes | None] | None,
        topic: str | Sequence[str],
    ) -> Sequence[int] | None:
        if self._partitioner.identifier == "default":
            return None
        given = keys if keys is not None else [None] * rows.num_rows
        if isinstance(topic, str):
            return self._assigned(rows, given, topic)
        chosen: list[int] = [_CLIENT_CHOOSES] * rows.num_rows
        for name in dict.fromkeys(topic):
            places = [at for at, each in enumerate(topic) if each == name]
            part = self._assigned(rows.take(pa.array(places)), [given[at] for at in places], name)
            for at, partition in zip(places, part or (), strict=False):
                chosen[at] = partition
        return chosen

    def _assigned(
        self, rows: pa.RecordBatch, keys: Sequence[bytes | None], topic: str
    ) -> Sequence[int] | None:
        ids = self._ids(topic)
        picked = self._partitioner.assign(rows, keys, Target(topic, len(ids), self._task))
        if picked is None:
            return None
        try:
            return [_CLIENT_CHOOSES if at is None else ids[_in_range(at)] for at in picked]
        except IndexError:
            raise _out_of_range(self._partitioner, picked, topic, len(ids)) from None


class Router:
    """Which topic each row goes to: the one there is, or the one the row names."""

    def __init__(self, kafka: Kafka) -> None:
        self._allowed = frozenset(kafka.topic)
        self.fixed = kafka.topic[0] if len(self._allowed) == 1 else None
        """The only topic; a row's own choice then does not count."""
        self._pattern: re.Pattern[str] | None = None
        if kafka.topic_pattern is not None:
            self._pattern = java_pattern(kafka.topic_pattern)
            self._pattern_text = kafka.topic_pattern

    def topics(self, named: pa.Array | None) -> str | Sequence[str]:
        """The topic of every row, or the one for all; raises for a topic that is not allowed."""
        if self.fixed is not None:
            return self.fixed
        assert named is not None, "checked before the first row"
        if named.null_count:
            row = pc.index(named.is_null(), True).as_py()
            raise RecordError(f"row {row}: topic: expected a single topic but none set")
        for topic in pc.unique(named).to_pylist():
            self._check(topic)
        topics: list[str] = named.to_pylist()
        return topics

    def _check(self, topic: str) -> None:
        if self._pattern is None:
            if topic not in self._allowed:
                names = ", ".join(sorted(self._allowed))
                raise RecordError(f"topic: expected one of [{names}] but was '{topic}'")
        elif not matches(self._pattern, topic):
            raise RecordError(
                f"topic: expected a match of '{self._pattern_text}' but was '{topic}'"
            )


def check_routing(kafka: Kafka, table: Table) -> None:
    """Refuse a table that leaves the topic to its rows without a column for it."""
    if Router(kafka).fixed is None and "topic" not in {c.metadata for c in table.writable}:
        given = "topic-pattern" if kafka.topic_pattern is not None else "topic"
        trouble = "allows several topics, so rows must name theirs: declare a column METADATA"
        name = f"table '{table.name}'" if table.name else "the table"
        raise OptionError(name, [Problem(given, f"{trouble} FROM 'topic'")])


def _in_range(at: int) -> int:
    if at < 0:
        raise IndexError
    return at


def _out_of_range(
    partitioner: Partitioner, picked: Sequence[int | None], topic: str, count: int
) -> RecordError:
    wrong = next(at for at in picked if at is not None and not 0 <= at < count)
    return RecordError(
        f"partitioner '{partitioner.identifier}' chose partition {wrong} of topic '{topic}', "
        f"which has {count}; choose 0 to {count - 1}"
    )


def _timestamps(column: pa.Array) -> Sequence[int]:
    millis = column.cast(pa.int64())
    if millis.null_count < len(millis) and pc.min(millis).as_py() < 0:
        row = pc.index(pc.less(millis, 0), True).as_py()
        raise RecordError(f"row {row}: timestamp: {column[row]} is before 1970")
    # The client takes 0 for "now"; a millisecond late is closer to what the row says.
    given = pc.if_else(pc.equal(millis, 0), 1, millis)
    dated: list[int] = pc.fill_null(given, _CLIENT_DATES).to_pylist()
    return dated


def _from_map(column: pa.Array) -> Sequence[Headers | None]:
    return [
        None if pairs is None else [(key, value) for key, value in pairs if key is not None]
        for pairs in column.to_pylist()
    ]


def _from_list(column: pa.Array) -> Sequence[Headers | None]:
    def headers(entries: list[dict[str, Any] | None] | None) -> Headers | None:
        kept = [e for e in entries or () if e is not None and e["key"] is not None]
        return [(entry["key"], entry["value"]) for entry in kept]

    return [headers(entries) for entries in column.to_pylist()]
