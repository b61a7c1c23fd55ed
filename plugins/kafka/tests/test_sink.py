"""Rows written through Spark to a real broker, read back by a plain client."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def write(spark, kafka):
    """Writes a DataFrame with these options on top of the usual ones."""

    def run(frame, topic, **options):
        return (
            frame.write.format("streamcore")
            .option("connector", "kafka")
            .option("properties.bootstrap.servers", kafka.bootstrap_servers)
            .option("topic", topic)
            .option("format", "json")
            .options(**options)
            .mode("append")
            .save()
        )

    return run


def test_a_batch_of_rows_becomes_json_messages(spark, kafka_topic, records, write):
    topic = kafka_topic(3)
    write(spark.range(1000).selectExpr("id", "concat('n', id) AS name"), topic)
    rows = [json.loads(message.value()) for message in records(topic)]
    assert sorted(row["id"] for row in rows) == list(range(1000))
    assert {row["name"] for row in rows} == {f"n{n}" for n in range(1000)}


def test_a_stream_of_rows_becomes_json_messages(spark, kafka, kafka_topic, records, tmp_path):
    topic = kafka_topic(2)
    spark.range(100).write.parquet(str(tmp_path / "in"))
    query = (
        spark.readStream.schema("id BIGINT")
        .parquet(str(tmp_path / "in"))
        .writeStream.format("streamcore")
        .option("connector", "kafka")
        .option("properties.bootstrap.servers", kafka.bootstrap_servers)
        .option("topic", topic)
        .option("format", "json")
        .option("key.format", "json")
        .option("key.fields", "id")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(60)
    messages = records(topic)
    assert sorted(json.loads(m.value())["id"] for m in messages) == list(range(100))
    assert all(m.key() == m.value() for m in messages)
