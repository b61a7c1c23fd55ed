"""What can go wrong with Kinesis, drawn from a seed, and a ledger of what did."""

from __future__ import annotations

import json
import math
import random
import re
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field, fields
from typing import Any

THROTTLED = "ProvisionedThroughputExceededException"
DATA_CALLS = frozenset({"GetRecords", "PutRecord", "PutRecords"})
MOST_RECORDS, MOST_BYTES = 500, 5 * 1024 * 1024
_NEXT = re.compile(rb'"NextShardIterator":"([^"]+)"')


@dataclass
class Faults:
    """What goes wrong; shares are between 0 and 1. Change it at any time, `clear()` heals."""

    throttle: float = 0.0
    """Share of reads and writes refused as over the rate."""
    partial: float = 0.0
    """Share of the records of PutRecords that fail while their siblings succeed."""
    expire_every: int = 0
    """Every n-th GetRecords finds its iterator expired."""
    disconnect: float = 0.0
    """Share of calls whose connection breaks before the service sees them."""
    lose_reply: float = 0.0
    """Share of writes that are done, but whose reply never arrives."""
    limit_control: float = 0.0
    """Share of all other calls refused with LimitExceededException."""
    empty_reads: int = 0
    """Answers without records, though behind, with which reading from TRIM_HORIZON begins."""
    reads_per_second: int = 0
    """GetRecords calls a shard allows in a second (AWS: 5); 0 is no limit."""
    cut_subscription_after: int = 0
    """A subscription breaks after that many events; 0 is never."""
    subscription_holds: float = 0.0
    """Seconds for which a shard subscribed to refuses its consumer another (AWS: 5)."""
    latency: float = 0.0
    """Seconds added to each call."""
    shift_arrivals: float = 0.0
    """Seconds by which times of arrival are ahead of the service's clock, where reads poll."""
    refuse: str = ""
    """Code that answers every call, such as AccessDeniedException; empty is none."""

    def clear(self) -> None:
        for setting in fields(self):
            setattr(self, setting.name, setting.default)


@dataclass(frozen=True)
class Call:
    """One request as the proxy saw it; `shard` is known for reads."""

    at: float
    operation: str
    shard: str | None = None


@dataclass
class Ledger:
    """What passed and what was done to it, for tests to count."""

    calls: list[Call] = field(default_factory=list)
    injected: Counter[str] = field(default_factory=Counter)
    ambiguous_records: int = 0
    """Records written whose writer was never told."""

    def peak_reads_per_second(self) -> dict[str, int]:
        """The most GetRecords calls within any second, per shard."""
        peaks: dict[str, int] = {}
        recent: dict[str, deque[float]] = {}
        for call in self.calls:
            if call.operation == "GetRecords" and call.shard:
                times = recent.setdefault(call.shard, deque())
                times.append(call.at)
                while call.at - times[0] >= 1:
                    times.popleft()
                peaks[call.shard] = max(peaks.get(call.shard, 0), len(times))
        return peaks


class Refusal(Exception):  # noqa: N818 - an answer of the service, not an error of ours
    """An AWS error to answer with."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
        self.body = json.dumps({"__type": code, "message": message}).encode()


class Fate:
    """Decides for each call what becomes of it."""

    def __init__(self, seed: int | None = None) -> None:
        self.faults, self.ledger = Faults(), Ledger()
        self.seed = random.randrange(2**32) if seed is None else seed
        self._random = random.Random(self.seed)
        self._lock = threading.Lock()
        self._reads = 0
        self._shards: dict[str, str] = {}
        self._empty: dict[str, int] = {}
        self._recent_reads: dict[str, deque[float]] = {}
        self._subscribed: dict[tuple[str, str], float] = {}

    def draw_from(self, seed: int) -> None:
        """Draw faults from this seed from now on, as a fate that begins with it would."""
        with self._lock:
            self.seed, self._random, self._reads = seed, random.Random(seed), 0

    def happens(self, share: float, name: str) -> bool:
        """Draw once; a fault that strikes is counted under its name."""
        with self._lock:
            strikes = share > 0 and self._random.random() < share
            self.ledger.injected[name] += strikes
            return strikes

    def note(self, operation: str, request: dict[str, Any]) -> None:
        shard = self._shards.get(request.get("ShardIterator", ""))
        with self._lock:
            self.ledger.calls.append(Call(time.monotonic(), operation, shard))

    def learn(self, operation: str, request: dict[str, Any], reply: bytes) -> None:
        """Iterators are opaque: remember which shard one is of by how it was got."""
        if operation == "GetShardIterator":
            stream = request.get("StreamName") or request.get("StreamARN", "").rpartition("/")[2]
            shard = f"{stream}/{request['ShardId']}"
            iterator = json.loads(reply)["ShardIterator"]
            self._shards[iterator] = shard
            if request["ShardIteratorType"] == "TRIM_HORIZON":
                self._empty[iterator] = self.faults.empty_reads
        elif operation == "GetRecords" and (found := _NEXT.search(reply)):
            known = self._shards.get(request["ShardIterator"])
            if known is not None:
                self._shards[found[1].decode()] = known

    def behind(self, operation: str, request: dict[str, Any]) -> bytes | None:
        """An answer from a part of a shard that holds no records, as long as that part is."""
        iterator = request.get("ShardIterator", "")
        if operation != "GetRecords" or not self._empty.get(iterator):
            return None
        self._empty[iterator] -= 1
        self.ledger.injected["empty"] += 1
        reply = {"Records": [], "NextShardIterator": iterator, "MillisBehindLatest": 3_600_000}
        return json.dumps(reply).encode()

    def check(self, operation: str, request: dict[str, Any]) -> None:
        """Refuse what AWS would refuse but the emulator accepts, and what a fault strikes."""
        if self.faults.refuse:
            self.ledger.injected["refuse"] += 1
            raise Refusal(self.faults.refuse, f"Injected instead of {operation}.")
        if operation == "PutRecords":
            _check_size(request["Records"])
        if operation in DATA_CALLS:
            if self.happens(self.faults.throttle, "throttle"):
                raise Refusal(THROTTLED, "Rate exceeded for the shard.")
        elif self.happens(self.faults.limit_control, "limit"):
            raise Refusal("LimitExceededException", f"Rate exceeded for {operation}.")
        if operation == "GetRecords":
            self._check_read(self._shards.get(request.get("ShardIterator", ""), ""))
        if operation == "SubscribeToShard":
            self._check_subscription(request["ConsumerARN"], request["ShardId"])

    def _check_read(self, shard: str) -> None:
        with self._lock:
            self._reads += 1
            every = self.faults.expire_every
            if every and self._reads % every == 0:
                self.ledger.injected["expire"] += 1
                raise Refusal("ExpiredIteratorException", "Iterator expired.")
            limit, now = self.faults.reads_per_second, time.monotonic()
            recent = self._recent_reads.setdefault(shard, deque())
            while recent and now - recent[0] >= 1:
                recent.popleft()
            if limit and len(recent) >= limit:
                self.ledger.injected["rate"] += 1
                raise Refusal(THROTTLED, f"Rate exceeded for shard {shard}.")
            recent.append(now)

    def _check_subscription(self, consumer: str, shard: str) -> None:
        with self._lock:
            now = time.monotonic()
            last = self._subscribed.get((consumer, shard), -math.inf)
            if now - last < self.faults.subscription_holds:
                self.ledger.injected["in_use"] += 1
                raise Refusal("ResourceInUseException", f"Shard {shard} is subscribed to.")
            self._subscribed[consumer, shard] = now

    def split_off_failures(self, records: list[Any]) -> list[dict[str, str] | None]:
        """For each record, the failure to report instead of writing it, or None."""
        share = self.faults.partial
        codes = (THROTTLED, "InternalFailure")
        with self._lock:
            outcome = [
                {"ErrorCode": self._random.choice(codes), "ErrorMessage": "Injected."}
                if share and self._random.random() < share
                else None
                for _ in records
            ]
            self.ledger.injected["partial"] += sum(entry is not None for entry in outcome)
        return outcome


def _check_size(records: list[dict[str, str]]) -> None:
    if len(records) > MOST_RECORDS:
        raise Refusal(
            "ValidationException",
            "1 validation error detected: Value at 'records' failed to satisfy constraint: "
            f"Member must have length less than or equal to {MOST_RECORDS}",
        )
    size = sum(len(r["Data"]) * 3 // 4 + len(r["PartitionKey"].encode()) for r in records)
    if size > MOST_BYTES:
        raise Refusal(
            "InvalidArgumentException", f"Records size exceeds {MOST_BYTES} bytes: {size}."
        )
