"""Upsert tables on a real broker, with Spark's part played by the test."""

import json

import pyarrow as pa
import pytest
from streamcore import Column, Table
from streamcore.registry import installed
from streamcore.spark.types import arrow_output

KIND = Column("_row_kind", "STRING", metadata="row-kind", virtual=True)
COUNTS = Table(
    (Column("region", "STRING", nullable=False), Column("views", "BIGINT"), KIND),
    "counts",
    ("region",),
)


class UpsertTable:
    """A table of one topic that can be written, read as changes, and read as a snapshot."""

    def __init__(self, servers, topic, table=COUNTS, **extra):
        self.table, self.topic, self.servers = table, topic, servers
        self.options = {
            "topic": topic,
            "properties.bootstrap.servers": servers,
            "key.format": "json",
            "value.format": "json",
            **extra,
        }

    @property
    def connector(self):
        return installed().build("connector", "upsert-kafka", self.options)

    def write(self, *batches):
        schema = arrow_output(self.table.columns)
        writer = self.connector.writer(self.table)
        return writer.write(pa.RecordBatch.from_pylist(list(b), schema) for b in batches)

    def changes(self, projection=None):
        table = self.table.reading(projection)
        reader = self.connector.stream_reader(table)
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        return [
            row
            for p in reader.partitions(start, end)
            for b in reader.read(p)
            for row in b.to_pylist()
        ]

    def snapshot(self, projection=None):
        reader = self.connector.reader(self.table.reading(projection))
        return [row for p in reader.partitions() for b in reader.read(p) for row in b.to_pylist()]

    def messages(self):
        """Key and value of every message, as another client sees them."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "check"})
        found = []
        for partition in consumer.list_topics(self.topic).topics[self.topic].partitions:
            place = TopicPartition(self.topic, partition, 0)
            _, end = consumer.get_watermark_offsets(place)
            consumer.assign([place])
            while end and consumer.position([place])[0].offset < end:
                for message in consumer.consume(100, 0.1):
                    value = message.value()
                    found.append((json.loads(message.key()), value and json.loads(value)))
        consumer.close()
        return found


@pytest.fixture
def upsert_table(kafka, kafka_topic):
    def make(partitions=2, table=COUNTS, **extra):
        return UpsertTable(kafka.bootstrap_servers, kafka_topic(partitions), table, **extra)

    return make
