"""Streaming queries of Spark over streams: from their first batch, empty or not, to their end."""

import json
import time

import pytest
from streamcore import Column, Table
from streamcore.spark.carrier import pack
from streamcore.spark.types import spark_schema

TABLE = Table((Column("n", "BIGINT"),), "t")
EFO = {"source.reader.type": "EFO", "source.efo.consumer.name": "ours"}


@pytest.fixture
def query(spark, options, tmp_path):
    """Starts a query that keeps its rows, and stops what is left of it."""
    started = []

    def start(stream, trigger=None, **extra):
        rows = []
        given = pack({"connector": "kinesis"} | options(stream, **extra), TABLE)
        frame = spark.readStream.format("streamcore").options(**given)
        frame = frame.schema(spark_schema(TABLE.output)).load()
        writer = frame.writeStream.foreachBatch(
            lambda batch, _: rows.extend(row.n for row in batch.collect())
        )
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        running = writer.trigger(**trigger or {"processingTime": "0 seconds"}).start()
        started.append(running)
        return running, rows

    yield start
    for running in started:
        running.stop()


def put(kinesis, stream, numbers):
    records = [{"Data": json.dumps({"n": n}).encode(), "PartitionKey": str(n)} for n in numbers]
    kinesis.client(direct=True).put_records(StreamName=stream, Records=records)


def wait_for(condition, running):
    deadline = time.monotonic() + 300
    while not condition():
        assert running.isActive, running.exception()
        assert time.monotonic() < deadline
        time.sleep(0.1)


def consumers(kinesis, stream):
    client = kinesis.client(direct=True)
    arn = client.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]["StreamARN"]
    return [c["ConsumerName"] for c in client.list_stream_consumers(StreamARN=arn)["Consumers"]]


def test_a_query_from_now_on_outlives_its_empty_first_batch_and_a_restart(
    kinesis, kinesis_stream, query
):
    stream = kinesis_stream(shards=2)
    put(kinesis, stream, [-1])
    time.sleep(2.5)
    running, rows = query(stream)  # LATEST is the default
    wait_for(lambda: running.lastProgress is not None, running)
    running.stop()
    put(kinesis, stream, range(5))
    running, rows = query(stream)
    wait_for(lambda: sorted(rows) == list(range(5)), running)


def test_a_stream_without_records_is_read_to_its_end_at_once(kinesis, kinesis_stream, query):
    stream = kinesis_stream(shards=1)
    for _ in range(2):
        running, rows = query(
            stream, {"availableNow": True}, **{"source.init.position": "TRIM_HORIZON"}
        )
        assert running.awaitTermination(300)
        assert (running.exception(), rows) == (None, [])


def test_a_consumer_is_there_from_the_start_and_gone_when_the_query_is_stopped(
    kinesis, kinesis_stream, query
):
    stream = kinesis_stream(shards=2)
    running, rows = query(stream, **EFO, **{"source.init.position": "TRIM_HORIZON"})
    wait_for(lambda: consumers(kinesis, stream) == ["ours"], running)
    put(kinesis, stream, range(10))
    wait_for(lambda: sorted(rows) == list(range(10)), running)
    running.stop()
    deadline = time.monotonic() + 120
    while consumers(kinesis, stream) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert consumers(kinesis, stream) == []
