"""What the tests of this package share: reading a topic with another client than ours."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Message, TopicPartition


@pytest.fixture
def records(kafka) -> Callable[..., list[Message]]:
    """Reads a whole topic, by default only what is committed: `records(topic) -> [message]`."""

    def read(topic: str, isolation: str = "read_committed", timeout: float = 20) -> list[Message]:
        consumer = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": "test-reader",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "enable.partition.eof": True,
            }
        )
        try:
            return _all(consumer, topic, timeout)
        finally:
            consumer.close()

    return read


def _all(consumer: Consumer, topic: str, timeout: float) -> list[Message]:
    partitions = sorted(consumer.list_topics(topic, 10).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    ended: set[int] = set()
    found: list[Message] = []
    end = time.monotonic() + timeout
    while len(ended) < len(partitions) and time.monotonic() < end:
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                found.append(message)
            else:
                ended.add(message.partition())
    assert len(ended) == len(partitions), f"topic {topic} did not end in {timeout} s"
    return found
