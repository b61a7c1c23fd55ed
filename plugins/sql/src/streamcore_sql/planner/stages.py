"""Steps between tables and result that SQL has no words for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import SqlError
from ..rewrite import DropDuplicates, Stage, TemporalJoin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def apply(stage: Stage, spark: SparkSession) -> DataFrame:
    """Run the stage's SQL and its operation on the result."""
    rows = spark.sql(stage.sql)
    if isinstance(stage.operation, DropDuplicates):
        return rows.dropDuplicates(list(stage.operation.keys) if stage.operation.keys else None)
    return _temporal_join(rows, stage.operation)


def _temporal_join(rows: DataFrame, join: TemporalJoin) -> DataFrame:
    raise SqlError("an event-time temporal join cannot be run yet", join.place)
