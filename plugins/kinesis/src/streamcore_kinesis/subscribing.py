"""Reads one slice of a shard with a throughput of its own, resubscribing as often as it takes."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from streamcore import ConnectionFailed, StreamcoreError

from .client import code_of, explain, is_broken_stream, is_passing, is_silence
from .fetching import Record, SliceReader
from .positions import Position, Slice
from .retrying import Caller, pause
from .settings import FanOut, SourceSettings

log = logging.getLogger("streamcore.kinesis")

_QUIET, _VERY_QUIET = 3, 30
"""Events without records, at the tip of the shard, after which a moment has surely passed, and
after which a record that was there when the batch was planned surely does not come.
"""


class SubscribedSliceReader(SliceReader):
    """Yields the records of one slice, a list per event."""

    def __init__(
        self, caller: Caller, settings: SourceSettings, part: Slice, fan_out: FanOut, arn: str
    ) -> None:
        super().__init__(caller, settings, part)
        self._fan_out, self._arn = fan_out, arn
        self._from: dict[str, Any] = starting_position(part.start)
        self._shard = f"shard '{part.shard}' of stream '{settings.stream_name}'"

    def records(self) -> Iterator[list[Record]]:
        failures = quiet = 0
        while True:
            try:
                for event in self._events():
                    failures = 0
                    found = event["Records"]
                    inside = self._inside(found)
                    self._check_first(found)
                    if inside:
                        self._last = inside[-1]["SequenceNumber"]
                        yield inside
                    following = event.get("ContinuationSequenceNumber")
                    ended = not following or event.get("ChildShards")
                    if len(inside) < len(found) or ended:
                        self._check_met()
                        return
                    self._from = {"Type": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": following}
                    quiet = 0 if found or event.get("MillisBehindLatest") else quiet + 1
                    if quiet >= _QUIET and "ts" in self._part.stop:
                        self._check_met()
                        return
                    if quiet >= _VERY_QUIET:  # what the slice should end with has expired
                        self._never_met()
                        return
            except StreamcoreError:
                raise
            except Exception as error:
                code = code_of(error)
                if code == "ResourceNotFoundException":
                    self._check_consumer()
                    self._lost("the shard no longer exists")
                    return
                if is_silence(error):  # nobody has refused us: not one of the attempts
                    log.warning("%s said nothing in time; it is subscribed to again", self._shard)
                    continue
                failures += 1
                in_use = code in ("ResourceInUseException", "LimitExceededException")
                if failures >= self._fan_out.subscribing.attempts or not (
                    in_use or is_passing(error) or is_broken_stream(error)
                ):
                    endpoint = self._settings.endpoint
                    what = f"subscribing to {self._shard}"
                    raise explain(error, what, endpoint.region, endpoint.url) from error
                # A subscription holds its shard for five seconds, whoever ended it.
                time.sleep(max(1.0 if in_use else 0.0, pause(self._fan_out.subscribing, failures)))

    def _check_consumer(self) -> None:
        """The service says of a missing consumer what it says of a missing shard."""
        client = self._caller.client
        try:
            self._caller.call(
                f"describing consumer '{self._fan_out.name}'",
                lambda: client.describe_stream_consumer(ConsumerARN=self._arn),
                final=("ResourceNotFoundException",),
            )
        except client.exceptions.ResourceNotFoundException:
            raise ConnectionFailed(
                f"the consumer '{self._arn}' no longer exists, so stream "
                f"'{self._settings.stream_name}' cannot be read on. Start the query again: it "
                "registers a consumer of its own, or looks for one that it was given."
            ) from None

    def _events(self) -> Iterator[dict[str, Any]]:
        answer = self._caller.client.subscribe_to_shard(
            ConsumerARN=self._arn, ShardId=self._part.shard, StartingPosition=self._from
        )
        stream = answer["EventStream"]
        try:
            for event in stream:
                yield event["SubscribeToShardEvent"]
        finally:
            stream.close()


def starting_position(at: Position) -> dict[str, Any]:
    """A position as SubscribeToShard wants it."""
    if "seq" in at:
        return {"Type": "AT_SEQUENCE_NUMBER", "SequenceNumber": at["seq"]}
    if "ts" in at:
        return {"Type": "AT_TIMESTAMP", "Timestamp": datetime.fromtimestamp(at["ts"] / 1000, UTC)}
    return {"Type": "TRIM_HORIZON"}
