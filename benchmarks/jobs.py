"""What runs inside a Spark process: each function is one job, and answers seconds and rows."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every Spark program writes it
from streamcore import Column, Table
from streamcore.spark.carrier import pack
from streamcore.spark.types import spark_schema

from .data import AVRO_SCHEMA, COLUMNS, WIDE, sums

Answer = dict[str, Any]
_MILLISECONDS = {"timestampNTZFormat": "yyyy-MM-dd HH:mm:ss.SSS"}


def read_ours(spark: SparkSession, **source: Any) -> Answer:
    return _timed(ours(spark, **source))


def read_spark(spark: SparkSession, **source: Any) -> Answer:
    return _timed(_sparks(spark, **source))


def check_ours(spark: SparkSession, **source: Any) -> Answer:
    return _checked(ours(spark, **source), _shape(source["format_name"]))


def check_spark(spark: SparkSession, **source: Any) -> Answer:
    return _checked(_sparks(spark, **source), _shape(source["format_name"]))


def _ddl(shape: dict[str, str]) -> str:
    kinds = {name: kind.replace("TIMESTAMP(3)", "TIMESTAMP_NTZ") for name, kind in shape.items()}
    return ", ".join(f"{name} {kind}" for name, kind in kinds.items())


def _shape(format_name: str) -> dict[str, str]:
    return WIDE if format_name == "wide" else COLUMNS


def ours(
    spark: SparkSession,
    servers: str,
    topic: str,
    format_name: str,
    columns: Sequence[str],
    registry: str = "",
) -> DataFrame:
    shape = _shape(format_name)
    table = Table(tuple(Column(name, kind) for name, kind in shape.items()), "bench")
    options = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": servers,
        "scan.startup.mode": "earliest-offset",
        "format": "json" if format_name == "wide" else format_name,
    }
    if registry:
        options["avro-confluent.url"] = registry
    schema = spark_schema(table.reading(columns).output)
    reader = spark.readStream.format("streamcore").options(**pack(options, table)).schema(schema)
    return reader.load()


def _sparks(
    spark: SparkSession,
    servers: str,
    topic: str,
    format_name: str,
    columns: Sequence[str],
    registry: str = "",
) -> DataFrame:
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    value, ddl = F.col("value").cast("string"), _ddl(_shape(format_name))
    if format_name in ("json", "wide"):
        row = F.from_json(value, ddl, _MILLISECONDS)
    elif format_name == "debezium-json":
        change = f"before STRUCT<{ddl}>, after STRUCT<{ddl}>, op STRING"
        row = F.from_json(value, change, _MILLISECONDS)["after"]
    elif format_name == "csv":
        row = F.from_csv(value, ddl, _MILLISECONDS)
    else:
        from pyspark.sql.avro.functions import from_avro

        payload = F.expr("substring(value, 6)") if format_name == "avro-confluent" else "value"
        row = from_avro(payload, json.dumps(AVRO_SCHEMA))
    return raw.select(row.alias("r")).select(*(f"r.{name}" for name in columns))


def _timed(
    frame: DataFrame, sink: str = "noop", options: Mapping[str, str] | None = None
) -> Answer:
    seconds, batches = ran(frame, sink, options)
    return {"seconds": seconds, "rows": sum(int(each["numInputRows"]) for each in batches)}


def ran(
    frame: DataFrame, sink: str = "noop", options: Mapping[str, str] | None = None
) -> tuple[float, list[Any]]:
    """Read everything there is, as one streaming query with AvailableNow, into nothing at first.

    Answers how long that took, with starting the query, and what Spark told of its batches.
    """
    checkpoint = tempfile.mkdtemp(prefix="bench")
    try:
        start = time.perf_counter()
        query = (
            frame.writeStream.format(sink)
            .options(**(options or {}))
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return time.perf_counter() - start, list(query.recentProgress)
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)


def _checked(frame: DataFrame, shape: dict[str, str]) -> Answer:
    """Read everything and add it up, to see that all sides read the same."""
    found: list[str] = []

    def add_up(batch: DataFrame, _: int) -> None:
        row = batch.selectExpr(*sums(shape, batch.columns, spark=True)).collect()[0]
        found.append(",".join(str(value) for value in row))

    checkpoint = tempfile.mkdtemp(prefix="bench")
    try:
        start = time.perf_counter()
        writer = frame.writeStream.foreachBatch(add_up).option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
        seconds = time.perf_counter() - start
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)
    (checksum,) = found  # one micro-batch: nothing bounds its size
    return {"seconds": seconds, "rows": int(checksum.split(",")[0]), "checksum": checksum}


def idle(spark: SparkSession) -> Answer:
    """A Python worker that has Arrow and nothing to do, for as long as it takes to see its size."""

    def wait(number: int) -> int:
        import pyarrow  # noqa: F401 - an idle worker has it, too

        time.sleep(1)
        return number

    waited = spark.range(0, 2, 1, 2).select(F.udf(wait, "long", useArrow=False)("id"))
    rows = len(waited.collect())
    return {"seconds": 1.0, "rows": rows}


# --- writing -----------------------------------------------------------------------------


def write_ours(
    spark: SparkSession, servers: str, topic: str, rows: int, format_name: str = "json"
) -> Answer:
    return _written(_rows(spark, rows), _sink(servers, topic, format_name))


def write_ours_exactly_once(spark: SparkSession, servers: str, topic: str, rows: int) -> Answer:
    once = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": topic}
    return _written(_rows(spark, rows), _sink(servers, topic) | once)


def write_spark(
    spark: SparkSession, servers: str, topic: str, rows: int, format_name: str = "json"
) -> Answer:
    frame = _rows(spark, rows)
    start = time.perf_counter()
    if format_name == "json":
        value = F.to_json(F.struct("*"), _MILLISECONDS)
    else:
        from pyspark.sql.avro.functions import to_avro

        # The schema that ours derives, so that both write the same bytes.
        schema = json.dumps(AVRO_SCHEMA).replace("timestamp-millis", "local-timestamp-millis")
        value = to_avro(F.struct("*"), schema)
    to_kafka = frame.select(value.alias("value")).write.format("kafka")
    to_kafka.option("kafka.bootstrap.servers", servers).option("topic", topic).save()
    return {"seconds": time.perf_counter() - start, "rows": rows}


def copy_spark(spark: SparkSession, servers: str, source: str, target: str) -> Answer:
    """From topic to topic through rows."""
    frame = _sparks(spark, servers, source, "json", list(COLUMNS))
    value = F.to_json(F.struct("*"), _MILLISECONDS).alias("value")
    return _timed(
        frame.select(value), "kafka", {"kafka.bootstrap.servers": servers, "topic": target}
    )


def _sink(servers: str, topic: str, format_name: str = "json") -> dict[str, str]:
    return {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": servers,
        "format": format_name,
    }


def _written(frame: DataFrame, options: dict[str, str]) -> Answer:
    table = Table(tuple(Column(name, kind) for name, kind in COLUMNS.items()), "bench")
    rows = frame.count()
    start = time.perf_counter()
    frame.write.format("streamcore").options(**pack(options, table)).mode("append").save()
    return {"seconds": time.perf_counter() - start, "rows": rows}


_cached: dict[int, DataFrame] = {}


def _rows(spark: SparkSession, count: int) -> DataFrame:
    """The rows to write, made once and kept in memory, so that making them is not measured."""
    if count not in _cached:
        n = F.col("id")
        cities = F.array(*(F.lit(name) for name in ("Berlin", "Paris", "München", "New York")))
        kinds = F.array(*(F.lit(name) for name in ("pv", "buy", "cart", "fav")))
        frame = spark.range(0, count, 1, 4).select(
            (n * 7919 % 1_000_000).alias("user_id"),
            (n * 104729 % 10_000_000).alias("item_id"),
            (n % 1000).alias("category_id"),
            kinds[(n % 4).cast("int")].alias("behavior"),
            F.round(n % 100_000 / 100.0, 2).alias("price"),
            F.timestamp_millis(n + 1_704_067_200_000).cast("timestamp_ntz").alias("ts"),
            cities[(n % 4).cast("int")].alias("city"),
            (n % 3 == 0).alias("ok"),
        )
        frame = frame.persist()
        frame.count()
        _cached[count] = frame
    return _cached[count]
