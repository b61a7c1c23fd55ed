"""What SQL runs inside a Spark process: the same reads as statements and as DataFrames."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from streamcore_sql import Session, parse
from streamcore_sql.statements import Select

from .data import COLUMNS
from .jobs import Answer, ours, ran


def read_frame(spark: SparkSession, servers: str, topic: str, columns: Sequence[str]) -> Answer:
    """The DataFrame a Spark user would write."""
    start = time.perf_counter()
    frame = ours(spark, servers=servers, topic=topic, format_name="json", columns=columns)
    return _paced(frame, start)


def read_sql(spark: SparkSession, servers: str, topic: str, columns: Sequence[str]) -> Answer:
    """The same as statements, which are parsed, planned and checked first."""
    declared = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    chosen = "*" if len(columns) == len(COLUMNS) else ", ".join(columns)
    start = time.perf_counter()
    session = Session(spark)
    session.execute(
        f"""CREATE TABLE events ({declared}) WITH ('connector' = 'kafka', 'topic' = '{topic}',
          'properties.bootstrap.servers' = '{servers}', 'format' = 'json',
          'scan.startup.mode' = 'earliest-offset')"""
    )
    (query,) = parse(f"SELECT {chosen} FROM events")
    assert isinstance(query, Select)
    return _paced(session.planner.plan(query.query).frame, start)


def _paced(frame: DataFrame, start: float) -> Answer:
    """The pace while batches run, as a stream has it; beside it, how long it took to get there."""
    _, batches = ran(frame)
    total = time.perf_counter() - start
    seconds = sum(each["durationMs"]["triggerExecution"] for each in batches) / 1000
    rows = sum(int(each["numInputRows"]) for each in batches)
    return {"seconds": seconds, "rows": rows, "extra": {"start ms": 1000 * (total - seconds)}}
