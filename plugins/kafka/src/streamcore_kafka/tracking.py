"""The driver's view of a running query: what is new, what is gone, and how far to read next."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from streamcore import DataLossError

from . import positions
from .discovery import Cluster, Topic, TopicGone, reads_committed
from .planning import admit, task_count
from .progress import Partition, Positions, Progress, partitions_of

if TYPE_CHECKING:
    from .connector import Kafka

log = logging.getLogger("streamcore.kafka")
_SECOND_LOOK = 1.0


class Tracker:
    """Follows the topics of one query; lives in the driver as long as the query does."""

    def __init__(
        self,
        kafka: Kafka,
        cluster: Cluster,
        record_size: Callable[[Partition, int, int], float],
    ) -> None:
        self._kafka, self._cluster, self._record_size = kafka, cluster, record_size
        self._stable = reads_committed(kafka.properties)
        self._topics: Mapping[str, Topic] | None = None
        self._discovered = 0.0
        self._target: Positions | None = None
        self.latest: Positions = {}
        """The ends of the logs as they were last seen."""

    # --- start and target ----------------------------------------------------------------

    def initial(self) -> Progress:
        """Where a query without a checkpoint starts."""
        topics = self._current_topics()
        partitions = partitions_of({name: topic.partitions for name, topic in topics.items()})
        until = positions.stops(self._kafka, self._cluster, partitions)
        starts = positions.starts(self._kafka, self._cluster, partitions, until)
        ids = {name: topic.id for name, topic in topics.items() if topic.id}
        return Progress(starts, until=until, ids=ids, initial=True)

    def fix_target(self) -> None:
        """Read no further than what is there now; called for Trigger.AvailableNow."""
        topics = self._current_topics(again=True)
        partitions = partitions_of({name: topic.partitions for name, topic in topics.items()})
        self._target = self._cluster.latest(partitions, stable=self._stable)

    # --- one step further ------------------------------------------------------------------

    def advance(self, start: Progress, rows: int | None, size: int | None) -> Progress:
        """The end of the next batch: at most so many offsets, about so many bytes."""
        try:
            return self._advance(start, rows, size)
        except TopicGone:
            self._topics = None  # gone since the last discovery, which now says what is left
            return self._advance(start, rows, size)

    def _advance(self, start: Progress, rows: int | None, size: int | None) -> Progress:
        topics = self._current_topics(lenient=True)
        known = self._still_there(start, topics)
        begins = {**known, **self._new(start, known, topics)}
        self.latest = self._ends(begins)
        ends = self._capped(start, begins)
        backlog = {each: ends[each] - begin for each, begin in begins.items() if ends[each] > begin}
        admitted = self._admitted(backlog, begins, rows, size)
        reached = {
            each: begin + admitted.get(each, 0)
            for each, begin in begins.items()
            if each in known or admitted.get(each)
        }
        # Where the log was cut off, its new end is where we stand, although that is a step back.
        reached |= {each: self.latest[each] for each in known if self.latest[each] < known[each]}
        if reached == start.positions and not start.initial:
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
        split = self._kafka.scan_parallelism is not None and not self._kafka.format.changelog
        ids = {name: topics[name].id for name, _ in reached if topics[name].id}
        return Progress(reached, since, start.until, ids, count, split)

    def _current_topics(self, again: bool = False, lenient: bool = False) -> Mapping[str, Topic]:
        interval = self._kafka.discovery.total_seconds()
        due = interval > 0 and time.monotonic() - self._discovered >= interval
        if self._topics is None or again or (due and not self._kafka.bounded()):
            try:
                self._topics = self._cluster.topics()
            except TopicGone:
                if not lenient or self._kafka.fail_on_data_loss:
                    raise
                self._topics = self._left_of_listed()
            self._discovered = time.monotonic()
        return self._topics

    def _left_of_listed(self) -> Mapping[str, Topic]:
        """What a list of topics still offers when some were deleted and that is tolerated."""
        found: dict[str, Topic] = {}
        for name in sorted(set(self._kafka.topic)):
            try:
                found |= Cluster(replace(self._kafka, topic=(name,))).topics()
            except TopicGone as error:
                log.warning("%s", error)
        return found

    def _still_there(self, start: Progress, topics: Mapping[str, Topic]) -> dict[Partition, int]:
        kept = {}
        for partition, offset in start.positions.items():
            topic = topics.get(partition.topic)
            if topic is None or partition.number not in topic.partitions:
                self._lost(partition, offset, "was deleted")
            elif start.ids.get(partition.topic, topic.id) != topic.id and topic.id:
                self._lost(partition, offset, "was deleted and created again")
            else:
                kept[partition] = offset
        return kept

    def _new(
        self, start: Progress, known: Mapping[Partition, int], topics: Mapping[str, Topic]
    ) -> Positions:
        """Partitions that came up later: read from their first record, whatever the start mode."""
        everything = partitions_of({name: topic.partitions for name, topic in topics.items()})
        found = [each for each in everything if each not in known]
        if not found or start.until:
            return {}
        return self._cluster.earliest(found)

    def _ends(self, begins: Positions) -> Positions:
        ends = self._cluster.latest(begins, stable=self._stable)
        behind = [each for each, end in ends.items() if end < begins[each]]
        if not behind:
            return ends
        # An open transaction holds the end back, or a new leader has yet to catch up: look again.
        high = self._cluster.latest(behind)
        if any(high[each] < begins[each] for each in behind):
            time.sleep(_SECOND_LOOK)
            high = self._cluster.latest(behind)
        for each in behind:
            if high[each] < begins[each]:
                self._lost(each, begins[each], f"ends at offset {high[each]} now")
        return {**ends, **{each: min(high[each], begins[each]) for each in behind}}

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
            widest = max(backlog, key=lambda each: (backlog[each], each))
            begin = begins[widest]
            average = self._record_size(widest, begin, begin + backlog[widest])
            fitting = max(1, int(size / max(average, 1)))
            rows = fitting if rows is None else min(rows, fitting)
        return backlog if rows is None else admit(backlog, rows)

    def _lost(self, partition: Partition, offset: int, what: str) -> None:
        told = f"{partition} was read up to offset {offset} and {what}"
        if self._kafka.fail_on_data_loss:
            raise DataLossError(
                f"{told}. Set 'scan.fail-on-data-loss' to 'false' to go on with what is left."
            )
        log.warning("%s; going on with what is left", told)
