"""`streamcore infer` and `why`: tables from samples, reasons for messages."""

import json
import subprocess
import sys
import threading
import time
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from confluent_kafka import Producer
from streamcore.cli import main
from streamcore.testing import encode
from streamcore.testing.services.kinesis.address import ACCOUNT
from streamcore.types import arrow_schema
from streamcore_sql import Session, parse
from streamcore_sql.inference.avro_schema import avro_columns
from streamcore_sql.inference.detection import detect
from streamcore_sql.inference.sampling import Message
from streamcore_sql.inference.statement import create_table
from streamcore_sql.planner.binding import bind
from streamcore_sql.statements import PhysicalColumn

OPTIONS = {
    "connector": "kafka",
    "topic": "t",
    "properties.bootstrap.servers": "h:1",
    "scan.startup.mode": "earliest-offset",
}


def messages(values, keys=None):
    keys = keys or [None] * len(values)
    return [
        Message(key, value, f"t@0:{n}", datetime(2024, 5, 1), {})
        for n, (key, value) in enumerate(zip(keys, values, strict=True))
    ]


def guessed(*documents):
    return detect([json.dumps(each).encode() for each in documents])


def types(guess):
    return {column.name: column.type for column in guess.columns}


def test_json_documents_give_columns():
    guess = guessed(
        {
            "id": 1,
            "name": "a",
            "price": 1,
            "ok": True,
            "at": "2024-05-01 10:00:00.5",
            "tags": ["x"],
        },
        {"id": 2, "name": None, "price": 2.5, "day": "2024-05-01", "who": {"a b": 1}, "odd": 1},
        {"id": 3, "odd": "text", "empty": None},
    )
    assert guess.format == "json"
    assert types(guess) == {
        "id": "BIGINT",
        "name": "STRING",
        "price": "DOUBLE",
        "ok": "BOOLEAN",
        "at": "TIMESTAMP(3)",
        "tags": "ARRAY<STRING>",
        "day": "DATE",
        "who": "ROW<`a b` BIGINT>",
        "odd": "STRING",
        "empty": "STRING",
    }
    doubts = {column.name: column.doubt for column in guess.columns}
    assert doubts["odd"] == "the sample has BIGINT, STRING"
    assert doubts["empty"] == "always null in the sample"


def test_timestamps_in_iso_form_set_the_option_and_mixed_ones_are_text():
    guess = guessed({"a": "2024-05-01T10:00:00Z"}, {"a": "2024-05-01T10:00:01.123456Z"})
    assert types(guess) == {"a": "TIMESTAMP_LTZ(6)"}
    assert guess.options == {"json.timestamp-format.standard": "ISO-8601"}
    mixed = guessed({"a": "2024-05-01T10:00:00", "b": "2024-05-01 10:00:00"})
    assert types(mixed) == {"a": "TIMESTAMP(3)", "b": "STRING"}
    assert mixed.doubts


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"before": None, "after": {"id": 1}, "op": "c", "ts_ms": 1}, "debezium-json"),
        (
            {"schema": {}, "payload": {"before": None, "after": {"id": 1}, "op": "c"}},
            "debezium-json",
        ),
        ({"data": [{"id": 1}], "type": "INSERT", "es": 1, "database": "d", "ts": 1}, "canal-json"),
        ({"data": {"id": 1}, "type": "insert", "database": "d", "ts": 1}, "maxwell-json"),
        ({"op_type": "I", "op_ts": "x", "after": {"id": 1}}, "ogg-json"),
    ],
)
def test_change_events_are_told_from_rows(document, name):
    guess = guessed(document)
    assert guess.format == name
    assert types(guess) == {"id": "BIGINT"}


def test_csv_text_and_bytes():
    semicolons = detect([b"1;a;2.5", b"2;b;3"])
    assert (semicolons.format, semicolons.options) == ("csv", {"csv.field-delimiter": ";"})
    assert types(semicolons) == {"f1": "BIGINT", "f2": "STRING", "f3": "DOUBLE"}
    assert types(detect([b"hello", b"world"])) == {"payload": "STRING"}
    assert types(detect([b"\x80\x01", b"\xff"])) == {"payload": "BYTES"}
    assert "schema ids [7]" in detect([b"\0\0\0\0\x07abc"]).doubts[0]


def test_an_avro_schema_gives_columns():
    schema = {
        "type": "record",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "either", "type": ["int", "string"]},
        ],
    }
    name, columns = avro_columns(schema)
    assert name == "avro-confluent"
    assert [(label, kind) for label, kind, _ in columns] == [
        ("id", "BIGINT NOT NULL"),
        ("at", "TIMESTAMP(3)"),
        ("price", "DECIMAL(9, 0) NOT NULL"),
        ("tags", "ARRAY<STRING NOT NULL> NOT NULL"),
        ("either", "BYTES NOT NULL"),
    ]
    known = detect([b"\0\0\0\0\x07abc"], lambda number: {"schema": json.dumps(schema)})
    assert types(known)["id"] == "BIGINT NOT NULL"
    envelope = {"type": "record", "fields": [{"name": n, "type": ["null", schema]} for n in "xy"]}
    envelope["fields"] = [
        {"name": "before", "type": ["null", "string"]},
        {"name": "after", "type": ["null", schema]},
        {"name": "op", "type": "string"},
    ]
    assert avro_columns(envelope)[0] == "debezium-avro-confluent"


@pytest.mark.parametrize(
    ("values", "keys", "expected"),
    [
        ([b'{"id": 1, "ts": 1714550000000}'], None, "TO_TIMESTAMP_LTZ(`ts`, 3)"),
        ([b'{"id": 7, "a": "x"}'], [b"7"], "'key.fields' = 'id'"),
        ([b'{"id": 7}'], [b'{"id": 7}'], "'key.format' = 'json'"),
        ([b'{"id": 7}'], [b"other"], "`message_key` STRING"),
        ([b"1,2"], None, "'format' = 'csv'"),
        ([b'{"at": "2024-05-01 10:01:00"}', b'{"at": "2024-05-01 10:00:20"}'], None, "'1' MINUTE"),
        ([b'{"at": "2024-05-01 10:01:00", "n": 1}'] * 2, None, "0.0 s behind"),
        (
            [b'{"at": "2024-05-01 10:01:00"}', b'{"at": "2024-05-01 02:01:00"}'],
            None,
            "'60' MINUTE  -- the latest row in the sample was 8 h behind: windows would leave it",
        ),
    ],
)
def test_the_statement_runs_and_says_what_was_found(values, keys, expected):
    found = messages(values, keys)
    text = create_table("t", OPTIONS, detect(values), found)
    assert expected in text
    (statement,) = parse(text)
    bound = bind(statement)
    bound.check(writing=False)
    assert statement.watermark is not None


UPSERT = {"connector": "upsert-kafka", "topic": "t", "properties.bootstrap.servers": "h:1"}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b'{"id": 7}', "PRIMARY KEY (`id`) NOT ENFORCED"),
        (b"7", "PRIMARY KEY (`id`) NOT ENFORCED"),
        (b"other", "PRIMARY KEY (`message_key`) NOT ENFORCED"),
    ],
)
def test_a_table_of_upserts_has_the_key_of_its_messages(key, expected):
    values = [b'{"id": 7, "a": "x"}']
    text = create_table("t", UPSERT, detect(values), messages(values, [key]))
    assert expected in text
    (statement,) = parse(text)
    bind(statement).check(writing=False)


@pytest.mark.parametrize(
    ("document", "columns", "doubt"),
    [
        ({"id": 1, "Id": 2}, ["id"], "-- field 'Id' is left out: names ignore case, see 'id'"),
        ({"": 1, "id": 2}, ["id"], "-- a field without a name is left out"),
        ({"r": {"": 1, "x": 1, "X": 2}}, ["r"], "`r` ROW<`x` BIGINT>"),
        ({"Record_Time": "x"}, ["Record_Time"], "`_record_time` TIMESTAMP_LTZ(3)"),
        (
            {"x\nDROP TABLE t; --time": 1714550000000},
            ["x\nDROP TABLE t; --time"],
            "-- 'x\\nDROP TABLE t; --time' looks like milliseconds since 1970",
        ),
    ],
)
def test_names_of_fields_never_break_the_statement(document, columns, doubt):
    values = [json.dumps(document).encode()]
    text = create_table("t", OPTIONS, detect(values), messages(values))
    assert doubt in text
    (statement,) = parse(text)
    bind(statement).check(writing=False)
    physical = [c.name for c in statement.columns if isinstance(c, PhysicalColumn)]
    assert physical == columns


def test_secrets_are_not_printed():
    given = {**OPTIONS, "properties.sasl.password": "hunter2", "url": "http://me:hunter2@host"}
    values = [b'{"id": 1}']
    text = create_table("t", given, detect(values), messages(values))
    assert "hunter2" not in text
    assert "'http://***@host'" in text
    assert "-- fill in" in text


# --- on a real broker ------------------------------------------------------------------------


def test_brokers_to_ask_are_asked_for(capsys):
    assert main(["infer", "orders"]) == 2
    assert "give --servers HOST:PORT" in capsys.readouterr().err


def test_a_broker_that_is_away_is_told_in_one_sentence():
    """In a process of its own: here a handler of the tests would take what is logged."""
    soon = "properties.socket.connection.setup.timeout.ms=2000"
    command = [sys.executable, "-m", "streamcore.cli", "infer", "t", "--servers", "127.0.0.1:1"]
    ended = subprocess.run([*command, "--option", soon], capture_output=True, text=True)
    assert ended.returncode == 1
    (told,) = ended.stderr.splitlines()
    assert told.startswith("streamcore: Kafka broker 127.0.0.1:1 does not answer: ")


def test_a_topic_becomes_a_table_and_a_bad_message_its_reason(kafka, kafka_topic, capsys, tmp_path):
    topic = kafka_topic()
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for n in range(3):
        row = {"id": n, "at": f"2024-05-01 10:00:0{n}", "note": "fine"}
        producer.produce(topic, json.dumps(row).encode(), str(n).encode())
    producer.flush()
    assert main(["infer", topic, "--servers", kafka.bootstrap_servers, "--table", "seen"]) == 0
    text = capsys.readouterr().out
    assert "'key.format' = 'csv'" in text
    script = tmp_path / "seen.sql"
    script.write_text(text)
    Session().execute(text)

    assert main(["why", "seen", f"{topic}@0:1", "--script", str(script)]) == 0
    assert "'id': 1" in capsys.readouterr().out
    producer.produce(topic, b'{"id": 3, "at": "2024-05-01T10:00:03"}', b"3", headers={"h": b"x"})
    producer.flush()
    assert main(["why", "seen", f"{topic}@0:3", "--script", str(script)]) == 1
    told = capsys.readouterr().out
    assert "header   h = (1 bytes) x" in told
    assert "cannot be read" in told
    assert "'value.json.timestamp-format.standard' = 'ISO-8601' reads it" in told
    assert main(["why", "seen", f"{topic}@0:99", "--script", str(script)]) == 1
    told = capsys.readouterr().err
    assert "no message at" in told
    assert "data-loss" not in told
    assert main(["infer", topic, "--servers", kafka.bootstrap_servers]) == 0
    assert "MAP<STRING, BYTES> METADATA FROM 'headers' VIRTUAL,  -- seen: 'h'" in (
        capsys.readouterr().out
    )
    assert main(["why", "seen", "nonsense", "--script", str(script)]) == 2


def test_a_message_of_an_upsert_table_is_read_as_that_table_does(
    kafka, kafka_topic, capsys, tmp_path
):
    topic = kafka_topic()
    servers = kafka.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, b'{"id": 1, "name": "a"}', b'{"id": 1}')
    producer.flush()
    assert main(["infer", topic, "--servers", servers, "--connector", "upsert-kafka"]) == 0
    text = capsys.readouterr().out
    assert "PRIMARY KEY (`id`) NOT ENFORCED" in text
    Session().execute(text)
    script = tmp_path / "people.sql"
    script.write_text(
        f"""CREATE TABLE people (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
        'connector' = 'upsert-kafka', 'topic' = '{topic}', 'key.format' = 'json',
        'value.format' = 'json', 'properties.bootstrap.servers' = '{servers}',
        'changelog.normalize' = 'true', 'sink.buffer-flush.max-rows' = '10',
        'sink.buffer-flush.interval' = '1 s');
        CREATE TABLE many (id BIGINT) WITH ('connector' = 'kafka', 'topic-pattern' = '{topic}.*',
        'format' = 'json', 'properties.bootstrap.servers' = '{servers}')"""
    )
    assert main(["why", "people", f"{topic}@0:0", "--script", str(script), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["message"]["position"] == f"{topic}@0:0"
    assert [(each["part"], each["rows"]) for each in told["read"]] == [
        ("key", [{"id": 1}]),
        ("value", [{"id": 1, "name": "a"}]),
    ]
    assert main(["why", "many", f"{topic}@0:0", "--script", str(script)]) == 0


def test_a_registry_knows_the_columns(kafka, kafka_topic, schema_registry, capsys):
    topic, url = kafka_topic(), schema_registry.url
    written = {"url": url, "subject": f"{topic}-value"}
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for message in encode("avro-confluent", arrow_schema({"a": "INT"}), [{"a": 1}], written):
        producer.produce(topic, message)
    producer.flush()
    asked = ["infer", topic, "--servers", kafka.bootstrap_servers, "--registry", url]
    assert main([*asked, "--table", "t"]) == 0
    text = capsys.readouterr().out
    assert "CREATE TABLE `t` (\n  `a` INT,\n" in text
    assert f"'format' = 'avro-confluent',\n  'avro-confluent.url' = '{url}'" in text
    (statement,) = parse(text)
    bind(statement).check(writing=False)


def test_a_registry_that_asks_who_asks_is_told(kafka, kafka_topic, capsys, guarded_registry):
    topic = kafka_topic()
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(topic, b"\0\0\0\0\x07\x02")
    producer.flush()
    asked = ["infer", topic, "--servers", kafka.bootstrap_servers, "--registry", guarded_registry]
    assert main(asked) == 1
    assert "Say who asks: --option avro-confluent.basic-auth.user-info=" in capsys.readouterr().err
    user = "avro-confluent.basic-auth.user-info=me:hunter2"
    assert main([*asked, "--option", user, "--format", "json"]) == 0
    text = json.loads(capsys.readouterr().out)["statement"]
    assert "`id` BIGINT NOT NULL" in text
    assert f"'avro-confluent.url' = '{guarded_registry}'" in text
    assert "'avro-confluent.basic-auth.user-info' = '...'" in text
    assert "hunter2" not in text
    Session().execute(text)


@pytest.fixture
def guarded_registry():
    """Stands in for a registry with a password, which ours has not."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            known = self.headers["Authorization"] == "Basic bWU6aHVudGVyMg=="
            schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
            self.send_response(200 if known else 401)
            self.end_headers()
            self.wfile.write(json.dumps({"schema": json.dumps(schema)}).encode() if known else b"")

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_stream_becomes_a_table(kinesis, kinesis_stream, capsys):
    stream = kinesis_stream()
    kwargs = kinesis.client_kwargs
    records = [{"Data": b'{"id": %d}' % n, "PartitionKey": "k"} for n in range(3)]
    kinesis.client(direct=True).put_records(StreamName=stream, Records=records)
    arn = f"arn:aws:kinesis:{kwargs['region_name']}:{ACCOUNT}:stream/{stream}"
    options = {
        "aws.region": kwargs["region_name"],
        "aws.endpoint": kwargs["endpoint_url"],
        "aws.credentials.basic.accesskeyid": kwargs["aws_access_key_id"],
        "aws.credentials.basic.secretkey": kwargs["aws_secret_access_key"],
    }
    given = [text for key, value in options.items() for text in ("--option", f"{key}={value}")]
    for connector, source, place in (
        ("kinesis", arn, f"'stream.arn' = '{arn}'"),
        ("kinesis-legacy", stream, f"'stream' = '{stream}'"),
    ):
        deadline = time.monotonic() + 60
        while main(["infer", source, "--connector", connector, *given]) != 0:
            assert time.monotonic() < deadline, capsys.readouterr().err
            time.sleep(0.5)  # records lie behind the margin that a read keeps to the clock
        text = capsys.readouterr().out
        assert f"CREATE TABLE `{stream}` (\n  `id` BIGINT," in text
        assert place in text
        assert "'TRIM_HORIZON'" in text
        (statement,) = parse(text)
        bind(statement).check(writing=False)
    assert main(["infer", stream, "--connector", "kinesis", *given]) == 2
    assert f"arn:aws:kinesis:REGION:ACCOUNT:stream/{stream}" in capsys.readouterr().err
