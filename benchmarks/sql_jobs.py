"""What SQL runs inside a Spark process: the same reads as statements and as DataFrames."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pyspark.sql import SparkSession
from streamcore_sql import Session, parse
from streamcore_sql.statements import Select

from .data import COLUMNS
from .jobs import Answer, _timed, read_ours


def read_frame(spark: SparkSession, servers: str, topic: str, columns: Sequence[str]) -> Answer:
    """The DataFrame a Spark user would write."""
    start = time.perf_counter()
    answer = read_ours(spark, servers=servers, topic=topic, format_name="json", columns=columns)
    return {**answer, "seconds": time.perf_counter() - start}


def read_sql(spark: SparkSession, servers: str, topic: str, columns: Sequence[str]) -> Answer:
    """The same as statements: parsed, planned and checked within the time that is measured."""
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
    answer = _timed(session.planner.plan(query.query).frame)
    return {**answer, "seconds": time.perf_counter() - start}
