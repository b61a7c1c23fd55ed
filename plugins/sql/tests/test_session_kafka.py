"""Kafka to Kafka through SQL, on a real broker."""

import json

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from streamcore_sql import Session

VIEWS = [
    {"user_id": n % 3, "page": f"/p{n}", "viewtime": f"2024-05-01 10:00:{n:02d}", "region": r}
    for n, r in enumerate(["eu", "us", "eu", "asia", "us", "eu"])
]


@pytest.fixture
def session(spark, tmp_path):
    session = Session(spark, checkpoint=str(tmp_path), once=True)
    yield session
    session.stop()


def send(address, topic, values):
    producer = Producer({"bootstrap.servers": address})
    for value in values:
        producer.produce(topic, json.dumps(value).encode())
    producer.flush()


def received(address, topic):
    """The values of the one partition of a topic, to its end."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": topic, "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        messages = []
        while (message := consumer.poll(30)).error() is None:
            messages.append(json.loads(message.value()))
        return messages
    finally:
        consumer.close()


def test_json_goes_from_topic_to_topic_and_a_restart_goes_on(session, kafka, kafka_topic):
    source, target = kafka_topic(partitions=2), kafka_topic()
    send(kafka.bootstrap_servers, source, VIEWS[:4])
    where = f"'connector'='kafka', 'properties.bootstrap.servers'='{kafka.bootstrap_servers}'"
    session.execute(
        f"""
        CREATE TABLE views (
          user_id BIGINT, page STRING, viewtime TIMESTAMP(3), region STRING,
          partition_id INT METADATA FROM 'partition' VIRTUAL, big AS UPPER(region),
          WATERMARK FOR viewtime AS viewtime - INTERVAL '2' SECOND
        ) WITH ({where}, 'topic'='{source}', 'format'='json',
          'scan.startup.mode'='earliest-offset');
        CREATE TABLE pages (user_id BIGINT, page STRING, at TIMESTAMP(3), region STRING)
        WITH ({where}, 'topic'='{target}', 'format'='json');
        """
    )
    insert = "INSERT INTO pages SELECT user_id, page, viewtime, big FROM views WHERE user_id <> 1"
    assert session.execute(insert).wait(120)
    first = received(kafka.bootstrap_servers, target)
    assert sorted(row["page"] for row in first) == ["/p0", "/p2", "/p3"]
    assert first[0]["at"].startswith("2024-05-01 10:00:0")
    assert {row["region"] for row in first} == {"EU", "ASIA"}

    send(kafka.bootstrap_servers, source, VIEWS[4:])
    session._targets.clear()
    assert session.execute(insert).wait(120)
    again = received(kafka.bootstrap_servers, target)
    assert [row["page"] for row in again] == [*(row["page"] for row in first), "/p5"]
