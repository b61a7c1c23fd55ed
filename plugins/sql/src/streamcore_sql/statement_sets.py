"""STATEMENT SET: several INSERTs as one job, reading a source they share only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from streamcore.spark.carrier import pack

from .planner.inserts import InsertPlan
from .planner.modes import APPEND
from .planner.sinks import shaped
from .planner.sources import Scan, frame
from .write_batch import WriteBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class SharedScan:
    """One read that serves every INSERT of a set."""

    scan: Scan
    plans: tuple[InsertPlan, ...]

    def frame(self, spark: SparkSession) -> DataFrame:
        return frame(spark, self.scan)


def shared_scan(plans: Sequence[InsertPlan]) -> SharedScan | None:
    """The read that all INSERTs can share; None if they cannot.

    They can when each only selects and filters rows of the same table: state, such as that of an
    aggregate, lives in a query of its own.
    """
    if len(plans) < 2 or not all(_only_filters(plan) for plan in plans):
        return None
    scans = [plan.query.scans[0] for plan in plans]
    first = scans[0]
    if any(scan.bound.statement != first.bound.statement for scan in scans):
        return None
    used = {column.name for scan in scans for column in scan.columns}
    columns = tuple(c for c in first.bound.statement.columns if c.name in used)
    delays = [scan.delay for scan in scans if scan.delay is not None]
    scan = replace(first, columns=columns, delay=delays[0] if delays else None)
    return SharedScan(scan, tuple(plans))


def _only_filters(plan: InsertPlan) -> bool:
    rewritten = plan.query.rewritten
    stateful = rewritten.aggregations or rewritten.joins or rewritten.stages or rewritten.limited
    local = hasattr(plan.sink.connector, "deliver")
    alone = len(plan.query.scans) == 1 and plan.query.scans[0].streaming
    return plan.mode == APPEND and alone and not stateful and not local


class WriteEach:
    """Writes one batch of a shared source into every table of a set.

    A batch that fails half way is written again as a whole, so tables before the failure get it
    twice unless their sink is exactly-once.
    """

    def __init__(self, plans: Sequence[InsertPlan]) -> None:
        # Spark Connect ships this to its server, where the plans' own DataFrames mean nothing.
        self._parts = [
            (plan.query.rewritten.tables[0].view, plan.query.rewritten.sql, plan.insert, plan.sink)
            for plan in plans
        ]

    def __call__(self, batch: DataFrame, number: int) -> None:
        batch.persist()
        try:
            for view, sql, insert, sink in self._parts:
                batch.createOrReplaceTempView(view)
                result = batch.sparkSession.sql(sql)
                WriteBatch(pack(sink.options, sink.table))(shaped(result, insert, sink))
        finally:
            batch.unpersist()
