"""Markers of written batches, kept as committed offsets of consumer groups on the brokers.

Group `<prefix>-marker` tells which batch was written last and by whom, group
`<prefix>-marker-<task>` what one task has written of it. Both are committed together with the
rows, in the same transaction, so they say neither more nor less than what readers can see.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from .client import (
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
    admin,
    group_metadata,
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

    def by(self) -> str:
        """The writer, as an error names it."""
        if not self.query:
            return "a batch job"
        return f"query {self.query} (run {self.run.rpartition('/')[2]}, batch {self.batch})"


class Markers:
    """The markers under one prefix."""

    def __init__(self, properties: Settings, prefix: str) -> None:
        self._properties = properties
        self._admin = _admin(frozenset(properties.items()))
        self._group = f"{prefix}-marker"

    def of_batch(self) -> Marker | None:
        """The marker of the batch written last, as far as it is known by now."""
        return self._read(self._group)[1]

    def settled(self, seconds: float) -> tuple[str | None, Marker | None]:
        """The last batch's marker and the topic it is kept under, once no commit is under way.

        A transaction whose writer was killed stays under way; its marker does not count.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                return self._ask(self._group, 5.0, stable=True)
            except KafkaException as error:
                if error.args[0].name() != "UNSTABLE_OFFSET_COMMIT":
                    break
                time.sleep(0.05)
        return self._read(self._group)

    def of_task(self, task: int) -> Marker | None:
        """The marker of what a task has written last."""
        return self._read(f"{self._group}-{task}")[1]

    def of_all_tasks(self) -> Mapping[int, Marker]:
        """The marker of every task that has one; lists all groups, so it is for rare cases."""
        listed = patiently(
            self._admin,
            self._properties,
            lambda seconds: self._admin.list_consumer_groups(request_timeout=seconds).result(),
        )
        stem = f"{self._group}-"
        ends = [g.group_id.removeprefix(stem) for g in listed.valid if g.group_id.startswith(stem)]
        found = {int(end): self.of_task(int(end)) for end in ends if end.isdigit()}
        return {task: marker for task, marker in sorted(found.items()) if marker is not None}

    def put(self, producer: Producer, task: int, marker: Marker, topic: str) -> None:
        """Add both markers to the producer's open transaction."""
        place = TopicPartition(topic, 0, marker.batch + 1, marker.to_text())
        for group in (f"{self._group}-{task}", self._group):
            producer.send_offsets_to_transaction([place], group_metadata(group), 60.0)

    def put_empty(self, marker: Marker, topic: str) -> None:
        """Mark a batch without rows, which has no transaction, so that markers do not expire."""
        place = TopicPartition(topic, 0, marker.batch + 1, marker.to_text())
        wanted = [ConsumerGroupTopicPartitions(self._group, [place])]
        self._admin.alter_consumer_group_offsets(wanted)[self._group].result()

    def _read(self, group: str) -> tuple[str | None, Marker | None]:
        ask = self._ask
        return patiently(self._admin, self._properties, lambda seconds: ask(group, seconds))

    def _ask(
        self, group: str, seconds: float, *, stable: bool = False
    ) -> tuple[str | None, Marker | None]:
        wanted = [ConsumerGroupTopicPartitions(group)]
        futures = self._admin.list_consumer_group_offsets(
            wanted, require_stable=stable, request_timeout=max(1.0, seconds)
        )
        found = [place for place in futures[group].result().topic_partitions if place.offset >= 0]
        for place in found:
            if place.error is not None:
                raise KafkaException(place.error)
        if not found:
            return None, None
        newest = max(found, key=lambda place: place.offset)
        return newest.topic, Marker.from_text(newest.metadata or "")


@lru_cache(maxsize=4)
def _admin(properties: frozenset[tuple[str, Any]]) -> Any:
    """Kept open while the process lives."""
    return admin(dict(properties))
