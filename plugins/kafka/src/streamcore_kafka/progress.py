"""What Spark's offset log keeps of a Kafka query: all it takes to plan a batch again, alike.

Spark stores the JSON of an offset per batch and hands both ends of a batch back when it plans
or repeats it. So everything that decides which row a batch and its tasks read is in there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"topic '{self.topic}' partition {self.number}"


class Range(NamedTuple):
    """Consecutive offsets of one partition; `end` is not part of it."""

    topic: str
    number: int
    start: int
    end: int

    @property
    def partition(self) -> Partition:
        return Partition(self.topic, self.number)

    @property
    def size(self) -> int:
        return self.end - self.start


Positions = Mapping[Partition, int]


@dataclass(frozen=True)
class Progress:
    """The end of one batch and the start of the next."""

    positions: Positions
    """The next offset of each partition."""
    since: Positions = field(default_factory=dict)
    """Where this batch starts in partitions whose start the offset before does not know."""
    until: Positions = field(default_factory=dict)
    """Where reading ends for good, of a bounded table."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """Topic ids, by which a topic that was deleted and created again is noticed."""
    tasks: int = 1
    split: bool = False
    """Whether a partition may be read by several tasks of this batch."""
    initial: bool = False
    """Whether this is the start of a new query, which Spark asks for but does not store."""

    def to_json(self) -> dict[str, Any]:
        """A plain form whose text is equal for equal progress."""
        plain: dict[str, Any] = {"offsets": _nested(self.positions)}
        if self.since:
            plain["from"] = _nested(self.since)
        if self.until:
            plain["until"] = _nested(self.until)
        if self.ids:
            plain["ids"] = dict(sorted(self.ids.items()))
        if self.initial:
            return plain | {"initial": True}
        return plain | {"split": self.split, "tasks": self.tasks}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Progress:
        return cls(
            _flat(plain["offsets"]),
            _flat(plain.get("from", {})),
            _flat(plain.get("until", {})),
            plain.get("ids", {}),
            plain.get("tasks", 1),
            plain.get("split", False),
            plain.get("initial", False),
        )

    def ranges_since(self, before: Progress) -> list[Range]:
        """What the batch between two offsets reads, in the order of topics and partitions."""
        if self == before:  # Spark asks even for a source that has nothing new
            return []
        starts = {**before.positions, **self.since}
        return [
            Range(*partition, starts[partition], end)
            for partition, end in sorted(self.positions.items())
            if starts.get(partition, end) < end
        ]


def _nested(positions: Positions) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(positions.items()):
        nested.setdefault(topic, {})[str(number)] = offset
    return nested


def _flat(nested: Mapping[str, Mapping[str, int]]) -> Positions:
    return {
        Partition(topic, int(number)): offset
        for topic, numbers in nested.items()
        for number, offset in numbers.items()
    }
