"""The `avro-confluent` format on a real registry."""

import datetime as dt
import json
import random
from decimal import Decimal
from typing import ClassVar

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from streamcore import OptionError, RecordError
from streamcore.testing import decode, encode
from streamcore.testing.contracts import FormatContract
from streamcore.testing.ledger import scenario
from streamcore.types import arrow_schema
from streamcore_formats.avro.confluent import AvroConfluent
from streamcore_formats.avro.schema import parse
from streamcore_formats.avro.writing import DatumWriter

PEOPLE = {"name": "STRING", "age": "INT", "pay": "DECIMAL(8, 2)"}
ANN = {"name": "Ann", "age": 33, "pay": Decimal("1200.50")}


class TestAvroConfluent(FormatContract):
    plugin: ClassVar = None
    junk: ClassVar = (
        b"",
        b"\x00\x00\x00",
        b"\x01\x00\x00\x00\x01\x00",
        b"\x00\x7f\xff\xff\xff\x00",
    )
    examples: ClassVar = 10

    @pytest.fixture(autouse=True)
    def _use_the_registry(self, schema_registry):
        type(self).plugin = AvroConfluent(url=schema_registry.url, subject="contract")

    @classmethod
    def takes(cls, columns):
        cls.plugin = cls.plugin or AvroConfluent(url="http://127.0.0.1:1", subject="contract")
        return super().takes(columns)


@pytest.fixture
def client(schema_registry):
    return SchemaRegistryClient({"url": schema_registry.url})


@pytest.fixture
def options(schema_registry, subject):
    return {"url": schema_registry.url, "subject": subject}


def send(client, subject, avro, columns, rows, references=()):
    """Messages as another program would have written them."""
    text = json.dumps(avro)
    registered = client.register_schema(subject, Schema(text, "AVRO", list(references)))
    schema = arrow_schema(columns)
    header = b"\x00" + registered.to_bytes(4, "big")
    known = [client.get_version(r.subject, r.version).schema.schema_str for r in references]
    writer = DatumWriter(schema, parse(text, known), header)
    return writer.write(pa.RecordBatch.from_pylist(rows, schema=schema))


def record(*fields, name="Person"):
    plain = [
        {"name": field[0], "type": field[1], **({"default": field[2]} if len(field) > 2 else {})}
        for field in fields
    ]
    return {"type": "record", "name": name, "namespace": "com.example", "fields": plain}


# --- writing ------------------------------------------------------------------------------


def test_what_is_written_carries_the_id_of_its_schema(client, options, subject):
    schema = arrow_schema(PEOPLE)
    messages = encode("avro-confluent", schema, [ANN], options)
    latest = client.get_latest_version(subject)
    assert messages[0][:5] == b"\x00" + latest.schema_id.to_bytes(4, "big")
    assert json.loads(latest.schema.schema_str)["name"] == "record"
    assert decode("avro-confluent", schema, messages, options) == [("+I", ANN)]


def test_one_version_is_registered_however_often_it_is_written(client, options, subject):
    schema = arrow_schema(PEOPLE)
    for _ in range(3):
        encode("avro-confluent", schema, [ANN, ANN], options)
    assert client.get_versions(subject) == [1]


def test_a_schema_registered_before_is_used_as_it_is(client, options, subject):
    schema = arrow_schema(PEOPLE)
    encode("avro-confluent", schema, [ANN], options)
    text = client.get_latest_version(subject).schema.schema_str
    other = subject + "-b"
    before = client.register_schema(other, Schema(text, "AVRO"))
    messages = encode("avro-confluent", schema, [ANN], {**options, "subject": other})
    assert messages[0][1:5] == before.to_bytes(4, "big")
    assert client.get_versions(other) == [1]


def test_no_rows_register_nothing(client, options, subject):
    assert encode("avro-confluent", arrow_schema(PEOPLE), [], options) == []
    assert subject not in client.get_subjects()


def test_writing_needs_a_subject(schema_registry):
    with pytest.raises(OptionError, match=r"subject: required for writing, such as"):
        encode("avro-confluent", arrow_schema(PEOPLE), [ANN], {"url": schema_registry.url})


@pytest.mark.parametrize(
    ("given", "part", "expected"),
    [(None, "value", "t-value"), (None, "key", "t-key"), ("mine", "value", "mine")],
)
def test_the_subject_follows_the_topic_unless_it_is_given(given, part, expected):
    plugin = AvroConfluent(url="http://localhost:1", subject=given)
    assert plugin.written_to("t", part).subject == expected


# --- reading ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"", "0 bytes; the header with the schema id takes 5"),
        (b"\x00\x00\x00\x00", "4 bytes; the header"),
        (b"{\x22a\x22:1}", "starts with 0x7b instead of the magic byte 0x00"),
        (b"\x00\x7f\xff\xff\xff\x00", "schema id 2147483647 is not in the registry"),
    ],
)
def test_messages_without_a_known_schema_are_rejected(options, message, why):
    schema = arrow_schema({"a": "INT"})
    [good] = encode("avro-confluent", schema, [{"a": 1}], options)
    decoded = AvroConfluent(url=options["url"]).decoder(schema).decode([good, message, None, good])
    assert decoded.rows.to_pylist() == [{"a": 1}, {"a": 1}]
    assert [index for index, _ in decoded.rejected] == [1]
    assert why in decoded.rejected[0].reason
    assert decoded.origin.to_pylist() == [0, 3]


def test_a_rejection_names_schema_column_and_byte(options):
    schema = arrow_schema({"a": "INT", "b": "STRING"})
    [good] = encode("avro-confluent", schema, [{"a": 1, "b": "xyz"}], options)
    decoded = AvroConfluent(url=options["url"]).decoder(schema).decode([good[:-1]])
    identifier = int.from_bytes(good[1:5], "big")
    assert decoded.rejected[0].reason == (
        f"schema id {identifier}: 'b': value of 3 bytes at byte 9, but only 2 are left"
    )


def test_fields_are_matched_by_name_and_others_skipped_or_null(client, options, subject):
    theirs = record(
        ("age", "long"),
        ("tags", {"type": "map", "values": "string"}),
        ("name", "string"),
        ("kind", {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}),
    )
    columns = {
        "age": "BIGINT NOT NULL",
        "tags": "MAP<STRING, STRING NOT NULL> NOT NULL",
        "name": "STRING NOT NULL",
        "kind": "STRING NOT NULL",
    }
    sent = {"age": 5, "tags": {"a": "b"}, "name": "Bo", "kind": "B"}
    messages = send(client, subject, theirs, columns, [sent])
    wanted = arrow_schema({"name": "STRING", "missing": "INT", "kind": "STRING", "age": "DOUBLE"})
    rows = decode("avro-confluent", wanted, messages, options)
    assert rows == [("+I", {"name": "Bo", "missing": None, "kind": "B", "age": 5.0})]


def test_versions_may_alternate_within_a_batch(client, options, subject):
    first = record(("id", "int"), ("name", "string"), ("gone", "string"))
    second = record(("id", "long"), ("name", ["null", "string"]), ("extra", ["null", "int"], None))
    old = send(
        client,
        subject + "-1",
        first,
        {"id": "INT NOT NULL", "name": "STRING NOT NULL", "gone": "STRING NOT NULL"},
        [{"id": n, "name": f"old{n}", "gone": "x"} for n in range(0, 200, 2)],
    )
    new = send(
        client,
        subject + "-2",
        second,
        {"id": "BIGINT NOT NULL", "name": "STRING", "extra": "INT"},
        [{"id": n, "name": None, "extra": n} for n in range(1, 200, 2)],
    )
    mixed = [message for pair in zip(old, new, strict=True) for message in pair]
    mixed[50] = mixed[50] + b"!"
    wanted = arrow_schema({"extra": "INT", "id": "BIGINT", "name": "STRING"})
    decoded = AvroConfluent(url=options["url"]).decoder(wanted).decode(mixed)
    assert [index for index, _ in decoded.rejected] == [50]
    assert decoded.rows.to_pylist() == [
        {"extra": n, "id": n, "name": None}
        if n % 2
        else {"extra": None, "id": n, "name": f"old{n}"}
        for n in range(200)
        if n != 50
    ]
    assert decoded.origin.to_pylist() == [n for n in range(200) if n != 50]


VERSIONS = (
    ("int", "INT NOT NULL", lambda n: n),
    ("long", "BIGINT NOT NULL", lambda n: n),
    (["null", "long"], "BIGINT", lambda n: n if n % 3 else None),
    ("string", "STRING NOT NULL", lambda n: f"number {n}"),  # does not fit the table
)


@scenario(26, small={"messages": 500}, full={"messages": 100_000})
def test_schemas_in_any_order_give_exact_rows_and_one_that_does_not_fit_reasons(
    client, options, subject, scale
):
    dice = random.Random(scale.seed)
    drawn = [dice.randrange(len(VERSIONS)) for _ in range(scale.messages)]
    messages = {}
    for version, (avro, sql, value) in enumerate(VERSIONS):
        numbers = [n for n, each in enumerate(drawn) if each == version]
        columns = {"id": "INT NOT NULL", "a": sql}
        rows = [{"id": n, "a": value(n)} for n in numbers]
        sent = send(
            client, f"{subject}-{version}", record(("id", "int"), ("a", avro)), columns, rows
        )
        messages |= zip(numbers, sent, strict=True)
    decoder = AvroConfluent(url=options["url"]).decoder(arrow_schema({"id": "INT", "a": "BIGINT"}))
    for first in range(0, scale.messages, 5_000):
        batch = range(first, min(first + 5_000, scale.messages))
        decoded = decoder.decode([messages[n] for n in batch])
        assert [first + n for n, _ in decoded.rejected] == [n for n in batch if drawn[n] == 3]
        assert decoded.rows.to_pylist() == [
            {"id": n, "a": VERSIONS[drawn[n]][2](n)} for n in batch if drawn[n] != 3
        ]


def test_a_required_column_the_writer_does_not_have_is_named(client, options, subject):
    messages = send(client, subject, record(("a", "int")), {"a": "INT NOT NULL"}, [{"a": 1}])
    decoded = AvroConfluent(url=options["url"])
    decoded = decoded.decoder(arrow_schema({"b": "INT NOT NULL"})).decode(messages)
    assert "'b' is NOT NULL, and record 'com.example.Person' does not have it" in (
        decoded.rejected[0].reason
    )


MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL_MILLIS = {"type": "long", "logicalType": "local-timestamp-millis"}
DAY = {"type": "int", "logicalType": "date"}
MAY = dt.date(2024, 5, 6)
NOON = dt.time(12)
TIME_MILLIS = {"type": "int", "logicalType": "time-millis"}
TIME_MICROS = {"type": "long", "logicalType": "time-micros"}
SCALE_4 = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 4}
FIXED_5 = {"type": "fixed", "name": "d", "size": 5, "logicalType": "decimal", "precision": 9}
FIXED_3 = {"type": "fixed", "name": "h", "size": 3}
BEFORE_1970 = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
BEFORE_1970_IN_MILLIS = dt.datetime(1969, 12, 31, 23, 59, 59, 999000)


@pytest.mark.parametrize(
    ("theirs", "their_sql", "value", "sql", "expected"),
    [
        (
            MICROS,
            "TIMESTAMP(6)",
            BEFORE_1970,
            "TIMESTAMP(3)",
            BEFORE_1970.replace(microsecond=999000),
        ),
        (TIME_MICROS, "TIME(6)", dt.time(1, 2, 3, 456789), "TIME(3)", dt.time(1, 2, 3, 456000)),
        (SCALE_4, "DECIMAL(9, 4)", Decimal("1.2500"), "DECIMAL(5, 2)", Decimal("1.25")),
        (FIXED_5, "DECIMAL(9, 0)", Decimal("-77"), "DECIMAL(9, 2)", Decimal("-77.00")),
        (
            {"type": "fixed", "name": "h", "size": 3},
            "BYTES",
            b"\x00\x01\x02",
            "BYTES",
            b"\x00\x01\x02",
        ),
        ("bytes", "BYTES", "é".encode(), "STRING", "é"),
        ("string", "STRING", "é", "BYTES", "é".encode()),
        ("float", "FLOAT", 0.5, "DOUBLE", 0.5),
        (
            LOCAL_MILLIS,
            "TIMESTAMP(3)",
            BEFORE_1970_IN_MILLIS,
            "TIMESTAMP(3)",
            BEFORE_1970_IN_MILLIS,
        ),
        (DAY, "DATE", MAY, "INT", 19_849),
        ("int", "INT", 19_849, "DATE", MAY),
        ("long", "BIGINT", -1, "TIMESTAMP(3)", BEFORE_1970_IN_MILLIS),
        (SCALE_4, "DECIMAL(9, 4)", Decimal("1.2500"), "BYTES", b"\x30\xd4"),
    ],
)
def test_values_keep_their_meaning_in_another_type(
    client, options, subject, theirs, their_sql, value, sql, expected
):
    columns = {"a": f"{their_sql} NOT NULL"}
    messages = send(client, subject, record(("a", theirs)), columns, [{"a": value}])
    rows = decode("avro-confluent", arrow_schema({"a": sql}), messages, options)
    assert rows == [("+I", {"a": expected})]


@pytest.mark.parametrize(
    ("theirs", "their_sql", "value", "sql", "why"),
    [
        ("string", "STRING", "7", "INT", "'a': string cannot be read as int"),
        ("long", "BIGINT", 7, "INT", "'a': long cannot be read as int"),
        ("double", "DOUBLE", 7.0, "FLOAT", "'a': double cannot be read as float"),
        ("int", "INT", 7, "STRING", "'a': int cannot be read as string"),
        (["null", "int"], "INT", None, "INT NOT NULL", "'a': null, but it is NOT NULL"),
        (
            SCALE_4,
            "DECIMAL(9, 4)",
            Decimal("1.2345"),
            "DECIMAL(9, 2)",
            "does not fit DECIMAL(9, 2)",
        ),
        (DAY, "DATE", MAY, "TIMESTAMP(3)", "'a': date cannot be read as timestamp-millis"),
        (DAY, "DATE", MAY, "TIME(3)", "'a': date cannot be read as time-millis"),
        (TIME_MICROS, "TIME(6)", NOON, "TIMESTAMP(3)", "time-micros cannot be read as timestamp"),
        (TIME_MILLIS, "TIME(3)", NOON, "DATE", "'a': time-millis cannot be read as date"),
        (SCALE_4, "DECIMAL(9, 4)", Decimal("1.25"), "STRING", "decimal cannot be read as string"),
    ],
)
def test_what_would_change_a_value_is_rejected(
    client, options, subject, theirs, their_sql, value, sql, why
):
    columns = {"a": their_sql if isinstance(theirs, list) else f"{their_sql} NOT NULL"}
    messages = send(client, subject, record(("a", theirs)), columns, [{"a": value}])
    plugin = AvroConfluent(url=options["url"])
    decoded = plugin.decoder(arrow_schema({"a": sql})).decode(messages)
    assert why in decoded.rejected[0].reason


def test_a_union_of_several_types_is_read_where_the_branch_fits(client, options, subject):
    text = json.dumps(record(("a", ["null", "int", "string"])))
    identifier = client.register_schema(subject, Schema(text, "AVRO")).to_bytes(4, "big")
    messages = [b"\x00" + identifier + tail for tail in (b"\x00", b"\x04\x02x", b"\x02\x0e")]
    decoded = AvroConfluent(url=options["url"])
    decoded = decoded.decoder(arrow_schema({"a": "STRING"})).decode(messages)
    assert decoded.rows.to_pylist() == [{"a": None}, {"a": "x"}]
    assert "'a': int cannot be read as string" in decoded.rejected[0].reason


def test_types_of_other_subjects_are_followed(client, options, subject):
    address = {"type": "record", "name": "Address", "namespace": "com.example"}
    address["fields"] = [{"name": "city", "type": "string"}]
    client.register_schema(subject + "-address", Schema(json.dumps(address), "AVRO"))
    reference = SchemaReference("com.example.Address", subject + "-address", 1)
    columns = {"home": "ROW<city STRING NOT NULL> NOT NULL"}
    rows = [{"home": {"city": "Ulm"}}]
    person = record(("home", "com.example.Address"))
    messages = send(client, subject, person, columns, rows, [reference])
    wanted = arrow_schema({"home": "ROW<city STRING>"})
    assert decode("avro-confluent", wanted, messages, options) == [("+I", rows[0])]


def test_a_schema_that_is_not_avro_rejects_its_messages(client, options, subject):
    text = '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}'
    identifier = client.register_schema(subject, Schema(text, "JSON"))
    message = b"\x00" + identifier.to_bytes(4, "big") + b"{}"
    decoder = AvroConfluent(url=options["url"]).decoder(arrow_schema({"a": "INT"}))
    decoded = decoder.decode([message])
    assert decoded.rejected[0].reason == f"schema id {identifier} is JSON, not Avro"


# --- a schema of one's own ----------------------------------------------------------------

COLOURS = {
    "type": "record",
    "name": "Paint",
    "namespace": "com.example",
    "fields": [
        {
            "name": "colour",
            "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]},
        },
        {"name": "shade", "type": ["null", "com.example.Colour"], "default": None},
        {"name": "litres", "type": {"type": "fixed", "name": "L", "size": 4}},
    ],
}
PAINT = {"colour": "STRING NOT NULL", "shade": "STRING", "litres": "BYTES NOT NULL"}
RED = {"colour": "RED", "shade": None, "litres": b"1234"}
BLUE = {"colour": "BLUE", "shade": "RED", "litres": b"4321"}


def test_a_given_schema_is_registered_and_its_enums_are_text(client, options, subject):
    options |= {"schema": json.dumps(COLOURS)}
    messages = encode("avro-confluent", arrow_schema(PAINT), [RED, BLUE], options)
    assert json.loads(client.get_latest_version(subject).schema.schema_str) == COLOURS
    assert [m[5:] for m in messages] == [b"\x00\x001234", b"\x02\x02\x004321"]
    rows = decode("avro-confluent", arrow_schema(PAINT), messages, options)
    assert [row for _, row in rows] == [RED, BLUE]


@pytest.mark.parametrize(
    ("row", "trouble"),
    [
        ({**RED, "colour": "PINK"}, "row 1: 'colour': 'PINK' is not a symbol of enum"),
        ({**RED, "shade": "PINK"}, "row 1: 'shade': 'PINK' is not a symbol of enum"),
        ({**RED, "litres": b"12345"}, "row 1: 'litres': 5 bytes do not fit fixed"),
    ],
)
def test_values_outside_a_given_schema_are_refused_by_row_and_column(options, row, trouble):
    with pytest.raises(RecordError) as error:
        encode(
            "avro-confluent",
            arrow_schema(PAINT),
            [RED, row],
            {**options, "schema": json.dumps(COLOURS)},
        )
    assert str(error.value).startswith(trouble)


def test_aliases_and_defaults_of_a_given_schema_count(client, options, subject):
    theirs = record(("years", "int"))
    messages = send(client, subject, theirs, {"years": "INT NOT NULL"}, [{"years": 7}])
    mine = record(("age", "int"), ("name", "string", "nobody"), ("tags", _texts(), ["a"]))
    mine["fields"][0]["aliases"] = ["years"]
    columns = {"age": "INT NOT NULL", "name": "STRING NOT NULL"}
    columns |= {"tags": "ARRAY<STRING NOT NULL> NOT NULL"}
    options |= {"schema": json.dumps(mine)}
    rows = decode("avro-confluent", arrow_schema(columns), messages, options)
    assert rows == [("+I", {"age": 7, "name": "nobody", "tags": ["a"]})]


def _texts():
    return {"type": "array", "items": "string"}


def test_symbols_a_given_enum_does_not_know_become_its_default(client, options, subject):
    def enum(*symbols, **more):
        return {"type": "enum", "name": "E", "symbols": list(symbols), **more}

    theirs = record(("e", enum("A", "B")))
    messages = send(client, subject, theirs, {"e": "STRING NOT NULL"}, [{"e": "A"}, {"e": "B"}])
    schema = arrow_schema({"e": "STRING NOT NULL"})
    lenient = {**options, "schema": json.dumps(record(("e", enum("B", "?", default="?"))))}
    lenient["schema"] = lenient["schema"].replace('"?"', '"OTHER"')
    assert [r["e"] for _, r in decode("avro-confluent", schema, messages, lenient)] == [
        "OTHER",
        "B",
    ]
    strict = {**options, "schema": json.dumps(record(("e", enum("B"))))}
    with pytest.raises(RecordError, match="symbol 'A' is not in the reader's enum"):
        decode("avro-confluent", schema, messages, strict)


@pytest.mark.parametrize(
    ("avro", "trouble"),
    [
        ("int", "schema: is int, but a row needs a record"),
        (record(("b", "int")), "schema: has the fields b, but the table has the columns a"),
        (record(("a", "string")), "schema: 'a' is INT in the table, but STRING NOT NULL in the"),
        (record(("a", "int")), "schema: 'a' is INT in the table, but INT NOT NULL in the schema"),
        (record(("a", ["null", "int", "long"])), "but [null, int, long] in the schema"),
    ],
)
def test_a_given_schema_must_describe_the_table(options, avro, trouble):
    with pytest.raises(OptionError) as error:
        encode(
            "avro-confluent", arrow_schema({"a": "INT"}), [], options | {"schema": json.dumps(avro)}
        )
    assert trouble in str(error.value)


@pytest.mark.parametrize("sql", ["TIMESTAMP(6)", "TIMESTAMP_LTZ(3)", "TIME(6)", "MAP<INT, INT>"])
def test_types_the_derived_schema_has_no_room_for_are_refused(options, sql):
    with pytest.raises(OptionError, match=r"\n  a: "):
        decode("avro-confluent", arrow_schema({"a": sql}), [], options)
