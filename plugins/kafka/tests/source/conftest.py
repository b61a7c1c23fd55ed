"""What the tests of reading share: records written with another client, and two ways to read."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from streamcore import Column, Table
from streamcore.registry import installed
from streamcore_kafka.source import KafkaReader, KafkaStreamReader

COLUMNS = (Column("id", "BIGINT"), Column("name", "STRING"))
SCHEMA = "id BIGINT, name STRING"


@pytest.fixture
def produce(kafka):
    """Writes records with another client than ours: `produce(topic, values, partition)`."""

    def write(topic, values, partition=0, settings=(), **more):
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, **dict(settings)})
        for value in values:
            payload = value if isinstance(value, bytes | None) else json.dumps(value).encode()
            producer.produce(topic, payload, partition=partition, **more)
        assert producer.flush(20) == 0

    return write


@pytest.fixture
def options(kafka):
    """Options of a table that starts at the earliest offset: `options(topic, {more})`."""

    def make(topic, more=()):
        given = {
            "properties.bootstrap.servers": kafka.bootstrap_servers,
            "topic": topic,
            "format": "json",
            "scan.startup.mode": "earliest-offset",
            **dict(more),
        }
        return {key: value for key, value in given.items() if value is not None}

    return make


@pytest.fixture
def table(options):
    """The connector of such a table, without Spark."""

    def make(topic, more=()):
        return installed().build("connector", "kafka", options(topic, more))

    return make


@pytest.fixture
def read(spark, options):
    """Reads a topic as a batch: `read(topic, {option: value}) -> rows`."""

    def rows(topic, more=(), schema=SCHEMA):
        frame = spark.read.format("streamcore").option("connector", "kafka")
        frame = frame.options(**options(topic, more)).schema(schema).load()
        return [tuple(row) for row in frame.collect()]

    return rows


@dataclass
class Run:
    """What one run of a query saw."""

    batches: list[list[tuple[Any, ...]]] = field(default_factory=list)
    progress: list[dict[str, Any]] = field(default_factory=list)

    @property
    def rows(self):
        return [row for batch in self.batches for row in batch]


@pytest.fixture
def stream(spark, options, tmp_path):
    """Reads what is there as a stream, each time going on from the same checkpoint."""

    def run(topic, more=(), schema=SCHEMA, checkpoint="checkpoint"):
        seen = Run()
        frame = spark.readStream.format("streamcore").option("connector", "kafka")
        query = (
            frame.options(**options(topic, more))
            .schema(schema)
            .load()
            .writeStream.foreachBatch(
                lambda batch, _: seen.batches.append([tuple(row) for row in batch.collect()])
            )
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(120), "the query did not end"
        finally:
            query.stop()
        seen.progress = [json.loads(each.json) for each in query.recentProgress]
        return seen

    return run


@pytest.fixture
def group(kafka):
    """Commits offsets for a group of its own: `group(topic, {partition: offset}) -> name`."""

    def commit(topic, offsets):
        name = f"group-of-{topic}"
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": name})
        places = [TopicPartition(topic, *place) for place in offsets.items()]
        _patiently(lambda: consumer.commit(offsets=places, asynchronous=False))
        consumer.close()
        return name

    return commit


def _patiently(call):
    """A young broker has to find out first who coordinates its groups."""
    for _ in range(100):
        try:
            return call()
        except KafkaException:
            time.sleep(0.1)
    return call()


@pytest.fixture
def forget(kafka):
    """Deletes the records before an offset: `forget(topic, partition, before)`."""

    def delete(topic, partition, before):
        admin = kafka.admin()
        place = TopicPartition(topic, partition, before)
        admin.delete_records([place])[place].result()

    return delete


@pytest.fixture
def committed(kafka):
    """What a group has committed: `committed(group, topic) -> {partition: offset}`."""

    def offsets(name, topic):
        settings = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": name}
        consumer = Consumer(settings)
        numbers = consumer.list_topics(topic, 10).topics[topic].partitions
        places = [TopicPartition(topic, number) for number in numbers]
        found = _patiently(lambda: consumer.committed(places, timeout=20))
        consumer.close()
        return {each.partition: each.offset for each in found if each.offset >= 0}

    return offsets


class Driver:
    """Runs a stream reader the way Spark does, without Spark."""

    def __init__(self, reader: KafkaStreamReader, start: dict[str, Any] | None = None) -> None:
        self.reader = reader
        self.at = self._plain(start or reader.initialOffset())

    @staticmethod
    def _plain(offset):
        return json.loads(json.dumps(offset))

    def batch(self, limit=None):
        """One batch: its rows, in the order the tasks give them."""
        end = self._plain(
            self.reader.latestOffset(self.at, limit or self.reader.getDefaultReadLimit())
        )
        start, self.at = self.at, end
        return self.replay(start, end)

    def until(self, count, seconds=15):
        """Batches until that many rows have come: a broker ends transactions in its own time."""
        deadline, rows = time.monotonic() + seconds, []
        while len(rows) < count and time.monotonic() < deadline:
            rows += self.batch()
        return rows

    def replay(self, start, end):
        tasks = self.reader.partitions(start, end)
        return [
            tuple(row.values())
            for task in tasks
            for batch in self.reader.read(task)
            for row in batch.to_pylist(maps_as_pydicts="lossy")
        ]


@pytest.fixture
def drive(table):
    """A query without Spark: `drive(topic, {...}).batch() -> rows`."""

    def make(topic, more=(), columns=COLUMNS, start=None):
        reader = KafkaStreamReader(table(topic, more), Table(columns, "t"))
        return Driver(reader, start)

    return make


@pytest.fixture
def scan(table):
    """A batch read without Spark: `scan(topic, {...}) -> rows`."""

    def rows(topic, more=(), columns=COLUMNS):
        reader = KafkaReader(table(topic, more), Table(columns, "t"))
        return [
            tuple(row.values())
            for task in reader.partitions()
            for batch in reader.read(task)
            for row in batch.to_pylist(maps_as_pydicts="lossy")
        ]

    return rows


def people(count, first=0):
    """Values as a producer writes them."""
    return [{"id": at, "name": f"n{at}"} for at in range(first, first + count)]


def rows_of(count, first=0):
    """The same as rows."""
    return [(at, f"n{at}") for at in range(first, first + count)]


@pytest.fixture(name="people")
def _people():
    return people


@pytest.fixture(name="rows_of")
def _rows_of():
    return rows_of
