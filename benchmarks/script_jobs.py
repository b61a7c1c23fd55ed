"""SQL scripts run inside a Spark process, to their end."""

from __future__ import annotations

import tempfile
import time

from pyspark.sql import SparkSession
from streamcore_sql import Session

from .jobs import Answer


def run_script(spark: SparkSession, script: str, rows: int) -> Answer:
    """As a stream that reads what is there, in micro-batches, and ends."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        Session(spark, name="bench", checkpoint=folder, once=True).execute(script)
        return {"seconds": time.perf_counter() - start, "rows": rows}
