"""What the tests of reading share: records written with another client, and two ways to read."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import Producer
from streamcore.registry import installed

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
