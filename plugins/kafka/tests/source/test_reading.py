"""Kafka topics read through Spark itself, as a batch and as a stream."""

from __future__ import annotations

import functools
import json
import time

import pytest
from confluent_kafka.admin import NewPartitions
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from streamcore.spark.types import carried, spark_type
from streamcore.table import Column


def test_a_batch_reads_every_record_of_every_partition(read, produce, kafka_topic, people, rows_of):
    topic = kafka_topic(partitions=3)
    assert read(topic) == []
    for partition in range(3):
        produce(topic, people(5, partition * 5), partition)
    assert sorted(read(topic)) == rows_of(15)


def test_a_stream_goes_on_where_it_stopped(stream, produce, kafka_topic, people, rows_of):
    topic = kafka_topic(partitions=2)
    produce(topic, people(3), 0)
    assert stream(topic).rows == rows_of(3)
    produce(topic, people(2, 3), 1)
    assert stream(topic).rows == rows_of(2, 3)
    assert stream(topic).rows == []


def test_available_now_commits_every_batch_to_the_group_and_shows_its_lag(
    stream, produce, kafka_topic, people, committed
):
    topic = kafka_topic(partitions=2)
    produce(topic, people(6), 0)
    run = stream(topic, {"properties.group.id": topic, "scan.max-rows-per-batch": "4"})
    assert [len(batch) for batch in run.batches] == [4, 2]
    assert committed(topic, topic) == {0: 6, 1: 0}
    (first,) = [each["sources"][0] for each in run.progress if each["batchId"] == 0]
    assert first["numInputRows"] == 4
    assert first["endOffset"]["offsets"][topic]["0"] == 4
    assert first["latestOffset"]["offsets"][topic]["0"] == 6


def test_a_first_batch_that_failed_is_repeated_as_it_was(
    spark, options, produce, kafka_topic, people, rows_of, group, tmp_path
):
    topic = kafka_topic()
    produce(topic, people(5))
    given = {"scan.startup.mode": "group-offsets", "properties.group.id": group(topic, {0: 2})}
    seen = []

    def run(fail):
        def take(batch, number):
            seen.append((number, [tuple(row) for row in batch.collect()]))
            if fail:
                raise RuntimeError("on purpose")

        frame = spark.readStream.format("streamcore").option("connector", "kafka")
        query = (
            frame.options(**options(topic, given))
            .schema("id BIGINT, name STRING")
            .load()
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)

    with pytest.raises(PySparkException, match="on purpose"):
        run(fail=True)
    group(topic, {0: 4})  # somebody moves the group, and new records come
    produce(topic, people(2, 5))
    run(fail=False)
    assert seen == [(0, rows_of(3, 2)), (0, rows_of(3, 2)), (1, rows_of(2, 5))]


def test_a_running_query_takes_records_as_they_come(
    spark, options, produce, kafka_topic, people, committed, tmp_path
):
    topic = kafka_topic(partitions=2)
    given = {"scan.startup.mode": "latest-offset", "properties.group.id": topic}
    frame = spark.readStream.format("streamcore").option("connector", "kafka")
    query = (
        frame.options(**options(topic, given))
        .schema("id BIGINT, name STRING")
        .load()
        .writeStream.format("memory")
        .queryName("running")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        _wait(lambda: query.lastProgress)
        for at in range(3):
            produce(topic, people(1, at), at % 2)
            _wait(lambda at=at: spark.table("running").count() == at + 1)
        _wait(lambda: committed(topic, topic) == {0: 2, 1: 1})
    finally:
        query.stop()
    assert {row.id for row in spark.table("running").collect()} == {0, 1, 2}


def test_the_last_batch_is_committed_long_before_the_next_one_is_due(
    spark, options, produce, kafka_topic, people, committed, tmp_path
):
    topic = kafka_topic()
    produce(topic, people(3))
    frame = spark.readStream.format("streamcore").option("connector", "kafka")
    query = (
        frame.options(**options(topic, {"properties.group.id": topic}))
        .schema("id BIGINT, name STRING")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="1 hour")
        .start()
    )
    try:
        _wait(lambda: committed(topic, topic) == {0: 3}, 300)
    finally:
        query.stop()


def _wait(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.1)


def test_metadata_columns_travel_in_a_plain_schema(spark, options, produce, kafka_topic):
    topic = kafka_topic()
    produce(topic, [{"id": 7}], headers=[("a", b"1")], timestamp=1000)
    columns = [
        Column("id", "BIGINT"),
        Column("at", "TIMESTAMP(3)", True, "timestamp"),
        Column("place", "STRING", True, "offset"),
        Column("headers", "MAP<STRING, BYTES>", True, "headers"),
    ]
    schema = StructType()
    for column in columns:
        schema.add(column.name, spark_type(column.field), True, carried(column))
    frame = spark.read.format("streamcore").option("connector", "kafka")
    (row,) = frame.options(**options(topic)).schema(schema).load().collect()
    assert (row.id, str(row.at), row.place) == (7, "1970-01-01 00:00:01", "0")
    assert {key: bytes(value) for key, value in row.headers.items()} == {"a": b"1"}


def test_a_query_may_stop_reading_early(spark, options, produce, kafka_topic, people, read):
    topic = kafka_topic()
    produce(topic, people(25_000))
    frame = spark.read.format("streamcore").option("connector", "kafka")
    frame = frame.options(**options(topic)).schema("id BIGINT, name STRING").load()
    assert [row.id for row in frame.take(2)] == [0, 1]
    assert len(read(topic)) == 25_000


def test_problems_reach_the_user_through_spark(read, options, kafka_topic):
    with pytest.raises(PySparkException) as caught:
        read(kafka_topic(), {"scan.startup.mode": None, "scan.parallelism": "no"})
    assert "scan.parallelism: 'no' is not a whole number" in str(caught.value)


@pytest.fixture
def windows(spark, table, options, tmp_path):
    """Counts a topic's rows by the hour, each partition with a watermark: `windows(topic, {})`."""

    def run(topic, given):
        given = {"scan.watermark.per-partition": "true", **given}
        frames = []
        for lane in table(topic, given).lanes(options(topic, given)):
            frame = spark.readStream.format("streamcore").option("connector", "kafka")
            frame = frame.options(**lane).schema("name STRING").load()
            frame = frame.select(F.to_timestamp("name").alias("at"))
            frames.append(frame.withWatermark("at", "1 second"))
        query = (
            functools.reduce(lambda left, right: left.union(right), frames)
            .groupBy(F.window("at", "1 hour"))
            .count()
            .writeStream.format("noop")
            .outputMode("append")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300), "the query did not end"
        return [json.loads(each.json) for each in query.recentProgress]

    return run


def hour(number, steps=6):
    return [{"name": f"2024-05-01T{number:02d}:{step * 10:02d}:00Z"} for step in range(steps)]


def test_a_watermark_can_follow_the_slowest_partition(windows, produce, kafka_topic):
    topic = kafka_topic(partitions=4)
    for partition in range(4):  # each partition lives an hour after the one before
        produce(topic, hour(partition), partition)
    progress = windows(topic, {"scan.max-rows-per-batch": "8"})
    dropped = [s["numRowsDroppedByWatermark"] for p in progress for s in p["stateOperators"]]
    assert [p["numInputRows"] for p in progress][:3] == [8, 8, 8]  # the limit is for all of them
    assert sum(p["numInputRows"] for p in progress) == 24
    assert dropped
    assert sum(dropped) == 0


def test_a_partition_added_later_joins_the_watermarks_of_the_checkpoint(
    windows, produce, kafka, kafka_topic
):
    topic = kafka_topic(partitions=2)
    for partition in range(2):
        produce(topic, hour(partition), partition)
    assert sum(p["numInputRows"] for p in windows(topic, {})) == 12
    admin = kafka.admin()
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    _wait(lambda: len(admin.list_topics(topic, 10).topics[topic].partitions) == 3)
    produce(topic, hour(2), 2)
    with pytest.raises(PySparkException, match="2.* sources in the checkpoint offsets.*3"):
        windows(topic, {})
    progress = windows(topic, {"scan.watermark.lanes": "2"})
    assert sum(p["numInputRows"] for p in progress) == 6
