"""Changelogs end to end: Debezium in, aggregates with retraction, upserts out, and back again."""

import json
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from streamcore_sql import Session


@pytest.fixture
def session(spark, kafka, tmp_path):
    return Session(spark, name="changes", checkpoint=str(tmp_path), once=True)


def messages(servers, topic):
    """Key and value of every message, in order, as another client sees them."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "check"})
    found = []
    for partition in consumer.list_topics(topic).topics[topic].partitions:
        place = TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(place)
        consumer.assign([place])
        patience = time.monotonic() + 30
        while (at := consumer.position([place])[0].offset) < end:
            batch = consumer.consume(100, 0.1)
            assert time.monotonic() < patience, f"nothing came after offset {at} of {end}"
            found += [
                (json.loads(m.key()), m.value() and json.loads(m.value()))
                for m in batch
                if m.error() is None
            ]
    consumer.close()
    return found


def table(found):
    """What a table with that history holds."""
    rows = {}
    for key, value in found:
        rows[json.dumps(key)] = value
    return [value for value in rows.values() if value is not None]


def change(op, before=None, after=None):
    return json.dumps({"before": before, "after": after, "op": op}).encode()


def product(n, name, weight):
    return {"id": n, "name": name, "weight": weight}


def test_a_debezium_topic_becomes_sums_that_follow_updates_and_deletes(kafka, kafka_topic, session):
    servers, source, target = kafka.bootstrap_servers, kafka_topic(1), kafka_topic(1)
    producer = Producer({"bootstrap.servers": servers})
    for value in (
        change("c", None, product(1, "rock", 5)),
        change("c", None, product(2, "rock", 7)),
        change("c", None, product(3, "hat", 1)),
        change("u", product(2, "rock", 7), product(2, "rock", 2)),
        change("d", product(3, "hat", 1)),
        change("u", product(1, "rock", 5), product(1, "coat", 6)),
    ):
        producer.produce(source, value)
    producer.flush()
    job = session.execute(f"""
        CREATE TABLE products (id INT, name STRING, weight BIGINT, PRIMARY KEY (id) NOT ENFORCED)
        WITH ('connector' = 'kafka', 'topic' = '{source}', 'scan.startup.mode' = 'earliest-offset',
              'properties.bootstrap.servers' = '{servers}', 'format' = 'debezium-json');
        CREATE TABLE weights (name STRING, n BIGINT, total BIGINT, mean DOUBLE,
                              PRIMARY KEY (name) NOT ENFORCED)
        WITH ('connector' = 'upsert-kafka', 'topic' = '{target}',
              'properties.bootstrap.servers' = '{servers}',
              'key.format' = 'json', 'value.format' = 'json');
        INSERT INTO weights SELECT name, COUNT(*), SUM(weight), AVG(weight)
        FROM products GROUP BY name;
    """)
    job.wait(120)
    assert sorted(table(messages(servers, target)), key=lambda row: row["name"]) == [
        {"name": "coat", "n": 1, "total": 6, "mean": 6.0},
        {"name": "rock", "n": 1, "total": 2, "mean": 2.0},
    ]


def test_upserts_are_normalised_across_batches_and_restarts(kafka, kafka_topic, spark, tmp_path):
    servers, source, target = kafka.bootstrap_servers, kafka_topic(2), kafka_topic(1)
    producer = Producer({"bootstrap.servers": servers})

    def put(key, value):
        payload = None if value is None else json.dumps({"id": key, "v": value}).encode()
        producer.produce(source, payload, json.dumps({"id": key}).encode())
        producer.flush()

    script = f"""
        CREATE TABLE latest (id INT, v STRING, PRIMARY KEY (id) NOT ENFORCED)
        WITH ('connector' = 'upsert-kafka', 'topic' = '{source}', 'changelog.normalize' = 'true',
              'properties.bootstrap.servers' = '{servers}',
              'key.format' = 'json', 'value.format' = 'json');
        CREATE TABLE history (id INT, v STRING)
        WITH ('connector' = 'kafka', 'topic' = '{target}', 'key.format' = 'json',
              'key.fields' = 'id', 'properties.bootstrap.servers' = '{servers}',
              'value.format' = 'maxwell-json');
    """
    insert = "INSERT INTO history SELECT id, v FROM latest"
    for batch in (
        [(1, "a"), (2, "b"), (4, None)],
        [(1, "a"), (2, "c"), (3, "d")],
        [(2, None), (3, "e"), (3, "f"), (5, None)],
    ):
        for key, value in batch:
            put(key, value)
        session = Session(spark, name="normalise", checkpoint=str(tmp_path), once=True)
        session.execute(script + insert).wait(120)
    told = [(v["type"], v["data"]["id"], v["data"]["v"]) for _, v in messages(servers, target)]
    assert [each for each in told if each[1] == 1] == [("insert", 1, "a")]
    assert [each for each in told if each[1] == 2] == [
        ("insert", 2, "b"),
        ("delete", 2, "b"),
        ("insert", 2, "c"),
        ("delete", 2, "c"),
    ]
    assert [each for each in told if each[1] == 3] == [
        ("insert", 3, "d"),
        ("delete", 3, "d"),
        ("insert", 3, "f"),
    ]
    assert len(told) == 8
