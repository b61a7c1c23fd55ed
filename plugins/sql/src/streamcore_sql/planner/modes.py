"""Whether Spark can run a query in the mode that tells its result as Flink would."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..cursor import SqlText
from ..errors import SqlError
from ..failures import message_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH, APPEND, UPDATE = "batch", "append", "update"
_CHECK = "spark.sql.streaming.statefulOperator.checkCorrectness.enabled"
_EMPTY = "spark.sql.streaming.noDataMicroBatches.enabled"
_applying = threading.RLock()


def spark_settings(*, chained: bool = False, forgets: bool = False) -> dict[str, str]:
    """What a query needs of Spark that other queries must not have.

    One operator with state that follows another, `chained`, is refused in update mode: rows that
    the first tells again could be late for the second. Without a watermark no row is late. State
    that `forgets` with time makes Spark run empty batches without end, for timers it does not have.
    """
    return {key: "false" for key, needed in ((_CHECK, chained), (_EMPTY, forgets)) if needed}


@contextmanager
def applied(needed: Mapping[str, str], spark: SparkSession) -> Iterator[None]:
    """Set these while a query is checked or started; what runs has copied them."""
    if not needed:
        yield
        return
    with _applying:
        before = {key: spark.conf.get(key, "true") for key in needed}
        for key, value in needed.items():
            spark.conf.set(key, value)
        try:
            yield
        finally:
            for key, was in before.items():
                spark.conf.set(key, was or "true")


def check_mode(frame: DataFrame, mode: str, query: SqlText) -> None:
    """Ask Spark's own checker; Spark Connect has none and says it when the query starts."""
    from pyspark.errors import AnalysisException

    plan: Any = frame
    if not hasattr(plan, "_jdf"):
        return
    jvm = plan.sparkSession._jvm
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    wanted = modes.Append() if mode == APPEND else modes.Update()
    try:
        checker.checkForStreaming(plan._jdf.queryExecution().analyzed(), wanted)
    except AnalysisException as error:
        reason = message_of(error)
        hint = ""
        if "'correctness' issue" in reason:
            reason = (
                "one aggregate, join or DISTINCT takes the rows of another, and rows that one "
                "changes could be late for the next"
            )
            hint = (
                "GROUP BY window_start, window_end in each of them, or insert the inner query into "
                "an 'upsert-kafka' table and read that one."
            )
        elif "range condition" in reason:
            hint = (
                "Such a join must also say how far apart the rows may be, such as "
                "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' HOUR, with a WATERMARK on both."
            )
        elif "watermark" in reason:
            hint = "Declare a WATERMARK on the time column of the table."
        raise SqlError(f"Spark cannot run this on a stream: {reason}", query.place, hint) from error
