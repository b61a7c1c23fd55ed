"""The figures of jobs for Prometheus, in its own text and as OpenMetrics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from .metrics import COUNTERS, JOB, SINK, SOURCE, STATUSES, Metrics
from .serving import Answer, Request

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_PREFIX = "streamcore_"
_OWN = {
    "batchTime": ("batch_seconds", 0.001),
    "watermarkLag": ("watermark_lag_seconds", 0.001),
    "catchUpSeconds": ("catch_up_seconds", 1),
    "lagSeconds": ("source_lag_seconds", 1),
    "drainPerSecond": ("drain_per_second", 1),
    "stateBytes": ("state_bytes", 1),
    "stateRows": ("state_rows", 1),
}
"""Names that no seed gives follow Prometheus's own habits: base units, in words."""


def sample_name(figure: str) -> str:
    """The name a figure has in a scrape, without the `_total` of counters."""
    if figure in _OWN:
        return _PREFIX + _OWN[figure][0]
    return _PREFIX + figure


def _unit(name: str) -> str:
    """What a name that ends in a base unit is measured in, which OpenMetrics tells scrapers."""
    end = name.rpartition("_")[2]
    return end if end in ("seconds", "bytes") else ""


class JobsCollector:
    """Asks the jobs whenever somebody scrapes; between scrapes it costs nothing."""

    def __init__(self, jobs: Callable[[], Sequence[Metrics]]) -> None:
        self._jobs = jobs

    def collect(self) -> Iterator[Metric]:
        found = self._jobs()
        yield from self._states(found)
        yield from _families(JOB, ("job", "query"), lambda: _job_samples(found))
        for side, figures in (("source", SOURCE), ("sink", SINK)):
            labels = ("job", "table", "connector")
            only = {name: doc for name, doc in figures.items() if name != "numRetries"}
            yield from _families(only, labels, lambda side=side: _table_samples(found, side))  # type: ignore[misc]
        yield from _retries(found)
        yield from _lags(found)
        yield from _phases(found)

    def _states(self, jobs: Sequence[Metrics]) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(
            f"{_PREFIX}job", "1 for the state that a job is in", labels=("job", "query", "status")
        )
        for each in jobs:
            for status in STATUSES:
                family.add_metric((each.job, each.query, status), float(each.status == status))
        yield family


Samples = Iterable[tuple[tuple[str, ...], str, float]]


def _families(
    figures: dict[str, str], labels: Sequence[str], samples: Callable[[], Samples]
) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    found: dict[str, list[tuple[tuple[str, ...], float]]] = {}
    for values, figure, value in samples():
        found.setdefault(figure, []).append((values, value))
    for figure, doc in figures.items():
        if figure not in found:
            continue
        kind = CounterMetricFamily if figure in COUNTERS else GaugeMetricFamily
        scale = _OWN[figure][1] if figure in _OWN else 1
        doc = re.sub("^milliseconds", "seconds", doc) if scale == 0.001 else doc
        name = sample_name(figure)
        family = kind(name, doc, labels=labels, unit=_unit(name))
        for values, value in found[figure]:
            family.add_metric(values, value * scale)
        yield family


def _job_samples(jobs: Sequence[Metrics]) -> Samples:
    for each in jobs:
        for figure, value in each.items():
            yield (each.job, each.query), figure, value


def _table_samples(jobs: Sequence[Metrics], side: str) -> Samples:
    for each in jobs:
        for table in each.of(side):
            for figure, value in table.items():
                yield (each.job, table.table, table.connector), figure, value


def _retries(jobs: Sequence[Metrics]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily

    name, doc = f"{_PREFIX}numRetries", SOURCE["numRetries"]
    family = CounterMetricFamily(name, doc, labels=("job", "table", "connector", "side"))
    for each in jobs:
        for table in each.tables:
            if "numRetries" in table:
                labels = (each.job, table.table, table.connector, table.side)
                family.add_metric(labels, table["numRetries"])
    yield family


def _lags(jobs: Sequence[Metrics]) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    labels = ("job", "table", "topic", "partition")
    rows = GaugeMetricFamily(f"{_PREFIX}lag_records", "records a partition is behind", None, labels)
    name = f"{_PREFIX}lag_seconds"
    seconds = GaugeMetricFamily(name, "seconds a shard is behind", None, labels, _unit(name))
    for each in jobs:
        for table in each.of("source"):
            for lag in table.lags:
                where = (each.job, table.table, lag.topic, lag.place)
                if lag.rows is not None:
                    rows.add_metric(where, lag.rows)
                if lag.seconds is not None:
                    seconds.add_metric(where, lag.seconds)
    yield rows
    yield seconds


def _phases(jobs: Sequence[Metrics]) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    doc = "seconds the last batch spent on one phase"
    name, labels = f"{_PREFIX}batch_phase_seconds", ("job", "query", "phase")
    family = GaugeMetricFamily(name, doc, labels=labels, unit=_unit(name))
    for each in jobs:
        for phase, millis in each.phases.items():
            family.add_metric((each.job, each.query, phase), millis / 1000)
    yield family


def scrape(collector: JobsCollector) -> Callable[[Request], Answer]:
    """What answers `GET /metrics`, as OpenMetrics to who asks for that."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import choose_encoder

    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)

    def answer(request: Request) -> Answer:
        encode, kind = choose_encoder(request.headers.get("Accept", ""))
        return Answer(encode(registry), kind)

    return answer
