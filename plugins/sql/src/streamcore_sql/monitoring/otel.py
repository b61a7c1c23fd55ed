"""The figures of jobs for OpenTelemetry; the extra `otel` brings what this needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from streamcore import PluginError

from .metrics import COUNTERS, JOB, SINK, SOURCE, Metrics

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader

Jobs = Callable[[], Sequence[Metrics]]


def provide(name: str, jobs: Jobs, reader: MetricReader | None = None) -> MeterProvider:
    """Export the figures of jobs to where the standard `OTEL_*` variables say.

    Shut the provider down to send what is left.
    """
    try:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.resources import Resource
    except ModuleNotFoundError as error:
        raise PluginError(
            "--otel needs OpenTelemetry: pip install 'streamcore-sql[otel]'"
        ) from error
    resource = Resource.create({"service.name": f"streamcore.{name}"})
    provider = MeterProvider([reader or _exporter()], resource)
    meter = provider.get_meter("streamcore")
    for figure, doc in {**JOB, **SOURCE, **SINK}.items():
        make = (
            meter.create_observable_counter if figure in COUNTERS else meter.create_observable_gauge
        )
        make(f"streamcore.{figure}", [_observed(figure, jobs)], description=doc)
    meter.create_observable_gauge(
        "streamcore.lag", [lambda options: _lags(jobs)], "{record}", "records a partition is behind"
    )
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


def _lags(jobs: Jobs) -> Iterator[Observation]:
    from opentelemetry.metrics import Observation

    for job in jobs():
        for table in job.of("source"):
            for lag in table.lags:
                if lag.rows is not None:
                    place = {"topic": lag.topic, "partition": lag.place}
                    yield Observation(lag.rows, {"job": job.job, "table": table.table, **place})
