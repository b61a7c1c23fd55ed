"""Commits a group's offsets for lag tools: after each batch, at best effort, never in the way."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from streamcore import OptionError
from streamcore.spark.finished import Ear, word_for

from .progress import Partition, Positions, Progress
from .validation import text

if TYPE_CHECKING:
    from .connector import Kafka
    from .discovery import Cluster

log = logging.getLogger("streamcore.kafka")
_SLICE = 0.02
_WAIT = 5.0


class GroupOffsets:
    """Follows what Spark has committed; recovery never depends on it."""

    def __init__(self, kafka: Kafka, cluster: Cluster) -> None:
        wanted = text(kafka.properties.get("commit.offsets.on.checkpoint")).lower() != "false"
        self._enabled = wanted and kafka.group is not None
        self._group, self._cluster = kafka.group, cluster
        self._committed: Positions = {}
        self._pending = 0
        self._lock = threading.RLock()
        self._ear: Ear | None = None
        self._expected: tuple[str, Progress] | None = None
        self.succeeded = 0
        self.failed = 0
        if self._enabled:
            cluster.on_commit = self._told

    def commit(self, done: Progress) -> None:
        """Start committing, if anything moved; a later commit makes up for one that failed."""
        if not self._enabled or done.initial or done.positions == self._committed:
            return
        with self._lock:
            self._committed = done.positions
            try:
                self._cluster.commit(done.positions)
                self._pending += 1
            except Exception as error:  # whatever the client objects to, the query goes on
                self._note(error)

    def expect(self, end: dict[str, Any]) -> None:
        """A batch is planned that ends here; it may be over before the next one is asked for."""
        if self._enabled:
            self._ear = self._ear or Ear(self._heard)
            self._expected = (word_for(end), Progress.from_json(end))

    def _heard(self, word: str) -> None:
        """Called in a thread of its own, when Spark has committed a batch."""
        expected = self._expected
        if expected is not None and expected[0] == word:
            self.commit(expected[1])
            self.settle(_WAIT)

    def settle(self, seconds: float) -> None:
        """Wait at most so long until commits on their way are done, then give up on them."""
        with self._lock:
            self._settle(seconds)

    def _settle(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._pending:
            left = deadline - time.monotonic()
            # In slices: the call returns for records, which never come, but not for an outcome.
            error = self._cluster.poll(min(max(left, 0), _SLICE))
            if error is None and left <= 0 < seconds:
                error = f"no answer in {seconds:g} s"
            if error is not None:
                self._pending = 0
                self._note(error)
            if left <= 0:
                return

    def report(self) -> dict[str, Any]:
        """How committing went so far, for the query's progress."""
        if not self._enabled:
            return {}
        self.settle(0)
        told = {"commits": self.succeeded, "failed-commits": self.failed, "id": self._group}
        return {**told, "tell": self._ear.address} if self._ear else told

    def _told(self, error: Any, places: Sequence[Any]) -> None:
        """Called by the client, while it is polled, once per commit."""
        self._pending = max(0, self._pending - 1)
        error = error or next((each.error for each in places or () if each.error), None)
        if error is None:
            self.succeeded += 1
        else:
            self._note(error)

    def _note(self, error: Any) -> None:
        self.failed += 1
        reason = error.args[0] if isinstance(error, Exception) and error.args else error
        told = reason.str() if hasattr(reason, "str") else str(reason)
        log.warning("offsets of group '%s' were not committed: %s", self._group, told)


def group_lag(kafka: Kafka) -> Iterator[tuple[str, int, int]]:
    """What a group has yet to read; where it has committed nothing, that is everything."""
    from .discovery import Cluster, reads_committed

    if kafka.group is None:
        raise OptionError("connector 'kafka'", ["properties.group.id: required to tell a lag"])
    cluster = Cluster(kafka)
    topics = cluster.topics()
    partitions = [Partition(name, n) for name, each in topics.items() for n in each.partitions]
    ends = cluster.latest(partitions, stable=reads_committed(kafka.properties))
    begins = cluster.earliest(partitions)
    done = cluster.committed(partitions)
    for partition in sorted(partitions):
        reached = done.get(partition, begins[partition])
        yield partition.topic, partition.number, max(ends[partition] - reached, 0)
