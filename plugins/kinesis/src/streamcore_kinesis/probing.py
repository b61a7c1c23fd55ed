"""The driver's view of a stream: which shards there are, and where a slice of time ends in each."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from streamcore import DataLossError, StreamcoreError

from .client import explain, kinesis
from .consumers import Consumer
from .positions import END, Position, Shard, at_record, at_time, known_time
from .retrying import Caller
from .settings import SourceSettings

log = logging.getLogger("streamcore.kinesis")

_FOLLOWED = 10
"""Empty answers to follow before the rest of a shard is left to the next batch."""
_LOOKS, _WITHIN = 2, 1.2
"""Most reads of a shard within so many seconds; the service allows five in one, tasks included."""
_KEPT = 24 * 3_600_000
"""Every stream keeps a record for at least so many milliseconds."""
_STALE = 3_600_000
"""Milliseconds after which an idle shard moves on by a batch without records."""
_NOT_YET = 1 << 63
"""A moment after every other: no record has arrived."""
_ASKED_AGAIN = 60
"""Seconds after which a provider is asked again: whoever rotates keys in a file tells nobody."""


@dataclass
class Seen:
    """What a look at a shard's next record showed."""

    record: Position | None
    iterator: str | None
    sure: bool = True
    """False when the service was still behind: there may be a record after all."""


class Stream:
    """Asks the service about one stream; lives in the driver as long as the query."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._caller = Caller(self._connected(), settings.endpoint, settings.retries)
        self._asked_at = time.monotonic()
        self.consumer: Consumer | None = None
        """The consumer to subscribe with, when the job reads with a throughput of its own."""
        if settings.fan_out is not None:
            self.consumer = Consumer(self._caller, settings, settings.fan_out)
        self._noted: tuple[float, float] | None = None
        """The service's time as it was last told, and when that was, by a clock nobody sets."""
        self._idle: dict[str, str] = {}
        self._left: dict[str, deque[tuple[Position, str]]] = {}
        """Iterators that looks have left at records: where this batch begins, and the next."""
        self._ended: dict[str, int] = {}
        """Shards that ended while we looked, and a moment at which they had not yet."""
        self._oldest = 0
        """A moment before the first record that the stream still has, once it was asked for."""
        self._looked: dict[str, deque[float]] = {}
        self._rest = settings.apart
        self._behind: dict[str, int] = {}
        self.unsure: set[str] = set()
        """Shards of which the last look ended before it had met a record or the tip."""
        self._shards: list[Shard] = []
        self._parents: dict[str, tuple[str, ...]] = {}
        self._listed_at = float("-inf")

    def _connected(self) -> Any:
        endpoint = self._settings.endpoint
        return kinesis(endpoint.provider, endpoint.region, endpoint.url, verify=endpoint.verify)

    def _ask_again(self) -> None:
        """Go on with what the provider finds now; while it finds nothing, with what it found."""
        if time.monotonic() - self._asked_at < _ASKED_AGAIN:
            return
        self._asked_at = time.monotonic()
        try:
            self._caller.client = self._connected()
        except StreamcoreError as error:
            log.warning("reading goes on with the credentials found before: %s", error)

    # --- the service's clock and shards ---------------------------------------------

    def now(self) -> int:
        """The service's time in milliseconds: what it told last, and what has passed since."""
        if self._noted is None:
            return int(time.time() * 1000)
        told, at = self._noted
        return int((told + time.monotonic() - at) * 1000)

    def retention(self) -> int:
        """For how many milliseconds the stream keeps a record."""
        return int(self._summary()["RetentionPeriodHours"]) * 3_600_000

    def _summary(self) -> Mapping[str, Any]:
        answer = self._caller.call(
            f"describing stream '{self._settings.stream_name}'",
            lambda: self._caller.client.describe_stream_summary(**self._settings.stream),
            backoff=self._settings.describing,
        )
        self._note_time(answer)
        found: Mapping[str, Any] = answer["StreamDescriptionSummary"]
        return found

    def shards(self, *, fresh: bool = False, **only: Any) -> list[Shard]:
        """All shards, listed again when the discovery interval has passed."""
        age = time.monotonic() - self._listed_at
        if only:
            return self._list(ShardFilter=only)
        if fresh or not self._shards or age >= self._settings.discovery.total_seconds():
            self._ask_again()
            self._shards = self._list()
            self._parents = {shard.name: shard.parents for shard in self._shards}
            self._listed_at = time.monotonic()
        return self._shards

    def shards_from(self, moment: datetime) -> list[Shard]:
        """The shards there were at a moment, or all that are left if that is too long ago."""
        try:
            since = {"Type": "FROM_TIMESTAMP", "Timestamp": moment}
            return self._list(final=("InvalidArgumentException",), ShardFilter=since)
        except self._caller.client.exceptions.InvalidArgumentException as error:
            when = int(moment.timestamp() * 1000)
            if when > self.now() - self.retention():
                what = f"listing the shards of stream '{self._settings.stream_name}'"
                endpoint = self._settings.endpoint
                raise explain(error, what, endpoint.region, endpoint.url) from error
            log.warning(
                "stream '%s' keeps nothing of %s UTC any more: reading starts with the oldest "
                "record there is",
                self._settings.stream_name,
                _shown(when),
            )
            return self.shards(Type="FROM_TRIM_HORIZON")

    def _list(self, final: tuple[str, ...] = (), **arguments: Any) -> list[Shard]:
        found: list[Shard] = []
        asked: dict[str, Any] = {**self._settings.stream, **arguments}
        while True:
            try:
                answer = self._caller.call(
                    f"listing the shards of stream '{self._settings.stream_name}'",
                    partial(self._caller.client.list_shards, **asked),
                    (*final, "ExpiredNextTokenException"),
                    backoff=self._settings.listing,
                )
            except self._caller.client.exceptions.ExpiredNextTokenException:
                return self._list(final, **arguments)
            self._note_time(answer)
            found += [Shard.listed(each) for each in answer["Shards"]]
            if not answer.get("NextToken"):
                return found
            asked = {"NextToken": answer["NextToken"]}

    def _note_time(self, answer: Mapping[str, Any]) -> None:
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        if date:  # whole seconds, rounded down: the slice ends a little earlier, never later
            self._noted = parsedate_to_datetime(date).timestamp(), time.monotonic()

    # --- where slices end ---------------------------------------------------------------

    @property
    def behind(self) -> int:
        """Milliseconds the ends of the last slices are behind the tips of their shards."""
        return max(self._behind.values(), default=0)

    def wait_for(self, moment: int) -> None:
        """Wait until the service's clock shows so many milliseconds."""
        time.sleep(max(0.0, (moment - self.now()) / 1000))

    def wait_until_due(self) -> None:
        """Hold back a look that would come too soon after the last one."""
        pause = max(self._rest.total_seconds(), _WITHIN / _LOOKS)
        last = max((times[-1] for times in self._looked.values() if times), default=float("-inf"))
        time.sleep(min(max(0.0, last + pause - time.monotonic()), pause))

    def iterator_at(self, shard: str, start: Position) -> str | None:
        """An iterator at the start of a slice, if a look has left one."""
        left = self._left.get(shard, ())
        return next((iterator for at, iterator in left if at == start), None)

    def ends(
        self, frontier: Mapping[str, Position], horizon: int, *, returning: bool = False
    ) -> tuple[dict[str, Position], bool]:
        """The end of the next slice of every shard, and whether any of them has records.

        `returning` says that a job reads on from here, so that whatever has expired is lost.
        """
        if returning:
            self._check_ages(frontier)
        self._behind.clear()
        self.unsure.clear()
        long_ago = horizon - self._milliseconds_per_slice()
        reading = {name: start for name, start in frontier.items() if start != END}
        cold = [at for name, at in reading.items() if "seq" not in at and name not in self._idle]
        if any(at.get("ts", 0) < long_ago for at in cold):
            self._find_oldest()  # here, because the threads below would all do it
        with ThreadPoolExecutor(min(16, max(1, len(reading)))) as pool:
            found = dict(
                zip(
                    reading,
                    pool.map(lambda shard: self._end(shard, reading[shard], horizon), reading),
                    strict=True,
                )
            )
        busy = any(moved for _, moved in found.values())
        self._rest = self._settings.apart if busy else self._settings.pause
        ends = {name: end if busy else frontier[name] for name, (end, _) in found.items()}
        return ends | {name: END for name in frontier if name not in reading}, busy

    def final_ends(self, starts: Mapping[str, Position], horizon: int) -> dict[str, Position]:
        """The end of every shard for a read that happens once, up to the horizon."""
        with ThreadPoolExecutor(min(16, max(1, len(starts)))) as pool:
            looks = pool.map(lambda shard: self._look(shard, at_time(horizon)), starts)
            return {
                shard: seen.record or (at_time(horizon) if seen.iterator else dict(END))
                for shard, seen in zip(starts, looks, strict=True)
            }

    def _end(self, shard: str, start: Position, horizon: int) -> tuple[Position, bool]:
        """Where this shard's slice ends, and whether that is any progress for the query."""
        since, sure = self._since(shard, start)
        if since is None:
            return self._over(shard, start), True
        if since >= horizon:  # nothing to read before the horizon
            moves_on = sure and "ts" in start and horizon > int(start["ts"])
            end = at_time(horizon) if moves_on else start
            return end, moves_on and horizon - int(start["ts"]) >= _STALE
        limit = min(horizon, since + self._milliseconds_per_slice())
        self._idle.pop(shard, None)
        seen = self._look(shard, at_time(limit))
        if seen.record is not None:
            return seen.record, True
        if seen.iterator is None:
            return self._over(shard, start), True
        self._idle[shard] = seen.iterator
        return at_time(limit), True

    def _since(self, shard: str, start: Position) -> tuple[int | None, bool]:
        """No record from a position on arrived before this moment; and whether that is sure.

        None says that there will be none at all.
        """
        if "seq" in start:
            return int(start["at"]), True
        if shard not in self._idle:  # not worth a call: should nothing be there, a batch is empty
            return max(int(start.get("ts", 0)), self._born(shard)), True
        seen = self._look(shard, start, self._idle[shard])
        if seen.record is not None:
            assert seen.iterator is not None
            self._leave(shard, start, seen.iterator)
            return int(seen.record["at"]), True
        if seen.iterator is None:
            return None, True
        self._idle[shard] = seen.iterator
        if not seen.sure:
            self.unsure.add(shard)
        return _NOT_YET, seen.sure

    def _over(self, shard: str, start: Position) -> Position:
        if (moment := known_time(start)) is not None:
            self._ended[shard] = moment
        return dict(END)

    def _born(self, shard: str) -> int:
        """A moment before the first record of a shard: its parents were not yet closed then."""
        ended = (self._ended.get(parent, 0) for parent in self._parents.get(shard, ()))
        return max(self._oldest, *ended, 0)

    def _find_oldest(self) -> None:
        if not self._oldest:
            summary = self._summary()
            kept = int(summary["RetentionPeriodHours"]) * 3_600_000
            made = int(summary["StreamCreationTimestamp"].timestamp() * 1000)
            self._oldest = max(made, self.now() - kept)

    def _leave(self, shard: str, at: Position, iterator: str) -> None:
        self._left.setdefault(shard, deque(maxlen=2)).append((at, iterator))

    def _look(self, shard: str, at: Position, iterator: str | None = None) -> Seen:
        """The first record from a position on, following answers that are empty but behind."""
        try:
            iterator = iterator or self.iterator(shard, at)
            for _ in range(_FOLLOWED):
                answer = self._records(shard, iterator)
                self._behind[shard] = int(answer.get("MillisBehindLatest") or 0)
                if answer["Records"]:
                    record = answer["Records"][0]
                    arrival = round(record["ApproximateArrivalTimestamp"].timestamp() * 1000)
                    met = at_record(record["SequenceNumber"], arrival)
                    self._leave(shard, met, iterator)
                    return Seen(met, iterator)
                iterator = answer.get("NextShardIterator")
                if iterator is None or not answer.get("MillisBehindLatest"):
                    return Seen(None, iterator)
            return Seen(None, iterator, sure=False)
        except self._caller.client.exceptions.ExpiredIteratorException:
            return self._look(shard, at)
        except self._caller.client.exceptions.ResourceNotFoundException:
            self._gone(shard, at)
            return Seen(None, None)

    def _records(self, shard: str, iterator: str) -> Any:
        times = self._looked.setdefault(shard, deque(maxlen=_LOOKS))

        def read() -> Any:  # in its turn: a refused call counts for the service, too
            if len(times) == _LOOKS:
                time.sleep(max(0.0, times[0] + _WITHIN - time.monotonic()))
            times.append(time.monotonic())
            return self._caller.client.get_records(
                **self._settings.stream_by_arn, ShardIterator=iterator, Limit=1
            )

        return self._caller.call(
            f"reading shard '{shard}' of stream '{self._settings.stream_name}'",
            read,
            final=("ExpiredIteratorException", "ResourceNotFoundException"),
        )

    def iterator(self, shard: str, at: Position) -> str:
        """A shard iterator at a position."""
        return str(
            self._caller.call(
                f"positioning in shard '{shard}' of stream '{self._settings.stream_name}'",
                lambda: self._caller.client.get_shard_iterator(
                    **self._settings.stream, ShardId=shard, **iterator_arguments(at)
                )["ShardIterator"],
                final=("ResourceNotFoundException",),
                backoff=self._settings.positioning,
            )
        )

    def _check_ages(self, frontier: Mapping[str, Position]) -> None:
        """Complain about a moment that is older than anything the stream still keeps."""
        waiting = {
            shard: int(start["ts"])
            for shard, start in frontier.items()
            if "ts" in start and shard not in self._idle
        }
        if not waiting or self.now() - min(waiting.values()) < _KEPT:
            return
        oldest = self.now() - self.retention()
        for shard, when in waiting.items():
            if self._settings.fail_on_data_loss and when < oldest:
                raise DataLossError(
                    f"records of shard '{shard}' of stream '{self._settings.stream_name}' that "
                    f"arrived between {_shown(when)} and {_shown(oldest)} UTC may have expired "
                    "unread. Set 'source.fail-on-data-loss' to 'false' to go on without them."
                )

    def _gone(self, shard: str, at: Position) -> None:
        if self._settings.fail_on_data_loss and at != END:
            when = known_time(at)
            read = f"after {_shown(when)} UTC " if when else ""
            raise DataLossError(
                f"shard '{shard}' of stream '{self._settings.stream_name}' is gone, and "
                f"its records {read}with it. Set 'source.fail-on-data-loss' to 'false' to go on "
                "without them."
            )

    def _milliseconds_per_slice(self) -> int:
        return int(self._settings.slice.total_seconds() * 1000)


def _shown(millis: int) -> str:
    return f"{datetime.fromtimestamp(millis / 1000, UTC):%F %T}"


def iterator_arguments(at: Position) -> dict[str, Any]:
    """The arguments of GetShardIterator for a position."""
    if "seq" in at:
        return {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": at["seq"]}
    if "ts" in at:
        moment = datetime.fromtimestamp(int(at["ts"]) / 1000, UTC)
        return {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": moment}
    return {"ShardIteratorType": "TRIM_HORIZON"}
