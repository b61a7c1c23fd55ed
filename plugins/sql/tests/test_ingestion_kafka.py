"""YAML jobs on a real broker: what is written, read back with another client."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from streamcore.cli import main
from streamcore.testing.services.kinesis.address import ACCOUNT
from streamcore_sql import Session, SqlError
from streamcore_sql.ingestion.planning import prepare_job
from streamcore_sql.jobs import JobFailed

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
    return [message for found in by_partition(kafka, topic).values() for message in found]


def by_partition(kafka, topic):
    """Every committed message of a topic as (key, value, headers), by partition."""
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
        return found
    finally:
        consumer.close()


@pytest.fixture
def run(spark, kafka, tmp_path):
    """Runs a job over what is there now; a second call goes on where the first stopped."""
    sessions = []

    def run(text, *, wait=120, folder="checkpoint", **variables):
        session = Session(
            spark,
            name="job",
            checkpoint=str(tmp_path / folder),
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


JOB = (Path(__file__).parents[3] / "examples" / "ingestion" / "shop.yaml").read_text("utf-8")


PLAIN = """
source:
  type: kafka
  topic: ${source}
  properties.bootstrap.servers: ${brokers}
  scan.startup.mode: earliest-offset
  value.format: debezium-json
sink:
  type: kafka
  properties.bootstrap.servers: ${brokers}
  topic: ${target}
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


def test_a_job_that_is_killed_goes_on_and_writes_every_change_once(
    run, kafka, kafka_topic, tmp_path
):
    source, prefix = kafka_topic(partitions=2), f"eo-{uuid.uuid4().hex[:8]}"
    for table in TABLES:
        kafka.create_topic(f"{prefix}.{table}", 2, {})
    changes = [
        change(table, "c", None, {"id": number, "text": f"{table} {number}"})
        for number in range(250)
        for table in TABLES
    ]
    send(kafka, source, changes)
    file = tmp_path / "job.yaml"
    file.write_text(
        JOB.replace("scan.startup", "scan.max-rows-per-batch: 250\n  scan.startup")
        + "pipeline:\n  name: job\n"
    )
    given = {
        "brokers": kafka.bootstrap_servers,
        "source": source,
        "prefix": prefix,
        "guarantee": "exactly-once",
    }
    folder = tmp_path / "checkpoint"
    command = [
        sys.executable,
        "-m",
        "streamcore.cli",
        "run",
        str(file),
        "--checkpoint",
        str(folder),
    ]
    for name, value in given.items():
        command += ["--var", f"{name}={value}"]
    commits = folder / "tables" / "commits"
    log = (tmp_path / "log").open("w")
    process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        end = time.monotonic() + 200
        while not (commits.is_dir() and any(commits.glob("[1-9]"))):
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.05)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = len(list(commits.glob("[0-9]*")))
    assert done * 250 < len(changes), "it was over before it was killed"

    run(file.read_text(), **{key: given[key] for key in ("source", "prefix", "guarantee")})

    for table in TABLES:
        found = [value for _, value, _ in received(kafka, f"{prefix}.{table}")]
        assert len(found) == 250
        assert {value["id"] for value in found} == set(range(250))


def test_changes_become_debezium_messages_with_rules_applied(run, kafka, kafka_topic):
    source, target = kafka_topic(), kafka_topic(partitions=3)
    orders = [{"id": n, "amount": n * 10, "region": "eu" if n % 2 else "us"} for n in range(6)]
    send(kafka, source, [change("orders", "c", None, order) for order in orders])
    send(kafka, source, [change("items", "c", None, {"id": 1, "sku": "x"})])
    send(kafka, source, [change("orders", "u", orders[5], {**orders[5], "amount": 1})])
    job = (
        PLAIN
        + r"""  partition.strategy: hash-by-key
route:
  - source-table: shop.\.*
    sink-table: lake.<>
    replace-symbol: <>
transform:
  - source-table: shop.orders
    projection: id, amount, region, amount * 2 AS twice
    filter: amount >= 30
    partition-keys: region
"""
    )
    run(job, source=source, target=target)
    found = received(kafka, target)
    values = [value for _, value, _ in found]
    assert sorted(
        (v["op"], v["source"]["table"], (v["after"] or v["before"])["id"]) for v in values
    ) == [
        ("c", "items", 1),
        ("c", "orders", 3),
        ("c", "orders", 4),
        ("c", "orders", 5),
        ("d", "orders", 5),
    ]
    assert {v["after"]["twice"] for v in values if v["op"] == "c" and "twice" in v["after"]} == {
        60,
        80,
        100,
    }
    assert ({"TableId": "lake.items", "id": 1}) in [key for key, _, _ in found]
    of_eu = [v["op"] for v in values if (v["after"] or v["before"]).get("region") == "eu"]
    assert of_eu == ["c", "c", "d"], "rows of one region stay in order"


def test_tables_without_partition_keys_stay_in_the_first_partition(run, kafka, kafka_topic):
    source, target = kafka_topic(), kafka_topic(partitions=4)
    for n in range(8):
        send(kafka, source, [change("orders", "c", None, {"id": n, "region": f"r{n}"})])
        send(kafka, source, [change("items", "c", None, {"id": n})])
    job = PLAIN + "transform:\n  - source-table: shop.orders\n    partition-keys: region\n"
    run(job, source=source, target=target)
    found = {
        number: [(value["source"]["table"], value["after"]["id"]) for _, value, _ in messages]
        for number, messages in by_partition(kafka, target).items()
    }
    assert [row for row in found[0] if row[0] == "items"] == [("items", n) for n in range(8)]
    places = {place for place, rows in found.items() for table, _ in rows if table == "orders"}
    assert len(places) > 1


CHANGES = {
    "canal-json": [
        {"type": "INSERT", "data": [{"id": 1, "n": 1}], "old": None},
        {"type": "UPDATE", "data": [{"id": 1, "n": 2}], "old": [{"n": 1}]},
        {"type": "DELETE", "data": [{"id": 1, "n": 2}], "old": None},
    ],
    "maxwell-json": [
        {"type": "insert", "data": {"id": 1, "n": 1}},
        {"type": "update", "data": {"id": 1, "n": 2}, "old": {"n": 1}},
        {"type": "delete", "data": {"id": 1, "n": 2}},
    ],
    "ogg-json": [
        {"op_type": "I", "after": {"id": 1, "n": 1}},
        {"op_type": "U", "before": {"id": 1, "n": 1}, "after": {"id": 1, "n": 2}},
        {"op_type": "D", "before": {"id": 1, "n": 2}},
    ],
}
KEYS = {"canal-json": "pkNames", "maxwell-json": "primary_key_columns", "ogg-json": "primary_keys"}


@pytest.mark.parametrize("form", CHANGES)
def test_every_format_that_tells_its_table_is_read(run, kafka, kafka_topic, form):
    source, prefix = kafka_topic(), f"{form}-{uuid.uuid4().hex[:8]}"
    messages = []
    for table in ("orders", "items"):
        kafka.create_topic(f"{prefix}.{table}", 1, {})
        where = {"database": "shop", "table": table}
        told = {**({"table": f"shop.{table}"} if form == "ogg-json" else where), KEYS[form]: ["id"]}
        messages += [(None, json.dumps({**each, **told}).encode()) for each in CHANGES[form]]
    send(kafka, source, messages)
    job = JOB.replace("debezium-json", form) + "  - {source-table: shp.x, sink-table: x}\n"
    notes = run(job, source=source, prefix=prefix, guarantee="at-least-once")
    for table in ("orders", "items"):
        found = [message[:2] for message in received(kafka, f"{prefix}.{table}")]
        assert found == [
            ({"id": 1}, {"id": 1, "n": 1}),
            ({"id": 1}, {"id": 1, "n": 2}),
            ({"id": 1}, None),
        ]
    where = f"line {len(job.splitlines())}, column 20"
    told = f"job.yaml, {where}: route[2]: source-table: 'shp.x' matches no table known so far"
    assert told in notes


def test_a_projection_that_does_not_fit_the_rows_is_told_before_anything_starts(
    run, kafka, kafka_topic, tmp_path
):
    source, target = kafka_topic(), kafka_topic()
    send(kafka, source, [change("orders", "c", None, {"id": 1, "amount": 5})])
    job = PLAIN + "transform:\n  - source-table: shop.\\.*\n    projection: id, amuont * 2 AS n\n"
    with pytest.raises(SqlError) as caught:
        run(job, source=source, target=target)
    assert str(caught.value) == (
        "job.yaml, line 14, column 21: projection: no column called 'amuont'\n"
        "        projection: id, amuont * 2 AS n\n                        ^^^^^^\n"
        "Did you mean 'amount'?"
    )
    assert received(kafka, target) == []
    assert not (tmp_path / "checkpoint").exists()


def test_all_topics_that_are_missing_are_named(run, kafka, kafka_topic):
    source = kafka_topic()
    send(kafka, source, [change(table, "c", None, TABLES[table]) for table in ("orders", "items")])
    with pytest.raises(JobFailed) as caught:
        run(JOB, source=source, prefix="not-there", guarantee="at-least-once")
    told = "does not know the topics: 'not-there.items', 'not-there.orders'. Create them"
    assert told in str(caught.value)


def test_an_unwanted_column_stops_the_job_before_its_batch_is_written(run, kafka, kafka_topic):
    source, target = kafka_topic(), kafka_topic()
    job = JOB.replace("${prefix}.$1", "${prefix}") + (
        "pipeline:\n  schema.change.behavior: exception\n"
    )
    given = {"source": source, "prefix": target, "guarantee": "at-least-once"}
    send(kafka, source, [change("orders", "c", None, {"id": 1})])
    run(job, **given)
    send(kafka, source, [change("orders", "c", None, {"id": 2, "vip": True})])
    with pytest.raises(JobFailed, match="table 'shop.orders' has a new column 'vip' BOOLEAN"):
        run(job, **given)
    assert [value for _, value, _ in received(kafka, target)] == [{"id": 1}]
    run(job.replace("exception", "ignore"), **given)
    assert [value for _, value, _ in received(kafka, target)] == [{"id": 1}, {"id": 2}]


def test_a_source_whose_columns_are_declared_is_read_and_filtered_too(run, kafka, kafka_topic):
    source, target = kafka_topic(), kafka_topic()
    rows = [(1, {"id": 1, "n": 5}), (2, {"id": 2, "n": 50}), (2, {"id": 2, "n": 1}), (1, None)]
    send(
        kafka,
        source,
        [
            (json.dumps({"id": key}).encode(), None if row is None else json.dumps(row).encode())
            for key, row in rows
        ],
    )
    job = r"""
source:
  type: upsert-kafka
  topic: ${source}
  properties.bootstrap.servers: ${brokers}
  key.format: json
  value.format: json
  tables:
    - name: shop.stock
      columns: id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED
sink:
  type: upsert-kafka
  properties.bootstrap.servers: ${brokers}
route:
  - source-table: shop.stock
    sink-table: ${target}
transform:
  - source-table: shop.stock
    filter: n > 10
"""
    run(job, source=source, target=target)
    assert [(key["id"], value) for key, value, _ in received(kafka, target)] == [
        (1, None),
        (2, {"id": 2, "n": 50}),
        (2, None),
        (1, None),
    ]


@pytest.mark.parametrize(
    ("lacks", "told"),
    [
        (
            "broker",
            "Kafka broker 127.0.0.1:1 does not answer: Connect to ipv4#127.0.0.1:1 failed: "
            "Connection refused. Check 'properties.bootstrap.servers', that the broker is up, and "
            "that it can be reached from here.",
        ),
        ("topic", "topic 'not-there' does not exist at {}; create it or correct 'topic'."),
    ],
)
def test_what_is_not_there_is_told_in_one_paragraph_before_anything_starts(
    spark, kafka, tmp_path, monkeypatch, capfd, lacks, told
):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path / "state"))
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    brokers = "127.0.0.1:1" if lacks == "broker" else kafka.bootstrap_servers
    given = {"brokers": brokers, "source": "not-there", "prefix": "x", "guarantee": "at-least-once"}
    command = ["run", str(file), "--once"]
    for name, value in given.items():
        command += ["--var", f"{name}={value}"]
    assert main(command) == 1
    said = capfd.readouterr().err.splitlines()
    assert said[1:] == [f"streamcore: source: {told.format(brokers)}"]


AWS = """  aws.region: ${region}
  aws.endpoint: ${endpoint}
  aws.credentials.provider: basic
  aws.credentials.basic.accesskeyid: ${access}
  aws.credentials.basic.secretkey: ${secret}
"""


def test_kinesis_is_written_and_read(run, kafka, kafka_topic, kinesis, kinesis_stream):
    source, target, stream = kafka_topic(), kafka_topic(), kinesis_stream(shards=2)
    client = kinesis.client_kwargs
    given = {
        "region": client["region_name"],
        "endpoint": client["endpoint_url"],
        "access": client["aws_access_key_id"],
        "secret": client["aws_secret_access_key"],
        "arn": f"arn:aws:kinesis:{client['region_name']}:{ACCOUNT}:stream",
    }
    send(kafka, source, [change("orders", "c", None, {"id": n}) for n in range(5)])
    send(kafka, source, [change("orders", "d", {"id": 3})])
    to_kinesis = r"""
source:
  type: kafka
  topic: ${source}
  properties.bootstrap.servers: ${brokers}
  scan.startup.mode: earliest-offset
  value.format: debezium-json
sink:
  type: kinesis
  stream.arn: ${arn}/{table}
"""
    route = f"route:\n  - source-table: shop.orders\n    sink-table: {stream}\n"
    run(to_kinesis + AWS + route, source=source, **given)
    time.sleep(2)  # a batch stays a second behind the service's clock
    from_kinesis = r"""
source:
  type: kinesis
  stream.arn: ${arn}/${stream}
  source.init.position: TRIM_HORIZON
  format: debezium-json
"""
    rest = r"""
sink:
  type: upsert-kafka
  properties.bootstrap.servers: ${brokers}
route:
  - source-table: \.*
    sink-table: ${target}
transform:
  - source-table: \.*
    primary-keys: id
"""
    run(from_kinesis + AWS + rest, stream=stream, target=target, folder="back", **given)
    found = sorted((key["id"], value) for key, value, _ in received(kafka, target) if value)
    assert found == [(n, {"id": n}) for n in range(5)]
    assert ({"id": 3}, None, {}) in received(kafka, target)


def avro_change(identifier, table, after):
    """A created row as Debezium writes it in Avro: before, after, op, source."""

    def text(value):
        return bytes([2 * len(value)]) + value.encode()

    row = b"".join(text(v) if isinstance(v, str) else bytes([2 * v]) for v in after.values())
    source = text("shop") + text(table)
    return b"\x00" + identifier.to_bytes(4, "big") + b"\x00\x02" + row + text("c") + source


def envelope(columns):
    fields = [{"name": name, "type": kind} for name, kind in columns.items()]
    row = {"type": "record", "name": "Value", "fields": fields}
    where = [{"name": name, "type": "string"} for name in ("db", "table")]
    parts = {
        "before": ["null", row],
        "after": ["null", "Value"],
        "op": "string",
        "source": {"type": "record", "name": "Source", "fields": where},
    }
    fields = [{"name": name, "type": kind} for name, kind in parts.items()]
    return json.dumps({"type": "record", "name": "Envelope", "fields": fields})


def test_many_tables_of_one_topic_in_avro(run, kafka, kafka_topic, schema_registry, caplog):
    source, target = kafka_topic(), kafka_topic()
    registry = SchemaRegistryClient({"url": schema_registry.url})
    schemas = {
        "orders": {"id": "long", "state": "string"},
        "items": {"id": "long", "count": "int"},
        "other": {"id": "long"},
    }
    ids = {
        table: registry.register_schema(f"{source}-{table}", Schema(envelope(columns), "AVRO"))
        for table, columns in schemas.items()
    }
    rows = [
        ("orders", {"id": 1, "state": "new"}),
        ("items", {"id": 2, "count": 5}),
        ("other", {"id": 3}),
        ("orders", {"id": 4, "state": "old"}),
    ]
    send(kafka, source, [(None, avro_change(ids[table], table, row)) for table, row in rows])
    job = rf"""
source:
  type: kafka
  topic: {source}
  properties.bootstrap.servers: ${{brokers}}
  scan.startup.mode: earliest-offset
  value.format: debezium-avro-confluent
  value.debezium-avro-confluent.url: {schema_registry.url}
  tables:
    - name: shop.orders
      columns: id BIGINT, state STRING, PRIMARY KEY (id) NOT ENFORCED
    - name: shop.items
      columns: id BIGINT, count INT, PRIMARY KEY (id) NOT ENFORCED
sink:
  type: kafka
  properties.bootstrap.servers: ${{brokers}}
  topic: {target}
"""
    run(job)
    found = [(v["source"]["table"], v["after"]) for _, v, _ in received(kafka, target)]
    assert found == [row for row in rows if row[0] != "other"]
    assert "rows of 'shop.other' are left out: 'source.tables' does not name them" in caplog.text


def test_topics_without_table_names_are_tables_of_their_own(run, kafka, kafka_topic):
    orders, items, target = kafka_topic(), kafka_topic(), kafka_topic()
    send(kafka, orders, [(None, b'{"id": 1, "at": "2024-05-06 07:08:09.5", "extra": 1}')])
    send(kafka, items, [(None, b'{"id": 2, "sku": "x"}')])
    job = rf"""
source:
  type: kafka
  topic: {orders};{items}
  properties.bootstrap.servers: ${{brokers}}
  scan.startup.mode: earliest-offset
  value.format: json
  tables:
    - name: {orders}
      columns: id BIGINT, at TIMESTAMP(3)
    - name: {items}
      columns: id BIGINT, sku STRING
sink:
  type: kafka
  properties.bootstrap.servers: ${{brokers}}
  sink.tableId-to-topic.mapping: {orders}:{target};{items}:{target}
  value.format: canal-json
"""
    run(job)
    found = {value["table"]: (key, value["data"]) for key, value, _ in received(kafka, target)}
    assert found == {
        orders: (None, [{"id": 1, "at": "2024-05-06 07:08:09.5"}]),
        items: (None, [{"id": 2, "sku": "x"}]),
    }
