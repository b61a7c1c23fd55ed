"""A full changelog out of upserts, wherever a key turns up, and with state that forgets."""

import json
import os
import subprocess
import sys
import time
from datetime import timedelta

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row
from streamcore import Column, OptionError, RecordError, Table
from streamcore.registry import installed
from streamcore.spark.changes import read_changes
from streamcore.spark.types import spark_schema

KIND = Column("_row_kind", "STRING", metadata="row-kind", virtual=True)
LATELY = int(time.time() * 1000) - 600_000  # what is older is soon deleted
ROWS = Table((Column("id", "INT", nullable=False), Column("v", "STRING"), KIND), "rows", ("id",))


@pytest.fixture
def put(kafka):
    """Writes (partition, id, value, time) as they come, wherever that is."""

    def write(topic, *rows):
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for partition, number, value, at in rows:
            payload = None if value is None else json.dumps({"id": number, "v": value}).encode()
            key = json.dumps({"id": number}).encode()
            producer.produce(topic, payload, key, partition=partition, timestamp=LATELY + at)
        producer.flush()

    return write


@pytest.fixture
def told(spark, kafka, tmp_path):
    """What a normalised stream tells of what is new, in its order for each key."""

    def run(topics, **extra):
        options = {
            "topic": topics,
            "properties.bootstrap.servers": kafka.bootstrap_servers,
            "key.format": "json",
            "value.format": "json",
            "changelog.normalize": "true",
            **extra,
        }
        found = []
        frame = read_changes(spark, {"connector": "upsert-kafka", **options}, ROWS)
        writer = frame.writeStream.outputMode("update")
        writer = writer.foreachBatch(lambda batch, _: found.extend(map(tuple, batch.collect())))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
        return sorted(found, key=lambda row: row[0])

    return run


def test_a_key_in_two_partitions_and_topics_is_one_row_and_what_was_written_last_counts(
    put, told, kafka_topic
):
    one, other = sorted((kafka_topic(2), kafka_topic(2)))
    both = f"{one};{other}"
    put(one, (0, 1, "old", 1000), (1, 1, "new", 3000), (0, 2, "b", 1000))
    put(other, (0, 1, "between", 2000))
    assert told(both) == [(1, "new", "+I"), (2, "b", "+I")]
    # In a partition the order of the log counts, whatever the times say.
    put(one, (1, 1, "late", 9000), (1, 1, "x", 4000), (0, 2, "b", 3000))
    put(other, (0, 1, "y", 3000))
    assert told(both) == [(1, "new", "-U"), (1, "x", "+U")]
    put(one, (0, 1, None, 6000), (0, 3, None, 1000))
    put(other, (1, 1, "z", 5000))
    assert told(both) == [(1, "x", "-D")]


def test_a_key_in_partitions_that_two_tasks_read_fails_and_goes_on_with_one_task(
    put, told, kafka_topic
):
    topic = kafka_topic(2)
    enough = [(0, 2, "b", 1000)] * 30_000  # for a second task to be worth it
    put(topic, (0, 1, "a", 1000), *enough, (1, 1, "c", 3000))
    with pytest.raises(StreamingQueryException) as caught:
        told(topic)
    assert '{"id":1} is in several partitions of the topic' in str(caught.value)
    assert "Set 'scan.parallelism' to '1'" in str(caught.value)
    assert told(topic, **{"scan.parallelism": "1"}) == [(1, "c", "+I"), (2, "b", "+I")]


# --- with state that forgets ------------------------------------------------------------------


class KeptRow:
    """State of one key, which a test can let expire."""

    def __init__(self):
        self.row, self.millis = None, None

    def getValueState(self, name, schema, ttlDurationMs):
        self.millis = ttlDurationMs
        return self

    def get(self):
        return self.row

    def exists(self):
        return self.row is not None

    def update(self, row):
        self.row = row

    def clear(self):
        self.row = None


@pytest.fixture
def one_key():
    """The changes of one key, one after the other, and the state between them."""
    from streamcore_upsert_kafka.normalizing_with_ttl import Normalizer

    state = KeptRow()
    normalizer = Normalizer(["id", "v"], spark_schema(ROWS.columns[:2]), timedelta(hours=1))
    normalizer.init(state)

    def change(*rows):
        return [tuple(told) for told in normalizer.handleInputRows((1,), iter(rows), None)]

    return change, state


def test_state_that_forgets_tells_the_same_changes(one_key):
    change, state = one_key
    row = Row("id", "v", "_row_kind", "_batch")
    assert state.millis == 3_600_000
    assert change(row(1, None, "-D", 0)) == []
    assert change(row(1, "a", "+U", 1)) == [(1, "a", "+I")]
    assert change(row(1, "a", "+U", 2)) == []
    assert change(row(1, "b", "+U", 3)) == [(1, "a", "-U"), (1, "b", "+U")]
    assert change(row(1, None, "-D", 4)) == [(1, "b", "-D")]
    assert change(row(1, "c", "+U", 5)) == [(1, "c", "+I")]
    state.clear()  # what Spark does when the time is over
    assert change(row(1, "d", "+U", 6)) == [(1, "d", "+I")]
    with pytest.raises(RecordError, match=r"\[1\] is in several partitions of the topic"):
        change(row(1, "e", "+U", 7), row(1, "f", "+U", 7))


FORGETTING = """
CREATE TABLE latest (id INT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}',
  'key.format' = 'json', 'value.format' = 'json', 'changelog.normalize' = 'true',
  'changelog.normalize.ttl' = '60 s');
CREATE TABLE told (id INT, v STRING) WITH ('connector' = 'print');
INSERT INTO told SELECT id, v FROM latest;
"""
ONCE = ("--once", "--checkpoint", "kept")


@pytest.mark.soak
def test_spark_forgets_a_key_that_has_not_changed_for_a_while(kafka, kafka_topic, tmp_path):
    from streamcore.testing.services.spark_connect import CLIENT

    topic = kafka_topic()
    job = FORGETTING.format(topic=topic, servers=kafka.bootstrap_servers)
    (tmp_path / "job.sql").write_text(job)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})

    def told(value: str) -> list[str]:
        producer.produce(topic, json.dumps({"id": 1, "v": value}), json.dumps({"id": 1}))
        producer.flush()
        done = subprocess.run(
            [sys.executable, "-m", "streamcore.cli", "run", "job.sql", *ONCE],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(CLIENT.path())},  # which has pandas
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return [line for line in done.stdout.splitlines() if "[" in line]

    assert told("a") == ["+I[1, a]"]
    assert told("b") == ["-U[1, a]", "+U[1, b]"]
    assert told("b") == []
    time.sleep(70)
    assert told("c") == ["+I[1, c]"]


def test_state_that_forgets_needs_pandas_and_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    options = {
        "topic": "t",
        "properties.bootstrap.servers": "127.0.0.1:1",
        "key.format": "json",
        "value.format": "json",
        "changelog.normalize": "true",
        "changelog.normalize.ttl": "1 h",
    }
    connector = installed().build("connector", "upsert-kafka", options)
    with pytest.raises(OptionError) as caught:
        connector.stream_frame(lambda table: None, ROWS)
    assert (
        "changelog.normalize.ttl: needs pandas, which is not installed; "
        "pip install 'streamcore-upsert-kafka[ttl]'"
    ) in str(caught.value)
