"""Relays from one topic to another, run inside a Spark process for a while."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every Spark program writes it
from streamcore import Column, Table
from streamcore.spark.carrier import pack
from streamcore.spark.types import spark_schema

from .jobs import Answer

TABLE = Table((Column("n", "BIGINT"), Column("sent", "BIGINT")), "relay")
_WARM = 1.0


def relay_ours(
    spark: SparkSession, servers: str, source: str, target: str, seconds: float
) -> Answer:
    kafka = {"connector": "kafka", "properties.bootstrap.servers": servers, "format": "json"}
    read = pack({**kafka, "topic": source, "scan.startup.mode": "earliest-offset"}, TABLE)
    reader = spark.readStream.format("streamcore").options(**read)
    frame = reader.schema(spark_schema(TABLE.columns)).load()
    return _relay(frame, "streamcore", pack({**kafka, "topic": target}, TABLE), seconds)


def relay_spark(
    spark: SparkSession, servers: str, source: str, target: str, seconds: float
) -> Answer:
    kafka = {"kafka.bootstrap.servers": servers}
    reader = spark.readStream.format("kafka").options(**kafka)
    raw = reader.option("subscribe", source).option("startingOffsets", "earliest").load()
    row = F.from_json(F.col("value").cast("string"), "n BIGINT, sent BIGINT")
    frame = raw.select(F.to_json(row).alias("value"))
    return _relay(frame, "kafka", {**kafka, "topic": target}, seconds)


def _relay(frame: DataFrame, sink: str, options: dict[str, str], seconds: float) -> Answer:
    checkpoint = tempfile.mkdtemp(prefix="bench")
    writer = frame.writeStream.format(sink).options(**options)
    query = writer.option("checkpointLocation", checkpoint).start()
    try:
        while not any(progress["numInputRows"] for progress in query.recentProgress):
            if query.exception():
                raise query.exception()
            time.sleep(0.05)
        time.sleep(_WARM)
        last = query.lastProgress
        time.sleep(seconds)
        batches = [
            progress
            for progress in query.recentProgress
            if progress["batchId"] > last["batchId"] and progress["numInputRows"]
        ]
    finally:
        query.stop()
        shutil.rmtree(checkpoint, ignore_errors=True)
    took = statistics.median(each["durationMs"]["triggerExecution"] for each in batches or [last])
    rows = sum(each["numInputRows"] for each in batches) or 1
    return {"seconds": seconds, "rows": rows, "extra": {"batch ms": took}}
