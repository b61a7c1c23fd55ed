"""Times alternating runs of several sides, and says when a lead is smaller than the noise."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


class BenchmarkError(Exception):
    """A side failed, or did not compute what it should."""


@dataclass
class Run:
    """One run of one side: how long it took, what it cost, and what it computed."""

    seconds: float
    rows: int
    cpu: float = 0.0
    peak_mb: float = 0.0
    idle_mb: float = 0.0
    """Of `peak_mb`, what a worker takes that has nothing to do."""
    checksum: str = ""
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


@dataclass
class Outcome:
    """All runs of one side of a case."""

    side: str
    runs: list[Run]

    @property
    def rate(self) -> float:
        """Rows per second, median of the runs."""
        return statistics.median(run.rate for run in self.runs)

    @property
    def spread(self) -> float:
        """Half the range of the runs' rates, relative to the median."""
        rates = [run.rate for run in self.runs]
        return (max(rates) - min(rates)) / 2 / self.rate

    @property
    def cpu_per_million(self) -> float:
        return statistics.median(run.cpu / run.rows * 1e6 for run in self.runs)

    @property
    def peak_mb(self) -> float:
        return max(run.peak_mb for run in self.runs)

    @property
    def idle_mb(self) -> float:
        return max(run.idle_mb for run in self.runs)

    @property
    def milliseconds(self) -> float:
        """Of one row, median of the runs: what a latency is."""
        return 1000 / self.rate

    @property
    def extra(self) -> dict[str, float]:
        """Everything else the runs told, medians."""
        names = self.runs[0].extra
        return {name: statistics.median(run.extra[name] for run in self.runs) for name in names}


@dataclass(frozen=True)
class Ratio:
    """How many times as fast as a side ours is: the median of the turns, and half their range.

    The two runs of a turn follow each other, so that a machine that slows down slows both, and
    their ratio differs less from turn to turn than their times do.
    """

    median: float
    spread: float

    @classmethod
    def of(cls, turns: Iterable[float]) -> Ratio:
        found = list(turns)
        return cls(statistics.median(found), (max(found) - min(found)) / 2)

    def __str__(self) -> str:
        doubt = " (within the noise)" if abs(self.median - 1) < self.spread else ""
        return f"{self.median:.2f}x ±{self.spread:.2f}{doubt}"


@dataclass
class Case:
    """What was compared, on what, and how it came out; the first side is ours."""

    name: str
    what: str
    outcomes: list[Outcome]
    unit: str = "rows/s"
    """Or `ms`, where a run's seconds are a latency and less is better."""
    took: float = 0.0
    """Seconds of the sitting, with filling its topics."""
    note: str = ""
    """What a reader has to know to read the figures aright."""
    group: str = ""
    warmups: int = 0

    def ratio(self, other: Outcome) -> Ratio:
        """By the clock."""
        return Ratio.of(ours.rate / theirs.rate for ours, theirs in self._turns(other))

    def cpu_ratio(self, other: Outcome) -> Ratio | None:
        """By the CPU time that a row costs, if it was measured on both sides."""
        turns = [
            (ours.cpu / ours.rows, theirs.cpu / theirs.rows) for ours, theirs in self._turns(other)
        ]
        if not all(ours and theirs for ours, theirs in turns):
            return None
        return Ratio.of(theirs / ours for ours, theirs in turns)

    def _turns(self, other: Outcome) -> Iterator[tuple[Run, Run]]:
        return zip(self.outcomes[0].runs, other.runs, strict=True)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Case:
        """What `as_json` told; everything else follows from the runs."""
        outcomes = [
            Outcome(side["side"], [Run(**run) for run in side["runs"]]) for side in told["sides"]
        ]
        same = {name: told[name] for name in ("name", "what", "unit", "note", "group", "warmups")}
        return cls(outcomes=outcomes, took=told["took_seconds"], **same)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "group": self.group,
            "what": self.what,
            "note": self.note,
            "unit": self.unit,
            "runs": len(self.outcomes[0].runs),
            "warmups": self.warmups,
            "took_seconds": round(self.took, 1),
            "sides": [
                {
                    "side": o.side,
                    "rows_per_second": round(o.rate, 3),
                    "spread": round(o.spread, 3),
                    "cpu_seconds_per_million_rows": round(o.cpu_per_million, 3),
                    "peak_worker_mb": round(o.peak_mb, 1),
                    "idle_worker_mb": round(o.idle_mb, 1),
                    "ratio_ours_to_this": _rounded(self.ratio(o)),
                    "cpu_ratio_ours_to_this": _rounded(self.cpu_ratio(o)),
                    "extra": {name: round(value, 1) for name, value in o.extra.items()},
                    "runs": [asdict(run) for run in o.runs],
                }
                for o in self.outcomes
            ],
        }


def _rounded(ratio: Ratio | None) -> dict[str, float] | None:
    return ratio and {"median": round(ratio.median, 3), "spread": round(ratio.spread, 3)}


Sides = Mapping[str, Callable[[], Run]]


@dataclass
class Plan:
    """A case that can be run: nothing is started or filled before `sides` is called."""

    name: str
    what: str
    sides: Callable[[], Sides]
    runs: int
    warmups: int = 1
    unit: str = "rows/s"
    note: str = ""
    warming: Callable[[], Sides] | None = None
    """Other sides to warm up with, where the measured ones take long."""
    group: str = ""

    def measured(self) -> Case:
        sides = self.sides()
        warming = self.warming() if self.warming else sides
        outcomes = alternate(self.name, sides, warming, self.runs, self.warmups)
        return Case(
            self.name,
            self.what,
            outcomes,
            self.unit,
            note=self.note,
            group=self.group,
            warmups=self.warmups,
        )


def alternate(name: str, sides: Sides, warming: Sides, runs: int, warmups: int) -> list[Outcome]:
    """Run every side in turn, again and again, so that drift of the machine hits all alike.

    The side that begins changes from turn to turn: none always follows the heaviest one.
    """
    kept: dict[str, list[Run]] = {side: [] for side in sides}
    checks: dict[str, set[str]] = {side: set() for side in sides}
    order = list(sides)
    for turn in range(warmups + runs):
        for side in order:
            result = (sides if turn >= warmups else warming)[side]()
            checks[side].add(result.checksum)  # of a warm-up too: many look at the first run only
            if turn >= warmups:
                kept[side].append(result)
        order.append(order.pop(0))
    counts = {side: {run.rows for run in found} for side, found in kept.items()}
    if len(set().union(*counts.values())) > 1 or len(set().union(*checks.values()) - {""}) > 1:
        raise BenchmarkError(f"{name}: the sides computed different things: {counts} {checks}")
    return [Outcome(side, found) for side, found in kept.items()]
