"""Reads ranges of partitions on an executor, to the exact offset, whatever the log looks like.

A range is finished when the consumer's position reaches its end, never by counting records:
transaction markers, compaction and aborted transactions leave gaps in the offsets.
"""

from __future__ import annotations

import bisect
import contextlib
import gc
import itertools
import logging
import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from streamcore import ConnectionFailed, DataLossError

from . import client, consumers
from .progress import Partition, Range

if TYPE_CHECKING:
    from .connector import Kafka

log = logging.getLogger("streamcore.kafka")

CHUNK_ROWS = 10_000
CHUNK_BYTES = 8 * 1024 * 1024
FIRST_ASK = 500
_POLL = 0.1
TRUNCATED_AFTER = 5.0
NOTHING_FOR = 600.0
"""Seconds without a record after which a task fails, although its brokers answer."""
_SAMPLE_ROWS, _SAMPLE_SECONDS = 100, 10.0
ASSUMED_SIZE = 1024.0
"""Bytes of a record where none was found in time."""


class Fetcher:
    """Reads the ranges of one task; of a partition with several, one after the other."""

    def __init__(
        self,
        kafka: Kafka,
        ranges: Sequence[Range],
        rows: int = CHUNK_ROWS,
        seconds: float = math.inf,
    ) -> None:
        """Chunks have about so many rows, and end after so many seconds, read or not."""
        self._kafka, self._rows, self._until = kafka, rows, time.monotonic() + seconds
        ranges, self._later = _one_each(ranges)
        self._ends = {each.partition: each.end for each in ranges}
        self._positions = {each.partition: each.start for each in ranges}
        self._open = {each.partition for each in ranges if each.size > 0}
        self._ended_early: dict[Partition, float] = {}
        self._paused: list[Any] = []
        self._patience = client.patience(kafka.properties)
        self._answered = 0.0
        self._trouble: Any = None
        self._heard_from_broker = False
        self.lost = self.bytes = 0

    def chunks(self) -> Generator[list[Any], None, None]:
        """Yield messages in chunks of bounded size, each partition in its order."""
        yield from self._first_ranges()
        if self._later:
            rest = Fetcher(self._kafka, self._later)
            yield from rest.chunks()
            self.lost, self.bytes = self.lost + rest.lost, self.bytes + rest.bytes

    def _first_ranges(self) -> Iterator[list[Any]]:
        if not self._open:
            return
        with consumers.borrowed(self._kafka.properties) as consumer:
            self._assign(consumer)
            try:
                yield from self._read(consumer)
            finally:
                if self._paused:  # a pause would outlive the assignment
                    consumer.resume(self._paused)

    def _assign(self, consumer: Any) -> None:
        places = self._positions
        consumer.assign([client.TopicPartition(*each, places[each]) for each in self._open])

    def _read(self, consumer: Any) -> Iterator[list[Any]]:
        size_of_chunk, ask = 0, FIRST_ASK
        chunk: list[Any] = []
        moved = time.monotonic()
        while self._open and time.monotonic() < self._until:
            before = len(self._open)
            with no_collector():
                # Without waiting, what has arrived is handed over; waiting, it would be for all.
                messages = consumer.consume(ask, 0) or consumer.consume(1, _POLL)
                fresh = self._take(consumer, messages)
            if fresh or len(self._open) < before:
                moved, self._heard_from_broker = time.monotonic(), True
                chunk += fresh
                size_of_chunk += sum(map(len, fresh))
            elif self._is_refused():
                raise self._stuck(min(self._open))
            else:
                self._ask_if_anybody_is_there(consumer, moved)
            self._give_up_truncated(consumer)
            if len(chunk) >= self._rows or size_of_chunk >= CHUNK_BYTES:
                average = size_of_chunk / len(chunk) + 1
                self.bytes += size_of_chunk
                full, chunk, size_of_chunk = [chunk], [], 0
                messages = fresh = []
                yield full.pop()  # whoever gets it, and nobody else, keeps its messages alive
                ask = max(1, min(self._rows, int(CHUNK_BYTES / average)))
                moved = time.monotonic()
        if chunk:
            self.bytes += size_of_chunk
            full, chunk, messages, fresh = [chunk], [], [], []
            yield full.pop()

    def _take(self, consumer: Any, messages: list[Any]) -> list[Any]:
        """Keep the records of our ranges, and note how far each partition has come."""
        events = []
        if any(map(client.Message.error, messages)):
            events = [message for message in messages if message.error() is not None]
            messages = [message for message in messages if message.error() is None]
        kept: list[Any] = []
        for partition, run in self._runs(messages):
            if partition not in self._open or not run:
                continue
            end = self._ends[partition]
            if run[-1].offset() >= end:
                run = run[: bisect.bisect_left(run, end, key=client.Message.offset)]
                self._reached(consumer, partition, end)
            else:
                self._reached(consumer, partition, run[-1].offset() + 1)
            kept += run
        for event in events:  # after the records, which a partition's end would close out
            self._heed(consumer, event)
        return kept

    def _runs(self, messages: list[Any]) -> Iterator[tuple[Partition, list[Any]]]:
        if len(self._ends) == 1:
            yield next(iter(self._ends)), messages
            return
        topics = {each.topic for each in self._ends}
        if len(topics) == 1:
            topic = next(iter(topics))
            numbers = list(map(client.Message.partition, messages))
            if numbers and numbers.count(numbers[0]) == len(numbers):  # mostly: cheaper than groups
                yield Partition(topic, numbers[0]), messages
                return
            for number, run in itertools.groupby(messages, client.Message.partition):
                yield Partition(topic, number), list(run)
            return
        for partition, run in itertools.groupby(messages, _partition):
            yield partition, list(run)

    def _reached(self, consumer: Any, partition: Partition, position: int) -> None:
        self._positions[partition] = position
        self._ended_early.pop(partition, None)
        if position >= self._ends[partition]:
            self._open.discard(partition)
            if self._open:  # what lies beyond our end would only be in the way
                self._paused.append(client.TopicPartition(*partition))
                consumer.pause(self._paused[-1:])

    # --- what comes instead of records ----------------------------------------------------

    def _heed(self, consumer: Any, event: Any) -> None:
        error, codes = event.error(), client.KafkaError
        if event.topic() is None:
            return self._remember(error)
        partition = Partition(event.topic(), event.partition())
        if partition not in self._open:
            return None
        if error.code() == codes._PARTITION_EOF:
            if event.offset() >= self._ends[partition]:
                return self._reached(consumer, partition, self._ends[partition])
            self._ended_early.setdefault(partition, time.monotonic())
            return None
        if error.code() == codes._AUTO_OFFSET_RESET:
            return self._skip_to_existing(consumer, partition)
        if error.code() in (
            codes.UNKNOWN_TOPIC_OR_PART,
            codes._UNKNOWN_TOPIC,
            codes._UNKNOWN_PARTITION,
        ):
            self._lose(partition, self._ends[partition], "the partition was deleted")
            return self._reached(consumer, partition, self._ends[partition])
        self._remember(error)
        if error.code() == codes._BAD_COMPRESSION:  # it would be fetched again and again
            raise self._stuck(partition)
        return None

    def _remember(self, error: Any) -> None:
        codes = client.KafkaError
        if error.code() == codes.GROUP_AUTHORIZATION_FAILED:
            return  # the library looks for a coordinator that reading never needs
        if error.fatal() or error.code() in (
            codes.TOPIC_AUTHORIZATION_FAILED,
            codes._AUTHENTICATION,
            codes._SSL,
        ):
            raise client.explain(error, self._kafka.properties)
        self._trouble = error

    def _skip_to_existing(self, consumer: Any, partition: Partition) -> None:
        """Our position is not in the log any more: say so, and go on where the log begins."""
        first, end = self._reach(consumer, partition)
        position, stop = self._positions[partition], self._ends[partition]
        resume = position
        if position < first:
            resume = min(first, stop)
            self._lose(partition, resume, f"the log begins at offset {first}")
        elif position > end:
            resume = stop
            self._lose(partition, resume, f"the log ends at offset {end}")
        self._reached(consumer, partition, resume)
        if resume < stop:
            self._assign(consumer)  # a partition that failed cannot be sought

    def _give_up_truncated(self, consumer: Any) -> None:
        """A log that stays shorter than planned has lost its tail; a slow follower has not."""
        now = time.monotonic()
        for partition, since in list(self._ended_early.items()):
            if now - since > TRUNCATED_AFTER:
                self._ended_early[partition] = now
                stop = self._ends[partition]
                _, end = self._reach(consumer, partition)
                if end < stop:
                    self._lose(partition, stop, f"the log ends at offset {end}")
                    self._reached(consumer, partition, stop)

    def _reach(self, consumer: Any, partition: Partition) -> tuple[int, int]:
        """The first offset of a log and the one after its last, as its leader has them."""
        place = client.TopicPartition(*partition)
        try:
            first, end = consumer.get_watermark_offsets(place, timeout=self._patience)
        except client.KafkaException as error:
            raise client.explain(error, self._kafka.properties) from error
        return first, end

    def _lose(self, partition: Partition, resume: int, why: str) -> None:
        position = self._positions[partition]
        told = f"{partition}: offsets {position} to {resume - 1} are gone, {why}"
        if self._kafka.fail_on_data_loss:
            raise DataLossError(
                f"{told}. Set 'scan.fail-on-data-loss' to 'false' to go on without them."
            )
        self.lost += resume - position
        log.warning("%s; going on without them", told)

    def _is_refused(self) -> bool:
        """Whether a broker turned us away at first contact; later on it may only be restarting."""
        return not self._heard_from_broker and client.is_refused(self._kafka.properties)

    def _ask_if_anybody_is_there(self, consumer: Any, moved: float) -> None:
        """Raise if silence means a dead broker; it may also mean aborted records, or a quota."""
        # Once a broker has answered, a short time to connect is no reason to hurry.
        limit = client.PATIENCE if self._heard_from_broker else self._patience
        now = time.monotonic()
        if now - max(moved, self._answered) < limit / 2:
            return
        if now - moved > NOTHING_FOR:
            partition = min(self._open)
            raise ConnectionFailed(
                f"{partition} offset {self._positions[partition]}: no record came for "
                f"{NOTHING_FOR:g} s, although the broker answers. Check the quota of this client, "
                "and whether nothing but aborted records follows."
            )
        for partition in sorted(self._open):
            left = max(now + limit / 2 - time.monotonic(), 0.1)
            try:
                consumer.get_watermark_offsets(client.TopicPartition(*partition), timeout=left)
            except client.KafkaException:
                raise self._stuck(partition, f"nothing came for {limit:g} s") from None
        self._heard_from_broker, self._answered = True, time.monotonic()

    def _stuck(self, partition: Partition, waited: str = "") -> ConnectionFailed:
        codes = client.KafkaError
        trouble = self._trouble or codes(codes._TIMED_OUT, waited)
        reason = client.explain(trouble, self._kafka.properties)
        return ConnectionFailed(f"{partition} offset {self._positions[partition]}: {reason}")


@contextlib.contextmanager
def no_collector() -> Iterator[None]:
    """Messages hold no cycles, yet looking for some takes half of the time it takes to get them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _one_each(ranges: Sequence[Range]) -> tuple[list[Range], list[Range]]:
    """The first range of each partition, and all others."""
    first: dict[Partition, Range] = {}
    later = []
    for each in sorted(ranges):
        if each.partition in first:
            later.append(each)
        else:
            first[each.partition] = each
    return list(first.values()), later


_partition: Callable[[Any], Partition] = lambda m: Partition(m.topic(), m.partition())  # noqa: E731


def record_size(kafka: Kafka, partition: Partition, start: int, end: int) -> float | None:
    """The average size of the next records, by looking at some of them; None if there are none.

    They may be far away, behind records that were aborted or compacted.
    """
    began = time.monotonic()
    sample = Fetcher(kafka, [Range(*partition, start, end)], _SAMPLE_ROWS, _SAMPLE_SECONDS)
    with contextlib.closing(sample.chunks()) as chunks:
        for chunk in chunks:
            return sum(len(m) + len(m.key() or b"") for m in chunk) / len(chunk)
    return None if time.monotonic() - began < _SAMPLE_SECONDS else ASSUMED_SIZE
