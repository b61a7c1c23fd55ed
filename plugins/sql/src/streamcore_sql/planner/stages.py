"""Steps between tables and result that SQL has no words for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..rewrite import DropDuplicates, Stage
from .sources import Scan
from .temporal import temporal_join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def apply(stage: Stage, spark: SparkSession, scans: Mapping[str, Scan]) -> DataFrame:
    """Run the stage's SQL and its operation on the result; `scans` are known by their views."""
    rows = spark.sql(stage.sql)
    operation = stage.operation
    if isinstance(operation, DropDuplicates):
        return rows.dropDuplicates(list(operation.keys) if operation.keys else None)
    view = operation.right.view
    return temporal_join(rows, spark.table(view), operation, scans[view])
