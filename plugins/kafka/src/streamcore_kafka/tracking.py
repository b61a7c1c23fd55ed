"""The driver's view of a running query: what is new, what is gone, and how far to read next."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from streamcore import DataLossError

from . import positions
from .discovery import Cluster, Topic, TopicGone, reads_committed
from .hanging import Hanging
from .planning import admit, task_count
from .progress import Partition, Positions, Progress

if TYPE_CHECKING:
    from .connector import Kafka

log = logging.getLogger("streamcore.kafka")
_SECOND_LOOK = 1.0
_SAME_FOR = 5.0
"""Seconds between questions for ids: the client library loses 160 bytes with each answer."""


class Tracker:
    """Follows the topics of one query; lives in the driver as long as the query does."""

    def __init__(
        self,
        kafka: Kafka,
        cluster: Cluster,
        record_size: Callable[[Partition, int, int], float | None],
        *,
        ordered: bool = False,
    ) -> None:
        self._kafka, self._cluster, self._record_size = kafka, cluster, record_size
        self._stable = reads_committed(kafka.properties)
        self._hanging = Hanging(cluster)
        # Changes of one key must reach one task in their order; plain rows may be read faster.
        self._ordered = ordered or kafka.format.changelog
        self._topics: Mapping[str, Topic] = {}
        self._discovered = self._compared = 0.0
        self._just_discovered = False
        self._cut_off: dict[Partition, int] = {}
        self._target: Positions | None = None
        self.latest: Positions = {}
        """The ends of the logs as they were last seen."""
        self._planning = False

    # --- start and target ----------------------------------------------------------------

    def initial(self) -> Progress:
        """Where a query without a checkpoint starts."""
        topics = self._discover()
        partitions = _every_partition(topics)
        until = positions.stops(self._kafka, self._cluster, partitions)
        starts = positions.starts(self._kafka, self._cluster, partitions, until)
        ids = {name: topic.id for name, topic in topics.items() if topic.id}
        return Progress(starts, until=until, ids=ids, initial=True)

    def fix_target(self) -> None:
        """Read no further than what is there now; called for Trigger.AvailableNow."""
        topics = self._discover(tolerant=True)  # what is missing is reported with the first batch
        self._target = self._cluster.latest(_every_partition(topics), stable=self._stable)

    def still_readable(self, end: Progress) -> Collection[Partition]:
        """The partitions of a batch that hold what they held when it was planned.

        An earlier run may have planned it; its offsets mean nothing to a topic created anew.
        """
        if self._planning:
            return end.positions
        self._discover(tolerant=True)
        return self._still_there(end)

    # --- one step further ------------------------------------------------------------------

    def advance(self, start: Progress, rows: int | None, size: int | None) -> Progress:
        """The end of the next batch: at most so many offsets, about so many bytes."""
        self._planning = True
        if not self._is_due():
            try:
                end = self._advance(start, rows, size)
                if end is start or self._are_the_same():
                    return end
            except TopicGone:
                pass  # gone since the last discovery: look again, and say what is left
        known = {partition.topic for partition in start.positions}
        tolerant = not self._kafka.fail_on_data_loss or known >= set(self._kafka.topic)
        self._discover(tolerant=tolerant)
        return self._advance(start, rows, size)

    def _advance(self, start: Progress, rows: int | None, size: int | None) -> Progress:
        known = self._still_there(start)
        begins = {**known, **self._new(start, known)}
        self.latest = self._ends(start, begins)
        ends = self._capped(start, begins)
        backlog = {each: ends[each] - begin for each, begin in begins.items() if ends[each] > begin}
        admitted = self._admitted(backlog, begins, rows, size)
        reached = {
            each: begin + admitted.get(each, 0)
            for each, begin in begins.items()
            if each in known or admitted.get(each)
        }
        # Where the log was cut off, its new end is where we stand, although that is a step back.
        reached |= {each: end for each, end in self._cut_off.items() if each in known}
        # A topic created anew that ends where the old one did has been read to no offset yet.
        nothing_new = reached == start.positions and len(known) == len(start.positions)
        if nothing_new and not start.initial:
            return start
        since = {
            each: begins[each]
            for each in reached
            if start.initial or start.positions.get(each) != begins[each]
        }
        count = task_count(
            sum(admitted.values()),
            sum(1 for share in admitted.values() if share),
            os.cpu_count() or 1,
            self._kafka.scan_parallelism,
        )
        ids = {name: self._topics[name].id for name, _ in reached if self._topics[name].id}
        wanted = self._kafka.scan_parallelism or 0
        split = wanted > len(begins) and not self._ordered
        return Progress(reached, since, start.until, ids, count, split)

    # --- what is there ---------------------------------------------------------------------

    def _is_due(self) -> bool:
        interval = self._kafka.discovery.total_seconds()
        if not self._discovered or interval <= 0 or self._kafka.bounded():
            return not self._discovered
        return time.monotonic() - self._discovered >= interval

    def _discover(self, *, tolerant: bool = False) -> Mapping[str, Topic]:
        self._topics = self._cluster.topics(tolerant=tolerant)
        self._discovered = self._compared = time.monotonic()
        self._just_discovered = True
        return self._topics

    def _are_the_same(self) -> bool:
        """Whether no topic was created anew since the last discovery.

        It would soon reach beyond the offsets of the old one, and be read from the middle.
        """
        if time.monotonic() - self._compared < _SAME_FOR:
            return True
        self._compared = time.monotonic()
        ids = {name: topic.id for name, topic in self._topics.items()}
        return self._cluster.ids(ids) == ids

    def _still_there(self, start: Progress) -> dict[Partition, int]:
        kept = {}
        for partition, offset in start.positions.items():
            topic = self._topics.get(partition.topic)
            if topic is None or partition.number not in topic.partitions:
                self._lost(partition, offset, "was deleted")
            elif start.ids.get(partition.topic, topic.id) != topic.id and topic.id:
                self._lost(partition, offset, "was deleted and created again")
            else:
                kept[partition] = offset
        return kept

    def _new(self, start: Progress, known: Mapping[Partition, int]) -> Positions:
        """Partitions that came up later: read from their first record, whatever the start mode."""
        found = [each for each in _every_partition(self._topics) if each not in known]
        if not found or start.until or self._kafka.bounded():
            return {}
        return self._cluster.earliest(found)

    def _ends(self, start: Progress, begins: Positions) -> Positions:
        """How far each log reaches; never short of where we are without saying so."""
        fresh, self._just_discovered, self._cut_off = self._just_discovered, False, {}
        ends = dict(self._cluster.latest(begins, stable=self._stable))
        if self._stable:
            self._hanging.look(ends)
        behind = [each for each, end in ends.items() if end < begins[each]]
        behind = [each for each in behind if begins[each] < start.until.get(each, begins[each] + 1)]
        if not behind:
            return ends
        # An open transaction holds the end back, or a new leader has yet to catch up: look again.
        high = self._cluster.latest(behind)
        if any(high[each] < begins[each] for each in behind):
            time.sleep(_SECOND_LOOK)
            high = self._cluster.latest(behind)
        for each in behind:
            if high[each] < begins[each]:
                if not fresh:
                    raise TopicGone(f"{each} ends before offset {begins[each]}")
                self._lost(each, begins[each], f"ends at offset {high[each]} now")
                self._cut_off[each] = high[each]
        return ends

    def _capped(self, start: Progress, begins: Positions) -> Positions:
        caps = start.until
        ends = {each: min(end, caps.get(each, end)) for each, end in self.latest.items()}
        if self._target is not None:
            goals = self._target
            ends = {each: min(end, goals.get(each, begins[each])) for each, end in ends.items()}
        return ends

    def _admitted(
        self, backlog: Positions, begins: Positions, rows: int | None, size: int | None
    ) -> Positions:
        total = sum(backlog.values())
        if size is not None and total:
            average = self._average(backlog, begins)
            fitting = max(1, int(size / max(average, 1)))
            rows = fitting if rows is None else min(rows, fitting)
        return backlog if rows is None else admit(backlog, rows)

    def _average(self, backlog: Positions, begins: Positions) -> float:
        """The size of records where most are waiting; next to nothing if all of them are gone."""
        for each in sorted(backlog, key=lambda each: (backlog[each], each), reverse=True):
            found = self._record_size(each, begins[each], begins[each] + backlog[each])
            if found is not None:
                return found
        return 1.0

    def _lost(self, partition: Partition, offset: int, what: str) -> None:
        told = f"{partition} was read up to offset {offset} and {what}"
        if self._kafka.fail_on_data_loss:
            raise DataLossError(
                f"{told}. Set 'scan.fail-on-data-loss' to 'false' to go on with what is left."
            )
        log.warning("%s; going on with what is left", told)


def _every_partition(topics: Mapping[str, Topic]) -> list[Partition]:
    return sorted(
        Partition(name, number) for name, topic in topics.items() for number in topic.partitions
    )
