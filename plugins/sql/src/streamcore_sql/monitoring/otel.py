"""The figures of jobs for OpenTelemetry; the extra `otel` brings what this needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from streamcore import PluginError

from .metrics import COUNTERS, JOB, SINK, SOURCE, STATUSES, Metrics

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader

Jobs = Callable[[], Sequence[Metrics]]
Told = Callable[[Metrics], Iterator[tuple[float, dict[str, str]]]]
"""Values of one job, each with what it is of."""


def provide(name: str, jobs: Jobs, reader: MetricReader | None = None) -> MeterProvider:
    """Export the figures of jobs to where the standard `OTEL_*` variables say.

    Shut the provider down to send what is left.
    """
    try:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.resources import Resource

        reader = reader or _exporter()
    except ModuleNotFoundError as error:
        raise PluginError(
            "--otel needs OpenTelemetry: pip install 'streamcore-sql[otel]'"
        ) from error
    resource = Resource.create({"service.name": f"streamcore.{name}"})
    provider = MeterProvider([reader], resource)
    meter = provider.get_meter("streamcore")
    for figure, doc in {**JOB, **SOURCE, **SINK}.items():
        make = (
            meter.create_observable_counter if figure in COUNTERS else meter.create_observable_gauge
        )
        make(f"streamcore.{figure}", [_observed(figure, jobs)], description=doc)
    for end, unit, doc, told in (
        ("lag", "{record}", "records a partition is behind", _lags("rows")),
        ("lag.seconds", "s", "seconds a shard is behind", _lags("seconds")),
        ("job", "", "1 for the state a job is in", _state),
        ("batch.phase", "ms", "milliseconds the last batch spent on one phase", _phases),
    ):
        meter.create_observable_gauge(f"streamcore.{end}", [_asked(told, jobs)], unit, doc)
    return provider


def _exporter() -> Any:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    return PeriodicExportingMetricReader(OTLPMetricExporter())


def _observed(figure: str, jobs: Jobs) -> Callable[[CallbackOptions], Iterator[Observation]]:
    from opentelemetry.metrics import Observation

    def observe(options: CallbackOptions) -> Iterator[Observation]:
        for job in jobs():
            about = {"job": job.job, "query": job.query}
            if figure in job:
                yield Observation(job[figure], about)
            for table in job.tables:
                if figure in table:
                    names = {"table": table.table, "side": table.side, "connector": table.connector}
                    yield Observation(table[figure], {**about, **names})

    return observe


def _asked(told: Told, jobs: Jobs) -> Callable[[CallbackOptions], Iterator[Observation]]:
    from opentelemetry.metrics import Observation

    def observe(options: CallbackOptions) -> Iterator[Observation]:
        for job in jobs():
            for value, about in told(job):
                yield Observation(value, {"job": job.job, **about})

    return observe


def _lags(name: str) -> Told:
    def lags(job: Metrics) -> Iterator[tuple[float, dict[str, str]]]:
        for table in job.of("source"):
            for lag in table.lags:
                if (value := getattr(lag, name)) is not None:
                    yield value, {"table": table.table, "topic": lag.topic, "partition": lag.place}

    return lags


def _state(job: Metrics) -> Iterator[tuple[float, dict[str, str]]]:
    for status in STATUSES:
        yield float(status == job.status), {"query": job.query, "status": status}


def _phases(job: Metrics) -> Iterator[tuple[float, dict[str, str]]]:
    for phase, millis in job.phases.items():
        yield millis, {"query": job.query, "phase": phase}
