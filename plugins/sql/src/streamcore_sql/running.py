"""Starts plans: append streams, update streams through batches, and bounded jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamcore import PluginError
from streamcore.spark.carrier import pack

from .jobs import BatchJob, Job, StreamJob
from .planner.inserts import InsertPlan
from .planner.modes import APPEND

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Launch:
    """How a job is started."""

    name: str
    checkpoint: str | None = None
    once: bool = False
    interval: str | None = None
    """The least time between two batches, such as `10 seconds`; None: as soon as possible."""


def start(plan: InsertPlan, launch: Launch) -> Job:
    """Start an INSERT."""
    if not plan.query.streaming:
        return BatchJob(launch.name, plan.frame.sparkSession, lambda: _write_batch(plan))
    return StreamJob(launch.name, [_start_stream(plan, launch)])


def _start_stream(plan: InsertPlan, launch: Launch) -> Any:
    connector = plan.sink.connector
    writer = plan.frame.writeStream.queryName(launch.name).outputMode(plan.mode)
    if launch.checkpoint:
        writer = writer.option("checkpointLocation", launch.checkpoint)
    if launch.once:
        writer = writer.trigger(availableNow=True)
    elif launch.interval:
        writer = writer.trigger(processingTime=launch.interval)
    if hasattr(connector, "deliver"):
        return writer.foreachBatch(Deliver(connector)).start()
    options = pack(plan.sink.options, plan.sink.table)
    if plan.mode == APPEND and connector.can("stream_writer"):
        return writer.format("streamcore").options(**options).start()
    if not connector.can("writer"):
        raise PluginError(
            f"connector '{connector.identifier}' cannot take a query that updates its rows."
        )
    return writer.foreachBatch(WriteBatch(options)).start()


def _write_batch(plan: InsertPlan) -> None:
    connector = plan.sink.connector
    if hasattr(connector, "deliver"):
        connector.deliver(plan.frame.toArrow())
    else:
        WriteBatch(pack(plan.sink.options, plan.sink.table))(plan.frame)


class WriteBatch:
    """Writes one batch: how update queries reach a Python sink, which Spark lets only append."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def __call__(self, batch: DataFrame, number: int = 0) -> None:
        batch.write.format("streamcore").options(**self._options).mode("append").save()


class Deliver:
    """Hands each batch to a connector that shows rows where the session runs."""

    def __init__(self, connector: Any) -> None:
        self._connector = connector

    def __call__(self, batch: DataFrame, number: int = 0) -> None:
        self._connector.deliver(batch.toArrow())
