"""Reads one slice of a shard inside a task: paced, resumed after expiry, complete or an error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

from streamcore import DataLossError

from .positions import END, Position, Slice
from .probing import iterator_arguments
from .retrying import Caller
from .settings import SourceSettings

CALLS_APART = 0.6
"""Seconds between two reads of one shard by a task.

The service allows five reads of a shard in a second. Two of them are the driver's, who looks where
slices end; the rest is for the end of one batch and the beginning of the next. Half a second would
do if reads came in as evenly as they are sent.
"""
_PATIENCE = 300
"""Empty answers in a row before a slice that must still hold records counts as lost."""

Record = dict[str, Any]


class SliceReader:
    """Yields the records of one slice, a list per answer, fetching one answer ahead."""

    def __init__(
        self, caller: Caller, settings: SourceSettings, part: Slice, iterator: str | None = None
    ) -> None:
        self._caller, self._settings, self._part = caller, settings, part
        self._given = iterator
        self._last: str | None = None
        self._met = False
        self._called, self._rest = float("-inf"), 0.0

    def records(self) -> Iterator[list[Record]]:
        """The records from the slice's start to its end, in order."""
        with ThreadPoolExecutor(1) as ahead:
            iterator = self._given or self._iterator()
            waiting: Future[Any] | None = ahead.submit(self._answer, iterator) if iterator else None
            empty = 0
            while waiting is not None:
                answer = waiting.result()
                found = answer["Records"]
                inside = self._inside(found)
                more = len(inside) == len(found) and self._goes_on(answer, empty)
                following = answer.get("NextShardIterator")
                self._check_first(found)
                if inside:
                    self._last = inside[-1]["SequenceNumber"]
                waiting = ahead.submit(self._answer, following) if more and following else None
                empty = 0 if found else empty + 1
                if inside:
                    yield inside
        self._check_met()

    def _inside(self, found: list[Record]) -> list[Record]:
        part = self._part
        if "seq" in part.stop:  # numbers only grow: the last one speaks for all before it
            if found and part.holds(found[-1]["SequenceNumber"], 0):
                return found
            return [record for record in found if part.holds(record["SequenceNumber"], 0)]
        if "ts" in part.stop:
            stop = datetime.fromtimestamp(int(part.stop["ts"]) / 1000, UTC)
            for at, record in enumerate(found):
                if record["ApproximateArrivalTimestamp"] >= stop:
                    return found[:at]
            return found
        return found if part.stop == END else []

    def _goes_on(self, answer: Any, empty: int) -> bool:
        """Whether the slice may hold records after this answer."""
        full = len(answer["Records"]) >= self._settings.limit
        if full or answer.get("MillisBehindLatest"):
            return True
        if "ts" in self._part.stop:  # caught up with a moment that lies after the slice's end
            return False
        if answer["Records"]:
            return True
        if empty >= _PATIENCE:
            self._never_met()
            return False
        return True

    def _check_first(self, found: list[Record]) -> None:
        """A slice that starts at a record must meet it first, even if all that is left lies after.

        Without this, records that expired between two batches would be passed over in silence.
        """
        if not found or self._met:
            return
        self._met = True
        expected, first = self._part.start.get("seq"), found[0]["SequenceNumber"]
        if expected and first != expected:
            self._lost(f"records from {expected} up to {first} have expired")

    def _check_met(self) -> None:
        if "seq" in self._part.start and not self._met:
            self._lost(f"records from {self._part.start['seq']} on have expired")

    def _never_met(self) -> None:
        stop = self._part.stop
        what = f"record {stop['seq']}" if "seq" in stop else "the end of the shard"
        self._lost(f"{what}, up to which this batch reads, was never met")

    def _lost(self, what: str) -> None:
        if self._settings.fail_on_data_loss:
            raise DataLossError(
                f"shard '{self._part.shard}' of stream '{self._settings.stream_name}': {what}. "
                "Set 'source.fail-on-data-loss' to 'false' to go on without them."
            )

    def _answer(self, iterator: str) -> Any:
        """One read, with a new iterator when this one is too old."""
        client = self._caller.client
        while True:
            try:
                return self._caller.call(
                    f"reading shard '{self._part.shard}' of stream '{self._settings.stream_name}'",
                    partial(self._read, iterator),
                    final=("ExpiredIteratorException", "ResourceNotFoundException"),
                )
            except client.exceptions.ExpiredIteratorException:
                fresh = self._iterator()
                if fresh is None:
                    return {"Records": [], "NextShardIterator": None}
                iterator = fresh
            except client.exceptions.ResourceNotFoundException:
                self._lost("the shard no longer exists")
                return {"Records": [], "NextShardIterator": None}

    def _read(self, iterator: str) -> Any:
        """One call, in its turn: a refused one counts for the service, too."""
        wait = self._called + max(CALLS_APART, self._rest) - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        # Only an answer is rested after: an iterator found too old would be so after a rest again.
        self._called, self._rest = time.monotonic(), 0.0
        settings = self._settings
        answer = self._caller.client.get_records(
            **settings.stream_by_arn, ShardIterator=iterator, Limit=settings.limit
        )
        rest = settings.apart if answer["Records"] else settings.pause
        self._rest = rest.total_seconds()
        return answer

    def _iterator(self) -> str | None:
        position: Position = self._part.start
        where = iterator_arguments(position)
        if self._last is not None:
            where = {
                "ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
                "StartingSequenceNumber": self._last,
            }
        try:
            answer = self._caller.call(
                f"positioning in shard '{self._part.shard}' of '{self._settings.stream_name}'",
                lambda: self._caller.client.get_shard_iterator(
                    **self._settings.stream, ShardId=self._part.shard, **where
                ),
                final=("ResourceNotFoundException",),
                backoff=self._settings.positioning,
            )
        except self._caller.client.exceptions.ResourceNotFoundException:
            self._lost("the shard no longer exists")
            return None
        return str(answer["ShardIterator"])
