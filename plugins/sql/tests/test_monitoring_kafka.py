"""The figures of real jobs on a real broker, from the handle to the scraper."""

import json
import time

import pytest
from confluent_kafka import Producer
from streamcore_sql import Session

CANARY = "canary-hunter2-secret"


def send(address, topic, values):
    producer = Producer({"bootstrap.servers": address})
    for value in values:
        producer.produce(topic, value)
    producer.flush()


@pytest.fixture
def job(spark, kafka, kafka_topic, tmp_path):
    """A job over 40 rows of two partitions, with three records that are no rows."""
    source, target, letters = kafka_topic(2), kafka_topic(), kafka_topic()
    good = [b'{"id":%d}' % n for n in range(40)]
    send(kafka.bootstrap_servers, source, [*good, b"{", b"[", b"{"])
    where = f"'connector'='kafka', 'properties.bootstrap.servers'='{kafka.bootstrap_servers}'"
    session = Session(spark, name="orders", checkpoint=str(tmp_path), secrets={"pw": CANARY})
    session.execute(
        f"""
        CREATE TABLE orders (id BIGINT) WITH ({where}, 'topic'='{source}', 'format'='json',
          'scan.startup.mode'='earliest-offset', 'properties.group.id'='{source}-group',
          'properties.client.id'='${{secret_values.pw}}',
          'scan.max-rows-per-batch'='10',
          'scan.deser.failure-handler'='dead-letter', 'scan.deser.failure-topic'='{letters}');
        CREATE TABLE copies (id BIGINT) WITH ({where}, 'topic'='{target}', 'format'='json',
          'sink.delivery-guarantee'='exactly-once', 'sink.transactional-id-prefix'='{target}');
        """
    )
    running = session.execute("INSERT INTO copies SELECT id FROM orders")
    yield running, source, len(b"".join(good)) + 3
    session.stop()


def until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


def test_the_handle_tells_every_figure_of_source_and_sink(job):
    running, topic, size = job
    assert until(lambda: running.metrics().source("orders").get("numRecordsIn") == 43)
    assert until(lambda: running.metrics().source("orders").get("pendingRecords") == 0)
    found = running.metrics()
    source, sink = found.source("orders"), found.sink("copies")
    print(json.dumps(found.to_json(), indent=1))
    assert source["numBytesIn"] == size
    assert source["numRecordsInPerSecond"] > 0
    assert source["numBytesInPerSecond"] > 0
    assert 0 <= source["currentFetchEventTimeLag"] <= source["currentEmitEventTimeLag"] < 600_000
    assert source["sourceIdleTime"] >= 0
    assert source["numRecordsDeadLettered"] == 3
    assert source["numRecordsSkipped"] == 0
    assert source["numFailedCommits"] == 0
    assert {(lag.topic, lag.place, lag.rows) for lag in source.lags} == {
        (topic, "0", 0),
        (topic, "1", 0),
    }
    assert sink["numRecordsOut"] == 40
    assert sink["numBytesOut"] == size - 3
    assert sink["currentSendTime"] > 0
    assert 4 <= sink["numTransactions"] <= 10
    assert sink["numRetries"] == 0
    assert found["numBatches"] >= 4
    assert {"addBatch", "latestOffset"} <= set(found.phases)
    assert len(running.monitor.notes()) == 3
    assert CANARY not in repr((found.to_json(), running.monitor.about, running.monitor.notes()))
