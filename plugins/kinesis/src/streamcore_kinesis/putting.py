"""Puts records to a stream in full requests, several at a time, until every one is accepted."""

from __future__ import annotations

import logging
import random
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Lock, Timer
from typing import Any, NamedTuple, Self

from streamcore import ConnectionFailed, RecordError

from .client import PASSING, code_of, explain, is_passing, kinesis
from .retrying import Patience
from .settings import SinkSettings

LARGEST = 1024 * 1024
_LONGEST_KEY, _SHOWN = 256, 40
_MORE_PER_SUCCESS, _LESS_PER_FAILURE = 10, 0.99
_LONGEST_PAUSE = 1.0
_SHORTEST_WATCH = 0.05
_MOST_BEFORE_SUCCESS = 50
"""Failed requests before the first success after which the endpoint counts as a wrong one."""
_WARN_EVERY = 30.0
"""Seconds between two warnings about requests that keep failing."""

log = logging.getLogger("streamcore.kinesis")


class Entry(NamedTuple):
    """A record on its way: its bytes, its partition key, and what both weigh in a request."""

    data: bytes
    key: str
    weight: int


class Putter:
    """Buffers, sends and sends again; everything is accepted once `close` has returned.

    Used in a `with` block it closes at its end; a block that fails leaves the rest unsent.
    """

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        endpoint = settings.endpoint
        self._client = kinesis(
            endpoint.provider,
            endpoint.region,
            endpoint.url,
            verify=endpoint.verify,
            connections=settings.in_flight,
            read_seconds=settings.read_timeout.total_seconds(),
        )
        self._pool = ThreadPoolExecutor(settings.in_flight)
        self._waiting: deque[Entry] = deque()
        self._weight = 0
        self._oldest, self._patient = time.monotonic(), settings.flush_after.total_seconds()
        self._flying: dict[Future[Any], list[Entry]] = {}
        self._in_flight = 0
        self._answered: SimpleQueue[Future[Any]] = SimpleQueue()
        self._allowed = float(settings.batch_size)
        self._pause = 0.0
        self._patience = Patience()
        self._failed, self._succeeded, self._warned = 0, False, float("-inf")
        self.records = self.bytes = self.requests = self.retried = 0
        self.seconds = 0.0
        """Time spent waiting for the stream."""
        self._working = Lock()
        self._timer: Timer | None = None
        self._trouble: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._stop()

    def put(self, data: bytes, key: str) -> None:
        """Take one record."""
        self.put_all([(data, key)])

    def put_all(self, records: Iterable[tuple[bytes | None, str]]) -> None:
        """Take records with their keys; holds the task back while too many are waiting.

        What has no bytes is no record. What is left waits no longer than it may, even if the task
        has nothing more to put.
        """
        with self._working:
            self._complain()
            for data, key in records:
                if data is not None:
                    self._take(data, key)
            self._watch()

    def _take(self, data: bytes, key: str) -> None:
        if not 1 <= len(key) <= _LONGEST_KEY:
            raise RecordError(
                f"a partition key has 1 to {_LONGEST_KEY} characters, this one has {len(key)}"
            )
        weight = len(data) + len(key.encode())
        if weight > LARGEST:
            raise RecordError(
                f"a record of {len(data)} bytes with a partition key of {weight - len(data)}, "
                f"'{key[:_SHOWN]}', is larger than the {LARGEST} bytes a stream takes"
            )
        if not self._waiting:
            self._oldest = time.monotonic()
        self._waiting.append(Entry(data, key, weight))
        self._weight += weight
        self.records += 1
        self.bytes += len(data)
        if self._is_due():
            self._send()
        while len(self._waiting) + self._in_flight >= self._settings.buffered:
            self._settle(block=True)
            self._send()

    def close(self) -> None:
        """Send what is left, and wait until the stream has everything."""
        try:
            with self._working:
                self._complain()
                while self._waiting or self._flying:
                    self._send(everything=True)
                    self._settle(block=True)
        finally:
            self._stop()

    def _stop(self) -> None:
        with self._working:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._pool.shutdown(wait=False, cancel_futures=True)

    # --- age --------------------------------------------------------------------------

    def _watch(self) -> None:
        """Send in time what waits or is refused while the task works on its next rows."""
        if (self._waiting or self._flying) and self._timer is None:
            left = self._patient - (time.monotonic() - self._oldest)
            self._timer = Timer(max(left, _SHORTEST_WATCH), self._send_what_is_old)
            self._timer.daemon = True
            self._timer.start()

    def _send_what_is_old(self) -> None:
        with self._working:
            if self._timer is None:
                return  # stopped while it was about to begin
            self._timer = None
            try:
                self._send()
            except Exception as error:  # for the task, which asks next
                self._trouble = error
            else:
                self._watch()

    def _complain(self) -> None:
        if self._trouble is not None:
            raise self._trouble

    # --- requests ---------------------------------------------------------------------

    def _send(self, *, everything: bool = False) -> None:
        self._settle(block=False)
        while self._waiting and self._may_send(everything):
            batch = self._batch()
            self._in_flight += len(batch)
            self.requests += 1
            future = self._pool.submit(self._request, batch)
            self._flying[future] = batch
            future.add_done_callback(self._answered.put)

    def _may_send(self, everything: bool) -> bool:
        settings = self._settings
        free = len(self._flying) < settings.in_flight and self._in_flight < self._allowed
        if self._flying and not free:
            return False
        return everything or self._is_due()

    def _is_due(self) -> bool:
        """Whether what waits fills a request, or has waited long enough."""
        return (
            len(self._waiting) >= self._settings.batch_size
            or self._weight >= self._settings.flush_bytes
            or time.monotonic() - self._oldest >= self._patient
        )

    def _batch(self) -> list[Entry]:
        batch: list[Entry] = []
        weight = 0
        while self._waiting and len(batch) < self._settings.batch_size:
            if batch and weight + self._waiting[0].weight > self._settings.flush_bytes:
                break
            entry = self._waiting.popleft()
            weight += entry.weight
            batch.append(entry)
        self._weight -= weight
        self._oldest = time.monotonic()
        return batch

    def _request(self, batch: list[Entry]) -> Any:
        if self._pause:
            time.sleep(self._pause * (0.5 + random.random() / 2))
        return self._client.put_records(
            **self._settings.stream,
            Records=[{"Data": entry.data, "PartitionKey": entry.key} for entry in batch],
        )

    def _settle(self, *, block: bool) -> None:
        """Take the answers that have come, and wait for one if nothing else can be done."""
        while self._flying and (block or not self._answered.empty()):
            began = time.perf_counter()
            future = self._answered.get()
            self.seconds += time.perf_counter() - began
            block = False
            batch = self._flying.pop(future)
            self._in_flight -= len(batch)
            self._handle(future, batch)

    def _handle(self, future: Future[Any], batch: list[Entry]) -> None:
        what = f"writing to stream '{self._settings.stream_name}'"
        endpoint = self._settings.endpoint
        error = future.exception()
        if error is not None:
            assert isinstance(error, Exception)
            given_up = self._is_hopeless(error) or self._patience.ends(error)
            if self._settings.fail_on_error or given_up or not is_passing(error):
                if self._failed > 1:
                    what += f" was tried {self._failed} times without success and"
                raise explain(error, what, endpoint.region, endpoint.url) from error
            self._retry(batch, f"{what} fails and is tried again: {error}")
            return
        self._patience.heard()
        results = future.result()["Records"]
        refused = [
            (entry, result)
            for entry, result in zip(batch, results, strict=True)
            if result.get("ErrorCode")
        ]
        if not refused:
            ceiling = self._settings.batch_size * self._settings.in_flight
            self._allowed = min(self._allowed + _MORE_PER_SUCCESS, ceiling)
            self._pause = 0.0
            self._succeeded, self._failed = True, 0
            return
        code, said = refused[0][1]["ErrorCode"], refused[0][1].get("ErrorMessage", "")
        if self._settings.fail_on_error or "AccessDenied" in code:
            raise ConnectionFailed(
                f"{what} failed: {len(refused)} of {len(batch)} records were refused, the first "
                f"with {code}: {said}"
            )
        self._succeeded = self._succeeded or len(refused) < len(batch)
        said = f"{len(refused)} of {len(batch)} records are refused and sent again: {code}: {said}"
        self._retry([entry for entry, _ in refused], f"{what}: {said}")

    def _is_hopeless(self, error: Exception) -> bool:
        """Whether requests have failed too often for an endpoint that has taken none so far."""
        self._failed += code_of(error) not in PASSING  # a stream that throttles is the right one
        return not self._succeeded and self._failed >= _MOST_BEFORE_SUCCESS

    def _retry(self, entries: list[Entry], why: str) -> None:
        """Put refused records back to the front, in their order, and slow down."""
        if time.monotonic() - self._warned >= _WARN_EVERY:
            self._warned = time.monotonic()
            log.warning(why)
        self._waiting.extendleft(reversed(entries))
        self._weight += sum(entry.weight for entry in entries)
        self._allowed = max(1.0, self._allowed * _LESS_PER_FAILURE)
        self._pause = min(_LONGEST_PAUSE, max(0.05, self._pause * 2))
        self.retried += len(entries)
