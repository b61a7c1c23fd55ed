"""Whether Spark can run a query in the mode that tells its result as Flink would."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..cursor import SqlText
from ..errors import SqlError
from ..failures import message_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH, APPEND, UPDATE = "batch", "append", "update"
_CHECK = "spark.sql.streaming.statefulOperator.checkCorrectness.enabled"
_checking = threading.RLock()


@contextmanager
def state_on_state(spark: SparkSession, *, allowed: bool) -> Iterator[None]:
    """Let one operator with state follow another while a query is checked or started.

    Spark refuses it in update mode: rows that the first tells again could be late for the second.
    A query without a watermark has no late rows, and only such a one is `allowed`. What runs has
    copied the setting, so it is put back at once.
    """
    if not allowed:
        yield
        return
    with _checking:
        before = spark.conf.get(_CHECK)
        spark.conf.set(_CHECK, "false")
        try:
            yield
        finally:
            spark.conf.set(_CHECK, before or "true")


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
        if "range condition" in reason:
            hint = (
                "Such a join must also say how far apart the rows may be, such as "
                "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' HOUR, with a WATERMARK on both."
            )
        elif "watermark" in reason:
            hint = "Declare a WATERMARK on the time column of the table."
        raise SqlError(f"Spark cannot run this on a stream: {reason}", query.place, hint) from error
