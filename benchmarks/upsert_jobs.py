"""Upsert tables, run inside a Spark process: written, read, normalised, and taken up again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every Spark program writes it
from streamcore import ROW_KIND, Column, Table
from streamcore.spark.carrier import pack
from streamcore.spark.types import spark_schema

from .jobs import Answer

KIND = Column(ROW_KIND, "STRING", metadata="row-kind", virtual=True)
COLUMNS = (Column("id", "BIGINT", nullable=False), Column("name", "STRING"), Column("n", "BIGINT"))
TABLE = Table(COLUMNS, "bench", ("id",))
CHANGES = Table((*COLUMNS, KIND), "bench", ("id",))
PLAIN = Table(COLUMNS, "bench")
_cached: dict[tuple[int, int], DataFrame] = {}


def write_upserts(
    spark: SparkSession, servers: str, topic: str, rows: int, keys: int, **extra: str
) -> Answer:
    options = {"connector": "upsert-kafka", "key.format": "json", "value.format": "json", **extra}
    return _written(_rows(spark, rows, keys), _at(servers, topic) | options, TABLE)


def write_plain(spark: SparkSession, servers: str, topic: str, rows: int, keys: int) -> Answer:
    options = {
        "connector": "kafka",
        "key.format": "json",
        "key.fields": "id",
        "value.format": "json",
    }
    return _written(_rows(spark, rows, keys), _at(servers, topic) | options, PLAIN)


def read_upserts(spark: SparkSession, servers: str, topic: str, checkpoint: str) -> Answer:
    """Columns of the key from the key, those of the value from the value, as below."""
    options = {
        "connector": "upsert-kafka",
        "key.format": "json",
        "value.format": "json",
        "value.fields-include": "EXCEPT_KEY",
    }
    return _read(_loaded(spark, _at(servers, topic) | options, CHANGES), checkpoint)


def read_plain(spark: SparkSession, servers: str, topic: str, checkpoint: str) -> Answer:
    options = {
        "connector": "kafka",
        "key.format": "json",
        "key.fields": "id",
        "value.format": "json",
        "value.fields-include": "EXCEPT_KEY",
        "scan.startup.mode": "earliest-offset",
    }
    return _read(_loaded(spark, _at(servers, topic) | options, PLAIN), checkpoint)


def normalize(spark: SparkSession, servers: str, topic: str, checkpoint: str, batch: int) -> Answer:
    """Read a topic as a full changelog, in micro-batches of so many messages."""
    from streamcore.registry import installed

    # Few partitions of state: every one of them costs a commit in every micro-batch.
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    options = {
        **_at(servers, topic),
        "key.format": "json",
        "value.format": "json",
        "changelog.normalize": "true",
        "scan.max-rows-per-batch": str(batch),
    }
    connector = installed().build("connector", "upsert-kafka", options)

    def load(table: Table) -> DataFrame:
        return _loaded(spark, {"connector": "upsert-kafka", **options}, table)

    return _read(connector.stream_frame(load, CHANGES), checkpoint, mode="update")


def _at(servers: str, topic: str) -> dict[str, str]:
    return {"properties.bootstrap.servers": servers, "topic": topic}


def _loaded(spark: SparkSession, options: dict[str, str], table: Table) -> DataFrame:
    reader = spark.readStream.format("streamcore").options(**pack(options, table))
    return reader.schema(spark_schema(table.output)).load()


def _read(frame: DataFrame, checkpoint: str, mode: str = "append") -> Answer:
    start = time.perf_counter()
    writer = frame.writeStream.format("noop").outputMode(mode)
    query = (
        writer.option("checkpointLocation", str(Path(checkpoint)))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    seconds = time.perf_counter() - start
    told: list[Any] = list(query.recentProgress)
    return {"seconds": seconds, "rows": sum(int(each["numInputRows"]) for each in told)}


def _written(frame: DataFrame, options: dict[str, str], table: Table) -> Answer:
    rows = frame.count()
    start = time.perf_counter()
    frame.write.format("streamcore").options(**pack(options, table)).mode("append").save()
    return {"seconds": time.perf_counter() - start, "rows": rows}


def _rows(spark: SparkSession, count: int, keys: int) -> DataFrame:
    """Rows over so many keys, made once and kept in memory, so that making them is not measured."""
    if (count, keys) not in _cached:
        n = F.col("id")
        frame = spark.range(0, count, 1, 2).select(
            (n * 7919 % keys).alias("id"),
            F.concat(F.lit("name "), n % 1000).alias("name"),
            n.alias("n"),
        )
        # By key, as a query that aggregates hands its rows over.
        _cached[count, keys] = frame.repartition(2, "id").persist()
        _cached[count, keys].count()
    return _cached[count, keys]
