"""Brokers are real: what is produced is consumed, also after a restart."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer


def produce(servers: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def consume(servers: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        messages = []
        while len(messages) < count and (batch := consumer.consume(count - len(messages), 30)):
            messages += batch
        return [message.value() for message in messages]
    finally:
        consumer.close()


def test_what_is_produced_is_consumed(kafka, kafka_topic):
    topic = kafka_topic()
    produce(kafka.bootstrap_servers, topic, [b"a", b"b"])
    assert consume(kafka.bootstrap_servers, topic, 2) == [b"a", b"b"]
