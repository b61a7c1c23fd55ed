"""The `debezium-avro-confluent` format on a real registry."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from streamcore import OptionError
from streamcore.testing import decode, encode
from streamcore.testing.contracts import FormatContract
from streamcore.types import arrow_schema
from streamcore_formats.avro.debezium import DebeziumAvroConfluent

DATA = Path(__file__).parent / "data"
PERSON = {"id": "BIGINT NOT NULL", "name": "STRING", "description": "STRING", "weight": "DOUBLE"}
LISI = {
    "id": 1,
    "name": "lisi",
    "description": "test debezium avro data",
    "weight": 21.799999237060547,
}
ZHANGSAN = {**LISI, "name": "zhangsan"}
FORMAT = "debezium-avro-confluent"


class TestDebeziumAvroConfluent(FormatContract):
    plugin: ClassVar = None
    junk: ClassVar = (b"\x00\x00\x00", b"\x01\x00\x00\x00\x01", b"\x00\x7f\xff\xff\xff\x00")
    examples: ClassVar = 10

    @pytest.fixture(autouse=True)
    def _use_the_registry(self, schema_registry):
        type(self).plugin = DebeziumAvroConfluent(url=schema_registry.url, subject="changes")

    @classmethod
    def takes(cls, columns):
        cls.plugin = cls.plugin or DebeziumAvroConfluent(
            url="http://127.0.0.1:1", subject="changes"
        )
        return super().takes(columns)


@pytest.fixture
def options(schema_registry, subject):
    return {"url": schema_registry.url, "subject": subject}


@pytest.fixture
def captured(schema_registry, subject):
    """Reads a message Debezium wrote, with the id its schema has in this registry."""
    client = SchemaRegistryClient({"url": schema_registry.url})
    text = (DATA / "debezium-test-schema.json").read_text()
    identifier = client.register_schema(subject, Schema(text, "AVRO"))

    def read(name: str) -> bytes:
        file = (DATA / name).read_bytes()
        assert (file[:5], file[-1:]) == (b"\x00\x00\x00\x00\x51", b"\n")
        return b"\x00" + identifier.to_bytes(4, "big") + file[5:-1]  # the newline is the file's

    return read


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("debezium-avro-insert.avro", [("+I", LISI)]),
        ("debezium-avro-update.avro", [("-U", LISI), ("+U", ZHANGSAN)]),
        ("debezium-avro-delete.avro", [("-D", ZHANGSAN)]),
    ],
)
def test_captured_messages_become_the_changes_they_stand_for(captured, options, name, changes):
    assert decode(FORMAT, arrow_schema(PERSON), [captured(name)], options) == changes


def test_several_changes_keep_their_order_and_their_messages(captured, options):
    insert, update, delete = (
        captured(f"debezium-avro-{what}.avro") for what in ("insert", "update", "delete")
    )
    schema = arrow_schema(PERSON)
    messages = [insert, None, update, b"", delete[:-3], delete]
    decoded = DebeziumAvroConfluent(url=options["url"]).decoder(schema).decode(messages)
    assert decoded.origin.to_pylist() == [0, 2, 2, 5]
    assert decoded.kinds.to_pylist() == [0, 1, 2, 3]
    assert decoded.rows.to_pylist() == [LISI, LISI, ZHANGSAN, ZHANGSAN]
    assert [index for index, _ in decoded.rejected] == [4]


def test_only_wanted_columns_come_back(captured, options):
    schema = arrow_schema(PERSON)
    plugin = DebeziumAvroConfluent(url=options["url"])
    update = captured("debezium-avro-update.avro")
    decoded = plugin.decoder(schema, ["weight", "name"]).decode([update])
    assert [list(row.values()) for row in decoded.rows.to_pylist()] == [
        [LISI["weight"], "lisi"],
        [LISI["weight"], "zhangsan"],
    ]
    assert plugin.decoder(schema, []).decode([update]).rows.num_rows == 2


def test_each_row_can_tell_its_table(captured, options):
    schema = arrow_schema(PERSON)
    decoder = DebeziumAvroConfluent(url=options["url"]).decoder(schema, ["name"], ["table"])
    messages = [captured(f"debezium-avro-{what}.avro") for what in ("insert", "update", "delete")]
    decoded = decoder.decode(messages)
    assert decoded.rows.to_pylist() == [
        {"name": name, "table": "test1.person"} for name in ("lisi", "lisi", "zhangsan", "zhangsan")
    ]


def test_a_message_that_does_not_tell_its_table_is_rejected_where_it_is_asked(
    schema_registry, options
):
    client = SchemaRegistryClient({"url": schema_registry.url})
    identifier = client.register_schema(options["subject"], Schema(json.dumps(ENVELOPE), "AVRO"))
    message = b"\x00" + identifier.to_bytes(4, "big") + b"\x00\x02\x0e\x02\x02c"
    schema = arrow_schema({"id": "BIGINT NOT NULL"})
    decoded = (
        DebeziumAvroConfluent(url=options["url"]).decoder(schema, None, ["table"]).decode([message])
    )
    assert decoded.rows.num_rows == 0
    assert decoded.rejected == [(0, "the message does not tell its table")]


def test_what_is_written_is_created_or_deleted_and_registered_as_a_nullable_record(
    schema_registry, options, subject
):
    schema = arrow_schema(PERSON)
    changes = [("+I", LISI), ("-U", LISI), ("+U", ZHANGSAN), ("-D", ZHANGSAN)]
    messages = encode(FORMAT, schema, changes, options)
    assert {message[5] for message in messages} == {2}
    assert decode(FORMAT, schema, messages, options) == [
        ("+I", LISI),
        ("-D", LISI),
        ("+I", ZHANGSAN),
        ("-D", ZHANGSAN),
    ]
    client = SchemaRegistryClient({"url": schema_registry.url})
    null, record = json.loads(client.get_latest_version(subject).schema.schema_str)
    names = [(field["name"], field["default"]) for field in record["fields"]]
    assert (null, record["name"], names) == (
        "null",
        "record",
        [("before", None), ("after", None), ("op", None)],
    )
    assert record["fields"][0]["type"][1]["name"] == "record_before"


ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {
            "name": "before",
            "type": [
                "null",
                {"type": "record", "name": "V", "fields": [{"name": "id", "type": "long"}]},
            ],
            "default": None,
        },
        {"name": "after", "type": ["null", "V"], "default": None},
        {"name": "op", "type": ["null", "string"], "default": None},
    ],
}


def nullable(**changed: Any) -> list[Any]:
    fields = [{**f, "type": changed.get(f["name"], f["type"])} for f in ENVELOPE["fields"]]
    return ["null", {**ENVELOPE, "fields": fields}]


@pytest.mark.parametrize(
    ("op", "before", "after", "why"),
    [
        ("x", True, True, "'op' is 'x', not one of c, r, u, d"),
        (None, True, True, "'op' is null"),
        ("u", False, True, "'before' is null with op 'u'; a PostgreSQL table needs REPLICA"),
        ("d", False, True, "'before' is null with op 'd'; a PostgreSQL table needs REPLICA"),
        ("c", True, False, "'after' is null with op 'c'"),
        ("u", True, False, "'after' is null with op 'u'"),
    ],
)
def test_envelopes_that_say_nothing_are_rejected(schema_registry, options, op, before, after, why):
    client = SchemaRegistryClient({"url": schema_registry.url})
    identifier = client.register_schema(options["subject"], Schema(json.dumps(ENVELOPE), "AVRO"))
    row = {True: b"\x02\x0e", False: b"\x00"}
    tail = b"\x00" if op is None else b"\x02\x02" + op.encode()
    message = b"\x00" + identifier.to_bytes(4, "big") + row[before] + row[after] + tail
    schema = arrow_schema({"id": "BIGINT NOT NULL"})
    decoded = DebeziumAvroConfluent(url=options["url"]).decoder(schema).decode([message])
    assert decoded.rows.num_rows == 0
    assert why in decoded.rejected[0].reason


def test_snapshots_are_inserts(schema_registry, options):
    client = SchemaRegistryClient({"url": schema_registry.url})
    identifier = client.register_schema(options["subject"], Schema(json.dumps(ENVELOPE), "AVRO"))
    message = b"\x00" + identifier.to_bytes(4, "big") + b"\x00\x02\x0e\x02\x02r"
    schema = arrow_schema({"id": "BIGINT NOT NULL"})
    assert decode(FORMAT, schema, [message], options) == [("+I", {"id": 7})]


def test_a_given_schema_is_used(options):
    schema = arrow_schema({"id": "BIGINT NOT NULL"})
    options |= {"schema": json.dumps(nullable())}
    changes = [("+I", {"id": 1}), ("-D", {"id": 2})]
    assert decode(FORMAT, schema, encode(FORMAT, schema, changes, options), options) == changes


@pytest.mark.parametrize(
    ("avro", "trouble"),
    [
        (ENVELOPE, "schema: is record 'Envelope', but must be a union of null and a record"),
        ("string", "schema: is string, but must be a union of null and a record"),
        (
            ["null", {**ENVELOPE, "fields": ENVELOPE["fields"][:2]}],
            "schema: has the fields before, after, but the table has the columns before, after, op",
        ),
        (nullable(op="string"), "schema: 'op' is STRING in the table, but STRING NOT NULL"),
        (nullable(after="V"), "schema: 'after' is ROW<`id` BIGINT NOT NULL> in the table, but"),
    ],
)
def test_a_given_schema_must_be_a_nullable_envelope_of_the_table(options, avro, trouble):
    schema = arrow_schema({"id": "BIGINT NOT NULL"})
    with pytest.raises(OptionError) as error:
        encode(FORMAT, schema, [], {**options, "schema": json.dumps(avro)})
    assert trouble in str(error.value)


def test_a_column_that_does_not_fit_is_named_once(options):
    with pytest.raises(OptionError) as error:
        encode(FORMAT, arrow_schema({"a": "TIMESTAMP_LTZ(3)"}), [], options)
    assert str(error.value).count("a: the legacy timestamp mapping has no TIMESTAMP_LTZ") == 1


def test_writing_needs_a_subject(schema_registry):
    schema = arrow_schema({"a": "INT"})
    with pytest.raises(OptionError, match="subject: required for writing"):
        encode(FORMAT, schema, [{"a": 1}], {"url": schema_registry.url})


def test_rows_without_kinds_are_inserts(options):
    schema = arrow_schema({"a": "INT"})
    plugin = DebeziumAvroConfluent(url=options["url"], subject=options["subject"])
    messages = plugin.encoder(schema).encode(pa.RecordBatch.from_pylist([{"a": 1}], schema=schema))
    assert decode(FORMAT, schema, messages, options) == [("+I", {"a": 1})]
