"""How a job goes, in one look: what it moves, how late it is, and what it had to let go."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from .jobs import BatchJob, Job, JobSet
from .monitoring import wording
from .monitoring.lags import named
from .monitoring.metrics import Batch, Metrics

_REJECTED = ("numRecordsSkipped", "numRecordsIgnored", "numRecordsLost")


@dataclass(frozen=True)
class Progress:
    """One look at a job; None where there is nothing to tell yet."""

    job: str
    status: str
    batch: int | None = None
    rows_in: int = 0
    rows_out: int | None = None
    rate_in: float | None = None
    rate_out: float | None = None
    bytes_in: float | None = None
    """Bytes per second, as `bytes_out` is."""
    bytes_out: float | None = None
    lag_rows: int | None = None
    lag_seconds: float | None = None
    lag_by_topic: Mapping[str, int] = field(default_factory=dict)
    lag_seconds_by_topic: Mapping[str, float] = field(default_factory=dict)
    """How late each topic or shard is, where that is known."""
    drain: float | None = None
    """By how much the lag shrinks each second."""
    catch_up_seconds: float | None = None
    """When the lag will be gone at this pace; infinite if it does not shrink."""
    batch_seconds: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    """What the last batch spent its time on, in milliseconds."""
    watermark: str | None = None
    watermark_seconds: float | None = None
    """How far the watermark is behind the clock."""
    event_seconds: float | None = None
    """How old the newest record was when its row was made."""
    late_rows: int = 0
    rejected: int = 0
    dead_lettered: int = 0
    retries: int = 0
    state_rows: int | None = None
    done: float | None = None
    """The share of a bounded job that is done, from 0 to 1."""
    query: str = ""
    drain_by_topic: Mapping[str, float] = field(default_factory=dict)
    catch_up_seconds_by_topic: Mapping[str, float] = field(default_factory=dict)
    """As `drain` and `catch_up_seconds`, of each topic or shard."""
    batch_rows: int | None = None
    """Rows that the last batch read."""
    batches: Sequence[Batch] = ()
    """The last batches, oldest first; `batch` is the last of them."""

    def of(self, batch: Batch) -> Progress:
        """The same look with an earlier batch as its last one."""
        return replace(
            self,
            status="running",
            batch=batch.number,
            batch_rows=batch.rows,
            batch_seconds=batch.millis / 1000,
            phases=batch.phases,
        )

    def to_json(self) -> dict[str, Any]:
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        del named["batches"]
        return {key: _plain(value) for key, value in named.items() if value not in (None, {}, "")}


class Watch:
    """Looks at jobs again and again."""

    def look(self, job: Job) -> Iterator[Progress]:
        """One look per running query of a job."""
        if isinstance(job, JobSet):
            for inner in job.jobs:
                yield from self.look(inner)
        elif isinstance(job, BatchJob):
            found = job.metrics()
            yield progress_of(found, job.share_done())
        else:
            yield progress_of(job.metrics())


def progress_of(found: Metrics, done: float | None = None) -> Progress:
    """The figures that matter at a glance, over all tables of a job."""

    def total(side: str, *names: str) -> float | None:
        known = [each for name in names if (each := found.total(side, name)) is not None]
        return sum(known) if known else None

    def worst(name: str) -> float | None:
        return max((each[name] for each in found.of("source") if name in each), default=None)

    topics: defaultdict[str, int] = defaultdict(int)
    late: dict[str, float] = {}
    for name, lag in named({table.table: table.lags for table in found.of("source")}):
        if lag.rows is not None:
            topics[name] += lag.rows
        if lag.seconds is not None and name:
            late[name] = max(lag.seconds, late.get(name, 0))
    for table in found.of("source"):
        names = {lag.topic for lag in table.lags}
        if "lagSeconds" in table and len(names) == 1 and (topic := names.pop()):
            late.setdefault(topic, table["lagSeconds"])
    batch, pending = found.get("batchId"), total("source", "pendingRecords")
    paces = [(name, pace) for name, pace in found.paces.items() if name]
    written, emitted = total("sink", "numRecordsOut"), worst("currentEmitEventTimeLag")
    return Progress(
        found.job,
        found.status,
        None if batch is None else int(batch),
        int(total("source", "numRecordsIn") or 0),
        None if written is None else int(written),
        total("source", "numRecordsInPerSecond"),
        total("sink", "numRecordsOutPerSecond"),
        total("source", "numBytesInPerSecond"),
        total("sink", "numBytesOutPerSecond"),
        None if pending is None else int(pending),
        worst("lagSeconds"),
        dict(topics),
        late,
        found.get("drainPerSecond"),
        found.get("catchUpSeconds"),
        _seconds(found.get("batchTime")),
        found.phases,
        found.watermark or None,
        _seconds(found.get("watermarkLag")),
        _seconds(emitted),
        int(found.get("numLateRecordsDropped", 0)),
        int(total("source", *_REJECTED) or 0),
        int(total("source", "numRecordsDeadLettered") or 0),
        int((total("source", "numRetries") or 0) + (total("sink", "numRetries") or 0)),
        None if "stateRows" not in found else int(found["stateRows"]),
        done,
        found.query,
        {name: round(each.drain, 3) for name, each in paces if each.drain is not None},
        {name: ends for name, each in paces if (ends := each.catch_up_seconds) is not None},
        found.batches[-1].rows if found.batches else None,
        found.batches,
    )


def _plain(value: Any) -> Any:
    """As JSON can say it, which knows no infinity."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return "never at this rate" if value == float("inf") else value


def _seconds(millis: float | None) -> float | None:
    return None if millis is None else millis / 1000


def now() -> str:
    """The time of an event, for logs."""
    return wording.stamp(time.time())
