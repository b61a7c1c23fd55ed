"""Producing and consuming a few messages, for the tests of the services beside it."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from streamcore.testing.services.kafka import unique_name


def _produce(config: dict[str, str], topic: str, values: list[bytes]) -> None:
    failures = []
    producer = Producer({"message.timeout.ms": "20000", **config})
    for value in values:
        producer.produce(
            topic, value, on_delivery=lambda error, _: error and failures.append(error)
        )
    assert producer.flush(30) == 0
    if failures:
        raise KafkaException(failures[0])


def _consume(config: dict[str, str], topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"group.id": unique_name("readers"), "auto.offset.reset": "earliest", **config}
    )
    consumer.subscribe([topic])
    try:
        values: list[bytes] = []
        while len(values) < count:
            message = consumer.poll(30)
            assert message is not None, f"{len(values)} of {count} messages after 30 s"
            if message.error():
                raise KafkaException(message.error())
            values.append(message.value())
        return values
    finally:
        consumer.close()


@pytest.fixture
def produce():
    return _produce


@pytest.fixture
def consume():
    return _consume
