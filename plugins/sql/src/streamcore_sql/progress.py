"""How a job goes: rows in and out, rates, lag, batch time and watermark."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .jobs import BatchJob, Job, JobSet, StreamJob

_BEFORE_ANY_ROW = "1970-01-01"
_LAGS = 60
_LONG_ENOUGH = 5.0


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
    lag_rows: int | None = None
    lag_seconds: float | None = None
    catch_up_seconds: float | None = None
    """When the lag will be gone at this pace; infinite if it grows."""
    batch_seconds: float | None = None
    watermark: str | None = None
    late_rows: int = 0
    state_rows: int | None = None
    done: float | None = None
    """The share of a bounded job that is done, from 0 to 1."""

    def to_json(self) -> dict[str, Any]:
        plain = {key: value for key, value in asdict(self).items() if value is not None}
        if plain.get("catch_up_seconds") == float("inf"):
            plain["catch_up_seconds"] = "never at this pace"
        return plain


class Watch:
    """Looks at jobs again and again, adding up what each batch moved."""

    def __init__(self) -> None:
        self._totals: dict[str, _Total] = {}

    def look(self, job: Job) -> Iterator[Progress]:
        """One line per running query of a job."""
        if isinstance(job, JobSet):
            for inner in job.jobs:
                yield from self.look(inner)
        elif isinstance(job, StreamJob):
            total = self._totals.setdefault(job.id, _Total())
            total.add(job.query.recentProgress)
            yield total.progress(job)
        elif isinstance(job, BatchJob):
            yield Progress(job.name, job.status, done=job.share_done())


class _Total:
    """What one query has moved since it was first looked at."""

    def __init__(self) -> None:
        self.rows_in = self.rows_out = self.late = 0
        self.knows_output = False
        self.last: Mapping[str, Any] | None = None
        self._seen = -1
        self._lags: deque[tuple[float, float]] = deque(maxlen=_LAGS)

    def add(self, recent: list[Any]) -> None:
        for progress in map(_plain, recent):
            if progress["batchId"] > self._seen and progress.get("numInputRows"):
                self._seen = progress["batchId"]
                self.rows_in += progress["numInputRows"]
                written = progress["sink"].get("numOutputRows", -1)
                if written >= 0:
                    self.rows_out, self.knows_output = self.rows_out + written, True
                for operator in progress.get("stateOperators") or ():
                    self.late += operator.get("numRowsDroppedByWatermark", 0)
            self.last = progress

    def progress(self, job: StreamJob) -> Progress:
        last = self.last
        if last is None:
            return Progress(job.name, job.status)
        seconds = last["durationMs"].get("triggerExecution", 0) / 1000
        written = last["sink"].get("numOutputRows", -1)
        watermark = (last.get("eventTime") or {}).get("watermark")
        lag_rows, lag_seconds = _lag(last["sources"])
        states = [each.get("numRowsTotal", 0) for each in last.get("stateOperators") or ()]
        return Progress(
            job.name,
            job.status,
            last["batchId"],
            self.rows_in,
            self.rows_out if self.knows_output else None,
            last.get("processedRowsPerSecond") or 0.0,
            written / seconds if written >= 0 and seconds else None,
            lag_rows,
            lag_seconds,
            self._catch_up(lag_rows if lag_seconds is None else lag_seconds),
            seconds,
            None if not watermark or watermark.startswith(_BEFORE_ANY_ROW) else watermark,
            self.late,
            sum(states) if states else None,
        )

    def _catch_up(self, lag: float | None) -> float | None:
        """The time left, by how fast the lag shrank over the last looks."""
        if lag is None:
            return None
        self._lags.append((time.monotonic(), lag))
        (start, before), (end, _) = self._lags[0], self._lags[-1]
        if end - start < _LONG_ENOUGH or not lag:
            return None
        pace = (before - lag) / (end - start)
        return lag / pace if pace > 0 else float("inf")


def _plain(progress: Any) -> dict[str, Any]:
    """A progress as a dict, on a classic session and through Spark Connect alike."""
    found: dict[str, Any] = json.loads(progress.json)
    return found


def _lag(sources: list[dict[str, Any]]) -> tuple[int | None, float | None]:
    """How far the sources are behind: in rows where they count, in seconds where they keep time."""
    rows: list[int] = []
    seconds: list[float] = []
    for source in sources:
        end, latest = _offset(source.get("endOffset")), _offset(source.get("latestOffset"))
        if "offsets" in latest and "offsets" in end:
            behind = dict(_leaves(latest["offsets"]))
            done = dict(_leaves(end["offsets"]))
            rows.append(sum(max(top - done.get(at, 0), 0) for at, top in behind.items()))
        elif "at" in latest and "at" in end:
            seconds.append(max(latest["at"] - end["at"], 0) / 1000)
    return (sum(rows) if rows else None), (max(seconds) if seconds else None)


def _offset(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _leaves(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, int]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}/{key}")
        elif isinstance(value, int):
            yield f"{path}/{key}", value


def now() -> str:
    """The time of an event, for logs."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
