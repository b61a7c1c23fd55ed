"""How tables become streams, on a real broker."""

import json

import pytest
from confluent_kafka import Producer
from streamcore_sql import Session


@pytest.fixture
def session(spark, tmp_path):
    session = Session(spark, checkpoint=str(tmp_path), once=True)
    yield session
    session.stop()


def send(address, topic, rows):
    producer = Producer({"bootstrap.servers": address})
    for partition, row in rows:
        producer.produce(topic, json.dumps(row).encode(), partition=partition)
    producer.flush()


def view(n, second):
    return {"id": n, "ts": f"2024-05-01 10:00:{second:02d}"}


def test_a_watermark_per_partition_waits_for_the_slowest(session, kafka, kafka_topic):
    topic = kafka_topic(partitions=2)
    fast = [(0, view(n, 30 + n)) for n in range(10)]
    slow = [(1, view(n, n)) for n in range(3)]
    options = "'scan.watermark.per-partition' = '{}', 'scan.max-rows-per-batch' = '4'"
    session.execute(
        f"""
        CREATE TABLE views (id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
        WITH ('connector' = 'kafka', 'topic' = '{topic}', 'format' = 'json',
              'properties.bootstrap.servers' = '{kafka.bootstrap_servers}',
              'scan.startup.mode' = 'earliest-offset')
        """
    )
    send(kafka.bootstrap_servers, topic, fast + slow)
    query = """SELECT window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE views
      /*+ OPTIONS({}) */, DESCRIPTOR(ts), INTERVAL '10' SECOND))
      GROUP BY window_start, window_end"""
    together = session.execute(query.format(options.format("false")))
    apart = session.execute(query.format(options.format("true")))
    closed = [change.row[1] for change in together]
    assert closed, "one watermark runs ahead with the fast partition and closes windows"
    assert [change.row for change in apart] == [], "the slow partition holds every window open"
