"""Markers of written batches, kept as committed offsets of consumer groups on the brokers.

Group `<prefix>-marker` tells which batch was written last and by whom, group
`<prefix>-marker-<task>` what one task has written of it. Both are committed together with the
rows, in the same transaction, so they say neither more nor less than what readers can see.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from .client import (
    Producer,
    TopicPartition,
    admin,
    committed,
    group_consumer,
    patiently,
)
from .keystores import Settings


@dataclass(frozen=True)
class Marker:
    """What was written, by whom: a batch of a run of a query, of which `write` is one attempt."""

    query: str
    run: str
    write: str
    batch: int
    tasks: int = 0
    """The number of tasks, if 'sink.parallelism' says so; 0: not known."""
    rows: int = 0
    checksum: int = 0

    def to_text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Marker | None:
        """None for what someone else has put there, such as a tool that set an offset."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None

    def same_run(self, other: Marker) -> bool:
        return (self.query, self.run) == (other.query, other.run)

    def by(self) -> str:
        """The writer, as an error names it."""
        if not self.query:
            return "a batch job"
        return f"query {self.query} (run {self.run.rpartition('/')[2]}, batch {self.batch})"


class Markers:
    """The markers under one prefix, kept as offsets of partition 0 of a topic."""

    def __init__(self, properties: Settings, prefix: str, topic: str) -> None:
        self._properties, self._topic = properties, topic
        self._group = f"{prefix}-marker"

    @classmethod
    def find(
        cls, properties: Settings, prefix: str, topics: Iterable[str]
    ) -> tuple[str | None, Marker | None]:
        """The last batch's marker and the topic it is kept with, of all the table's topics."""
        places = [TopicPartition(topic, 0) for topic in sorted(set(topics))]
        found = [p for p in committed(properties, f"{prefix}-marker", places) if p.offset >= 0]
        if not found:
            return None, None
        newest = max(found, key=lambda place: int(place.offset))
        return newest.topic, Marker.from_text(newest.metadata)

    def of_batch(self) -> Marker | None:
        """The marker of the batch written last, as far as it is known by now."""
        return self._read(self._group)

    def of_task(self, task: int) -> Marker | None:
        """The marker of what a task has written last."""
        return self._read(f"{self._group}-{task}")

    def of_all_tasks(self) -> Mapping[int, Marker]:
        """The marker of every task that has one; lists all groups, so it is for rare cases."""
        asking = admin(self._properties)
        listed = patiently(
            asking,
            self._properties,
            lambda seconds: asking.list_consumer_groups(request_timeout=seconds).result(),
        )
        stem = f"{self._group}-"
        ends = [g.group_id.removeprefix(stem) for g in listed.valid if g.group_id.startswith(stem)]
        found = {int(end): self.of_task(int(end)) for end in ends if end.isdigit()}
        return {task: marker for task, marker in sorted(found.items()) if marker is not None}

    def put(self, producer: Producer, task: int, marker: Marker) -> None:
        """Add both markers to the producer's open transaction."""
        for group in (f"{self._group}-{task}", self._group):
            owner = group_consumer(self._properties, group).consumer_group_metadata()
            producer.send_offsets_to_transaction([self._place(marker)], owner, 60.0)

    def put_empty(self, marker: Marker) -> None:
        """Mark a batch without rows, which has no transaction, so that markers do not expire."""
        owner = group_consumer(self._properties, self._group)
        places = [self._place(marker)]
        patiently(
            owner, self._properties, lambda _: owner.commit(offsets=places, asynchronous=False)
        )

    def open(self, task: int) -> None:
        """Start connecting, while there is something else to do."""
        for group in (self._group, f"{self._group}-{task}"):
            group_consumer(self._properties, group)

    def _place(self, marker: Marker) -> TopicPartition:
        return TopicPartition(self._topic, 0, marker.batch + 1, marker.to_text())

    def _read(self, group: str) -> Marker | None:
        (found,) = committed(self._properties, group, [TopicPartition(self._topic, 0)])
        return Marker.from_text(found.metadata) if found.offset >= 0 else None
