"""Follows one query: adds up what its batches and its tasks tell."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from streamcore import reports

from .about import About
from .heard import Table, heard
from .history import History
from .lags import Lag, lags, named, offset
from .metrics import Batch, Metrics, Pace, TableMetrics
from .progresses import Plain, Progresses, ran
from .rates import CatchUp, Rate
from .scrubbing import SECRETS
from .wording import stamp

_BEFORE_ANY_ROW = "1970-01-01"
_FRESH_ENOUGH = 0.9
_BATCHES = 100
"""As many as Spark keeps: whoever looks once a second sees each of them."""
_RATED = ("numRecordsIn", "numBytesIn", "numRecordsOut", "numBytesOut")


class Monitor:
    """Looks at a query every now and then; may be asked from any thread."""

    def __init__(self, query: Any, about: About | None = None) -> None:
        self.about = about or About()
        self.history = History()
        self.last: Plain | None = None
        """What Spark told of the last batch, whatever idle triggers have told since."""
        self._latest: Plain | None = None
        self._progresses = Progresses(query)
        self._query = query
        self.id = ""
        """The id of the query, once it was asked for."""
        self._lock = threading.Lock()
        self._looked = float("-inf")
        self._batches = self._late = 0
        self._batch = -1
        self._done: deque[Batch] = deque(maxlen=_BATCHES)
        self._rows_in: defaultdict[str, int] = defaultdict(int)
        self._rows_out: int | None = None
        self._moved: dict[str, float] = {}
        self._lags: dict[str, list[Lag]] = {}
        self._groups: dict[str, Mapping[str, Any]] = {}
        began = time.monotonic()
        self._rates: defaultdict[tuple[Table, str], Rate] = defaultdict(lambda: Rate(began))
        self._catch_up = CatchUp()
        self._catch_ups: dict[str, CatchUp] = {}
        self._tables: dict[Table, dict[str, float]] = {}

    # --- looking --------------------------------------------------------------------------

    def sample(self, *, now: bool = False) -> None:
        """Take in what is new, unless that was done a moment ago."""
        with self._lock:
            if not now and time.monotonic() - self._looked < _FRESH_ENOUGH:
                return
            before = self._latest
            self.id = self.id or str(getattr(self._query, "id", ""))
            for progress in self._progresses.fresh():
                self._take(progress)
            if self._latest is not None and self._latest is not before:
                self._take_lags(self._latest["sources"])
            self._count()
            self._looked = time.monotonic()
            self.history.add(self._point())

    def _take(self, progress: Plain) -> None:
        self._latest = progress
        if ran(progress):
            self.last = progress
            self._keep(progress)
        for source in progress["sources"]:
            name = self._name(source, progress["sources"])
            latest = offset(source.get("latestOffset"))
            if "group" in latest:
                self._groups[name] = latest["group"]
        if progress["batchId"] > self._batch and progress.get("numInputRows"):
            self._batch = progress["batchId"]
            self._batches += 1
            for source in progress["sources"]:
                name = self._name(source, progress["sources"])
                rows = source.get("numInputRows") or 0
                self._rows_in[name] += rows
                if rows:
                    self._moved[name] = time.time()
            written = progress["sink"].get("numOutputRows", -1)
            if written >= 0:
                self._rows_out = (self._rows_out or 0) + written
            for operator in progress.get("stateOperators") or ():
                self._late += operator.get("numRowsDroppedByWatermark", 0)

    def _keep(self, progress: Plain) -> None:
        number, phases = progress["batchId"], dict(progress["durationMs"])
        if not self._done or number > self._done[-1].number:
            millis = phases.pop("triggerExecution", 0)
            rows = progress.get("numInputRows") or 0
            self._done.append(Batch(number, rows, millis, phases))

    def _take_lags(self, sources: list[Plain]) -> None:
        found: defaultdict[str, dict[tuple[str, str], Lag]] = defaultdict(dict)
        for source in sources:
            places = found[self._name(source, sources)]
            for lag in lags(source):  # a table that is read twice is as late as its later read
                other = places.get((lag.topic, lag.place))
                if other is None or (other.rows or 0) < (lag.rows or 0):
                    places[lag.topic, lag.place] = lag
        self._lags = {name: list(places.values()) for name, places in found.items()}
        at = time.monotonic()
        whole = self.lag_rows() if self.lag_rows() is not None else self.lag_seconds()
        if whole is not None:
            self._catch_up.add(at, whole)
        behind = self._behind()
        self._catch_ups = {name: self._catch_ups.get(name) or CatchUp() for name in behind}
        for name, late in behind.items():
            self._catch_ups[name].add(at, late)

    def _behind(self) -> dict[str, float]:
        """The lag of each topic in rows, or of each shard in seconds."""
        found: defaultdict[str, float] = defaultdict(float)
        for name, lag in named(self._lags):
            if lag.rows is not None:
                found[name] += lag.rows
            elif lag.seconds is not None:
                found[name] = max(found[name], lag.seconds)
        return found

    def _name(self, source: Plain, sources: list[Plain]) -> str:
        """The table that a source of the query reads."""
        named = offset(source.get("latestOffset")).get("table")
        known = [each.table for each in self.about.tables if each.side == "source"]
        if named is None and len(sources) == 1 and len(known) == 1:
            return known[0]
        return str(named or "")

    def _count(self) -> None:
        """What the tasks told, and what only Spark knows of tables whose tasks tell nothing."""
        tables: dict[Table, dict[str, float]] = {
            (each.table, each.side): {} for each in self.about.tables
        }
        for table, told in heard(self.id).items():
            tables.setdefault(table, {}).update(told)
        for name, rows in self._rows_in.items():
            if name:
                tables.setdefault((name, "source"), {}).setdefault("numRecordsIn", rows)
        sinks = [table for table in tables if table[1] == "sink"]
        if self._rows_out is not None and len(sinks) == 1:
            tables[sinks[0]].setdefault("numRecordsOut", self._rows_out)
        at = time.monotonic()
        for table, found in tables.items():
            for name in _RATED:
                if name in found:
                    self._rates[table, name].add(at, found[name])
        self._tables = tables

    # --- telling --------------------------------------------------------------------------

    def metrics(self, job: str, status: str) -> Metrics:
        """The figures as of now."""
        self.sample()
        with self._lock:
            connectors = {(each.table, each.side): each.connector for each in self.about.tables}
            tables = [
                TableMetrics(
                    *table,
                    connectors.get(table, ""),
                    self._figures(table, found),
                    tuple(self._lags.get(table[0], ())) if table[1] == "source" else (),
                )
                for table, found in self._tables.items()
            ]
            watermark = _watermark(self._latest)
            phases = dict(self.last["durationMs"]) if self.last else {}
            phases.pop("triggerExecution", None)
            return Metrics(
                job,
                status,
                self.id,
                self._own(watermark),
                phases,
                tuple(tables),
                watermark,
                tuple(self._done),
                {name: Pace(each.drain, each.seconds) for name, each in self._catch_ups.items()},
            )

    def _figures(self, table: Table, found: dict[str, float]) -> dict[str, float]:
        figures = dict(found)
        for name in _RATED:
            rate = self._rates[table, name].per_second() if name in found else None
            if rate is not None:
                figures[f"{name}PerSecond"] = round(rate, 3)
        name, side = table
        if side == "source":
            figures |= self._reading(name, figures)
        return figures

    def _reading(self, name: str, known: Mapping[str, float]) -> dict[str, float]:
        found: dict[str, float] = {}
        places = self._lags.get(name, [])
        if rows := [lag.rows for lag in places if lag.rows is not None]:
            found["pendingRecords"] = sum(rows)
        if seconds := [lag.seconds for lag in places if lag.seconds is not None]:
            found["lagSeconds"] = max(seconds)
        elif found.get("pendingRecords") == 0:
            found["lagSeconds"] = 0
        elif "pendingRecords" in found and "currentEmitEventTimeLag" in known:
            found["lagSeconds"] = known["currentEmitEventTimeLag"] / 1000
        if name in self._moved:
            found["sourceIdleTime"] = round((time.time() - self._moved[name]) * 1000)
        if group := self._groups.get(name):
            found["numCommits"] = group["commits"]
            found["numFailedCommits"] = group["failed-commits"]
        return found

    def _own(self, watermark: str) -> dict[str, float]:
        last = self.last
        if last is None:
            return {}
        found: dict[str, float] = {
            "batchId": last["batchId"],
            "numBatches": self._batches,
            "batchTime": last["durationMs"].get("triggerExecution", 0),
            "numLateRecordsDropped": self._late,
        }
        if states := last.get("stateOperators"):
            found["stateRows"] = sum(each.get("numRowsTotal", 0) for each in states)
            found["stateBytes"] = sum(each.get("memoryUsedBytes", 0) for each in states)
        if watermark:
            behind = time.time() - datetime.fromisoformat(watermark).timestamp()
            found["watermarkLag"] = round(behind * 1000)
        for name, value in (
            ("catchUpSeconds", self._catch_up.seconds),
            ("drainPerSecond", self._catch_up.drain),
        ):
            if value is not None:
                found[name] = round(value, 3)
        return found

    def lag_rows(self) -> int | None:
        rows = [lag.rows for found in self._lags.values() for lag in found if lag.rows is not None]
        return sum(rows) if rows else None

    def lag_seconds(self) -> float | None:
        every = [lag for found in self._lags.values() for lag in found]
        seconds = [lag.seconds for lag in every if lag.seconds is not None]
        return max(seconds) if seconds else None

    def notes(self) -> list[dict[str, Any]]:
        """The last records that were let go, and why."""
        collector = reports.listening()
        found = collector.notes(self.id) if collector else []
        return [
            {"table": table, "batch": batch, "text": SECRETS.scrub(text), "time": stamp(at)}
            for table, batch, text, at in found
        ]

    def _point(self) -> Any:
        def rate(name: str) -> float | None:
            known = [
                value
                for (_, told), each in self._rates.items()
                if told == name and (value := each.per_second()) is not None
            ]
            return round(sum(known), 1) if known else None

        batch = self.last["durationMs"].get("triggerExecution") if self.last else None
        return (
            round(time.time(), 1),
            rate("numRecordsIn"),
            rate("numRecordsOut"),
            self.lag_rows(),
            self.lag_seconds(),
            batch,
        )


def _watermark(progress: Plain | None) -> str:
    found = str(((progress or {}).get("eventTime") or {}).get("watermark") or "")
    return "" if found.startswith(_BEFORE_ANY_ROW) else found
