"""The figures of a job, by table, under the names that Flink users know.

What cannot be known is absent, never 0. Times are in milliseconds unless the name says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .lags import Lag

SOURCE = {
    "numRecordsIn": "records read",
    "numRecordsInPerSecond": "records read per second, over the last minute",
    "numBytesIn": "bytes of values read",
    "numBytesInPerSecond": "bytes of values read per second, over the last minute",
    "pendingRecords": "records that wait to be read",
    "currentFetchEventTimeLag": "milliseconds from the last record's time to its fetch",
    "currentEmitEventTimeLag": "milliseconds from the last record's time to its row",
    "sourceIdleTime": "milliseconds since the last record came",
    "numRecordsSkipped": "records skipped because they are no rows",
    "numRecordsDeadLettered": "records sent to the dead-letter topic or stream",
    "numRecordsIgnored": "records that the format was told to ignore",
    "numRecordsLost": "records gone before they could be read",
    "numCommits": "commits of the group's offsets",
    "numFailedCommits": "commits of the group's offsets that failed",
    "numRetries": "calls and tasks tried again",
    "lagSeconds": "seconds that reading is behind the newest record",
}
SINK = {
    "numRecordsOut": "records written",
    "numRecordsOutPerSecond": "records written per second, over the last minute",
    "numBytesOut": "bytes of values written",
    "numBytesOutPerSecond": "bytes of values written per second, over the last minute",
    "currentSendTime": "milliseconds the last batch took to send",
    "numTransactions": "transactions committed",
    "numRepeatedTransactions": "transactions found committed by an earlier attempt",
    "numRetries": "calls and tasks tried again",
}
JOB = {
    "batchId": "number of the last batch",
    "numBatches": "batches with rows that were done",
    "batchTime": "milliseconds the last batch took",
    "watermarkLag": "milliseconds that the watermark is behind the clock",
    "numLateRecordsDropped": "rows dropped because they came behind the watermark",
    "stateRows": "rows of state",
    "stateBytes": "bytes of memory that state uses",
    "catchUpSeconds": "seconds until the lag is gone at this pace; infinite if it grows",
    "drainPerSecond": "records by which the lag shrinks each second",
}
STATUSES = ("running", "finished", "stopped", "failed")
COUNTERS = frozenset(
    {"numRecordsIn", "numBytesIn", "numRecordsOut", "numBytesOut", "numBatches", "numRetries"}
    | {"numRecordsSkipped", "numRecordsDeadLettered", "numRecordsIgnored", "numRecordsLost"}
    | {"numCommits", "numFailedCommits", "numTransactions", "numRepeatedTransactions"}
    | {"numLateRecordsDropped"}
)


@dataclass(frozen=True)
class TableMetrics(Mapping[str, float]):
    """The figures of one table of a job; `side` is 'source' or 'sink'."""

    table: str
    side: str
    connector: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    lags: Sequence[Lag] = ()

    def __getitem__(self, name: str) -> float:
        return self.figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    def to_json(self) -> dict[str, Any]:
        plain = {"table": self.table, "side": self.side, "connector": self.connector}
        names = SOURCE if self.side == "source" else SINK
        figures = {name: self.figures[name] for name in names if name in self.figures}
        return {**plain, **figures, "lag": [lag.to_json() for lag in self.lags]}


@dataclass(frozen=True)
class Batch:
    """One batch that is done."""

    number: int
    rows: int
    millis: float
    phases: Mapping[str, float] = field(default_factory=dict)
    """What it spent its time on, in milliseconds."""


def untold(batches: Sequence[Batch], told: int | None) -> tuple[list[Batch], int]:
    """The batches after the one told of last, and how many more there were before these."""
    found = [each for each in batches if told is None or each.number > told]
    return found, found[0].number - told - 1 if found and told is not None else 0


@dataclass(frozen=True)
class Pace:
    """How a lag went over the last minute."""

    drain: float | None = None
    """By how much it shrinks each second."""
    catch_up_seconds: float | None = None
    """When it will be gone at this pace; infinite if it does not shrink."""


@dataclass(frozen=True)
class Metrics(Mapping[str, float]):
    """The figures of a job: its own by name, those of a table by `source(...)` and `sink(...)`."""

    job: str
    status: str
    query: str = ""
    """Spark's id of the query, the same after every restart."""
    figures: Mapping[str, float] = field(default_factory=dict)
    phases: Mapping[str, float] = field(default_factory=dict)
    """What the last batch spent its time on, in milliseconds."""
    tables: Sequence[TableMetrics] = ()
    watermark: str = ""
    batches: Sequence[Batch] = ()
    """The last hundred, oldest first."""
    paces: Mapping[str, Pace] = field(default_factory=dict)
    """By topic, or by shard where lag is known in time only."""

    def __getitem__(self, name: str) -> float:
        return self.figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    def source(self, table: str = "") -> TableMetrics:
        """The figures of a source table; without a name, of the only one."""
        return self._table(table, "source")

    def sink(self, table: str = "") -> TableMetrics:
        """The figures of a sink table; without a name, of the only one."""
        return self._table(table, "sink")

    def of(self, side: str) -> list[TableMetrics]:
        return [each for each in self.tables if each.side == side]

    def total(self, side: str, name: str) -> float | None:
        """The sum over the tables of one side that know it; None if none does."""
        known = [each[name] for each in self.of(side) if name in each]
        return sum(known) if known else None

    def _table(self, table: str, side: str) -> TableMetrics:
        found = [each for each in self.of(side) if table in ("", each.table)]
        if len(found) != 1:
            names = ", ".join(f"'{each.table}'" for each in self.of(side)) or "none"
            raise KeyError(f"job '{self.job}' has no single {side} '{table}'; there are: {names}")
        return found[0]

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"job": self.job, "status": self.status, "query": self.query}
        plain |= {name: _plain(value) for name, value in self.figures.items()}
        if self.watermark:
            plain["watermark"] = self.watermark
        plain["phases"] = dict(self.phases)
        plain["tables"] = [table.to_json() for table in self.tables]
        return plain


def together(job: str, status: str, parts: Sequence[Metrics]) -> Metrics:
    """The figures of several queries that run as one job."""
    slowest = max(parts, key=lambda part: part.get("batchTime", 0), default=Metrics(job, status))
    tables = tuple(table for part in parts for table in part.tables)
    return Metrics(job, status, slowest.query, slowest.figures, slowest.phases, tables)


def _plain(value: float) -> float | str:
    return "never at this rate" if value == float("inf") else value
