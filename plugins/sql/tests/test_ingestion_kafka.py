"""YAML jobs on a real broker: what is written, read back with another client."""

import json
import uuid

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from streamcore_sql import Session
from streamcore_sql.ingestion.planning import prepare_job

TABLES = {
    "orders": {"id": 1, "amount": 12.5, "status": "new"},
    "customers": {"id": 7, "name": "Ada", "vip": True},
    "items": {"id": 3, "order_id": 1, "sku": "x-1"},
    "payments": {"id": 9, "order_id": 1, "paid": 12.5},
    "audit": {"id": 4, "note": None},
}


def change(table, op, before=None, after=None, db="shop"):
    row = after or before
    key = json.dumps({"id": row["id"]}).encode()
    value = {"before": before, "after": after, "op": op, "source": {"db": db, "table": table}}
    return key, json.dumps(value).encode()


def send(kafka, topic, messages):
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for key, value in messages:
        producer.produce(topic, value, key)
    producer.flush()


def received(kafka, topic):
    """Every committed message of a topic as (key, value, headers), partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    partitions = sorted(consumer.list_topics(topic, 10).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    found = {number: [] for number in partitions}
    ended = 0
    try:
        while ended < len(partitions):
            message = consumer.poll(20)
            assert message is not None, "the topic gives no end"
            if message.error():
                ended += 1
                continue
            value = message.value()
            found[message.partition()].append(
                (
                    json.loads(message.key()) if message.key() else None,
                    json.loads(value) if value is not None else None,
                    dict(message.headers() or ()),
                )
            )
        return [message for number in partitions for message in found[number]]
    finally:
        consumer.close()


@pytest.fixture
def run(spark, kafka, tmp_path):
    """Runs a job over what is there now; a second call goes on where the first stopped."""
    sessions = []

    def run(text, *, wait=120, **variables):
        session = Session(
            spark,
            name="job",
            checkpoint=str(tmp_path / "checkpoint"),
            once=True,
            variables={"brokers": kafka.bootstrap_servers, **variables},
        )
        sessions.append(session)
        planned = prepare_job(session, text, "job.yaml", lambda: None)
        notes = planned.check()
        job = session.start(planned)
        assert job.wait(wait)
        return notes

    yield run
    for session in sessions:
        session.stop()


JOB = r"""
source:
  type: kafka
  name: Shop
  topic: ${source}
  properties.bootstrap.servers: ${brokers}
  scan.startup.mode: earliest-offset
  value.format: debezium-json
sink:
  type: upsert-kafka
  name: Upsert Kafka Sink
  properties.bootstrap.servers: ${brokers}
  sink.delivery-guarantee: ${guarantee}
  sink.add-tableId-to-header-enabled: true
  sink.custom-header: origin:shop
route:
  - source-table: shop.(\.*)
    sink-table: ${prefix}.$1
"""


def test_five_tables_of_one_topic_go_to_five_topics_and_a_restart_goes_on(run, kafka, kafka_topic):
    source, prefix = kafka_topic(partitions=2), f"ods-{uuid.uuid4().hex[:8]}"
    for table in TABLES:
        kafka.create_topic(f"{prefix}.{table}", 2, {})
    send(kafka, source, [change(table, "c", None, row) for table, row in TABLES.items()])
    order = TABLES["orders"]
    paid = {**order, "status": "paid"}
    more = [change("orders", "u", order, paid), change("items", "d", TABLES["items"])]
    send(kafka, source, [*more, (b'{"id": 3}', None)])

    run(JOB, source=source, prefix=prefix, guarantee="at-least-once")

    for table, row in TABLES.items():
        key, value, headers = received(kafka, f"{prefix}.{table}")[0]
        assert (key, value) == ({"id": row["id"]}, row)
        assert headers == {
            "origin": b"shop",
            "namespace": b"",
            "schemaName": prefix.encode(),
            "tableName": table.encode(),
        }
    assert [value for _, value, _ in received(kafka, f"{prefix}.orders")] == [order, paid]
    assert received(kafka, f"{prefix}.items")[-1][:2] == ({"id": 3}, None)

    send(kafka, source, [change("orders", "c", None, {"id": 2, "amount": 1, "new_column": "x"})])
    run(JOB, source=source, prefix=prefix, guarantee="at-least-once")

    values = [value for _, value, _ in received(kafka, f"{prefix}.orders")]
    assert sorted(values, key=str) == sorted(
        [order, paid, {"id": 2, "amount": 1, "new_column": "x"}], key=str
    )
