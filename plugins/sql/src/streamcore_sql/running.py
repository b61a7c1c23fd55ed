"""Starts plans: append streams, update streams through batches, and bounded jobs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamcore import PluginError, StreamcoreError
from streamcore.reports import on_behalf_of
from streamcore.spark.carrier import pack

from .checkpoints import CannotResume
from .failures import is_of_checkpoint, message_of, spark_errors
from .jobs import BatchJob, Job, StreamJob
from .monitoring.about import about_inserts
from .monitoring.sampling import sampled
from .planner.inserts import InsertPlan
from .planner.modes import APPEND, applied
from .statement_sets import SharedScan, WriteEach
from .write_batch import WriteBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Launch:
    """How a job is started."""

    name: str
    checkpoint: str | None = None
    once: bool = False
    interval: str | None = None
    """The least time between two batches, such as `10 seconds`; None: as soon as possible."""
    fresh: bool = False
    """Whether to start over, with the checkpoint moved aside."""

    def writer(self, frame: DataFrame, mode: str) -> Any:
        """The beginning of a streaming write: all but where it goes."""
        writer = frame.writeStream.queryName(self.name).outputMode(mode)
        if self.checkpoint:
            writer = writer.option("checkpointLocation", self.checkpoint)
        if self.once:
            return writer.trigger(availableNow=True)
        return writer.trigger(processingTime=self.interval) if self.interval else writer


@contextmanager
def resuming(launch: Launch) -> Iterator[None]:
    """Tell which checkpoint it is that Spark cannot read, before a query begins."""
    try:
        yield
    except StreamcoreError:
        raise
    except Exception as error:  # what Spark does not know comes from Java as it is
        if launch.checkpoint is None or not is_of_checkpoint(error):
            raise
        folder = launch.checkpoint.removeprefix("file://")
        raise CannotResume(
            f"job '{launch.name}' cannot go on from its checkpoint '{folder}': {message_of(error)}"
        ) from error


def start(plan: InsertPlan, launch: Launch) -> Job:
    """Start an INSERT."""
    about = about_inserts(plan.query.scans, [plan], launch)
    if not plan.query.streaming:
        write = partial(_write_batch, plan, launch.name)
        return BatchJob(launch.name, plan.frame.sparkSession, write, about)
    folder = None if launch.checkpoint else Path(tempfile.mkdtemp(prefix="streamcore-"))
    if folder is not None:  # Spark wants one, even of a job that starts over each time
        launch = replace(launch, checkpoint=folder.as_uri())
    spark = plan.frame.sparkSession
    named = on_behalf_of(launch.name)
    query = plan.insert.query
    with named, spark_errors(query), resuming(launch), applied(plan.query.settings, spark):
        job = sampled(StreamJob(launch.name, _start_stream(plan, launch), about))
    if folder is not None:
        job.when_over(lambda: shutil.rmtree(folder, ignore_errors=True))
    return job


def start_each(shared: SharedScan, spark: SparkSession, launch: Launch) -> Job:
    """Start several INSERTs as one query over the source they share."""
    with on_behalf_of(launch.name):
        writer = launch.writer(shared.frame(spark), APPEND)
    about = about_inserts([shared.scan], shared.plans, launch)
    with resuming(launch):
        query = writer.foreachBatch(WriteEach(shared.plans)).start()
    return sampled(StreamJob(launch.name, query, about))


def _start_stream(plan: InsertPlan, launch: Launch) -> Any:
    connector = plan.sink.connector
    writer = launch.writer(plan.frame, plan.mode)
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


def _write_batch(plan: InsertPlan, job: str) -> None:
    connector = plan.sink.connector
    if hasattr(connector, "deliver"):
        connector.deliver(plan.frame.toArrow())
        return
    with on_behalf_of(job):
        options = pack(plan.sink.options, plan.sink.table)
    WriteBatch(options)(plan.frame)


class Deliver:
    """Hands each batch to a connector that shows rows where the session runs."""

    def __init__(self, connector: Any) -> None:
        self._connector = connector

    def __call__(self, batch: DataFrame, number: int = 0) -> None:
        self._connector.deliver(batch.toArrow())
