"""Append or update: what Spark itself accepts for a query, the narrowest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..cursor import SqlText
from ..errors import SqlError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCH, APPEND, UPDATE, COMPLETE = "batch", "append", "update", "complete"


def output_mode(frame: DataFrame, query: SqlText) -> str:
    """The mode a streaming query runs in, or an error that says why it runs in none."""
    refusals: list[str] = []
    for mode in (APPEND, UPDATE):
        refusal = _refusal(frame, mode)
        if refusal is None:
            return mode
        refusals.append(refusal)
    told = refusals[0] if "only in Append" in refusals[1] else refusals[1]
    raise SqlError(f"Spark cannot run this query on a stream: {told}", query.place)


def _refusal(frame: DataFrame, mode: str) -> str | None:
    from pyspark.errors import AnalysisException

    plan: Any = frame
    if not hasattr(plan, "_jdf"):
        return None
    jvm = plan.sparkSession._jvm
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    wanted = {APPEND: modes.Append, UPDATE: modes.Update, COMPLETE: modes.Complete}[mode]()
    try:
        checker.checkForStreaming(plan._jdf.queryExecution().analyzed(), wanted)
    except AnalysisException as error:
        from ..failures import message_of

        return message_of(error)
    return None
