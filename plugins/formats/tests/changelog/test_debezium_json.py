"""`debezium-json`, behaviour by behaviour."""

from __future__ import annotations

import datetime as dt
import json

import pyarrow as pa
import pytest
from streamcore import OptionError
from streamcore.testing import decode, encode
from streamcore.testing.codec import build
from streamcore.types import arrow_field

FORMAT = "debezium-json"
INCLUDE = {"schema-include": "true"}
IGNORE = {"ignore-parse-errors": "true"}
UTC = dt.UTC

ROW = {"id": 111, "name": "scooter", "description": "Big 2-wheel scooter", "weight": 5.18}
NEW = {**ROW, "weight": 5.17}


def envelope(op, before=None, after=None, **others) -> bytes:
    return json.dumps({"before": before, "after": after, "op": op, **others}).encode()


def postgres(op, before=None, after=None) -> bytes:
    source = {
        "version": "2.7.0.Final",
        "connector": "postgresql",
        "name": "shop",
        "ts_ms": 1718000000123,
        "snapshot": "false",
        "db": "postgres",
        "sequence": None,
        "schema": "inventory",
        "table": "products",
        "txId": 570,
        "lsn": 23900936,
    }
    return envelope(op, before, after, source=source, ts_ms=1718000000456, transaction=None)


@pytest.mark.parametrize(
    ("name", "options"),
    [("debezium-data-schema-exclude", {}), ("debezium-data-schema-include", INCLUDE)],
)
def test_recorded_changes_give_the_recorded_rows_and_are_written_as_inserts_and_deletes(
    products, name, options
):
    rows = products.rows(FORMAT, products.messages(name), options)
    assert rows == products.expected(name)
    assert len(rows) == 20
    written = encode(FORMAT, products.schema, rows)
    assert written[0] == (
        b'{"before":null,"after":{"id":101,"name":"scooter",'
        b'"description":"Small 2-wheel scooter","weight":3.14},"op":"c"}'
    )
    assert written[9] == (
        b'{"before":{"id":106,"name":"hammer","description":"16oz carpenter\'s hammer",'
        b'"weight":1.0},"after":null,"op":"d"}'
    )
    again = products.rows(FORMAT, written)
    told = {"+I": "+I", "+U": "+I", "-U": "-D", "-D": "-D"}
    assert again == [(told[kind], row) for kind, row in rows]


def test_the_kafka_connectors_copy_of_the_data_reads_alike(products):
    rows = products.rows(FORMAT, products.messages("kafka/debezium-data-schema-exclude"))
    weights: dict[str, float] = {}
    for kind, row in rows:
        change = row["weight"] if kind in ("+I", "+U") else -row["weight"]
        weights[row["name"]] = round(weights.get(row["name"], 0) + change, 3)
    assert {name: weight for name, weight in weights.items() if weight} == {
        "scooter": 3.14,
        "car battery": 8.1,
        "12-pack drill bits": 0.8,
        "hammer": 2.625,
        "rocks": 5.1,
        "jacket": 0.6,
        "spare tire": 22.2,
    }


def test_every_operation_gives_its_kinds_in_order(products):
    messages = [
        envelope("c", None, ROW),
        envelope("r", None, ROW),
        envelope("u", ROW, NEW),
        envelope("d", NEW, None),
    ]
    decoded = build(FORMAT).decoder(products.schema).decode(messages)
    assert decoded.kinds.to_pylist() == [0, 0, 1, 2, 3]
    assert decoded.origin.to_pylist() == [0, 1, 2, 2, 3]
    rows = products.tuples(products.rows(FORMAT, messages))
    assert [(row[0], row[-1]) for row in rows] == [
        ("+I", 5.18),
        ("+I", 5.18),
        ("-U", 5.18),
        ("+U", 5.17),
        ("-D", 5.17),
    ]


@pytest.mark.parametrize("message", [None, b""])
@pytest.mark.parametrize("options", [{}, INCLUDE, IGNORE])
def test_tombstones_are_skipped(products, message, options):
    decoded = build(FORMAT, options).decoder(products.schema).decode([message])
    assert (decoded.rows.num_rows, list(decoded.rejected), decoded.ignored) == (0, [], 0)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (envelope("t"), "'op' is 't', not one of c, r, u, d"),
        (envelope("m"), "'op' is 'm', not one of c, r, u, d"),
        (envelope(""), "'op' is '', not one of c, r, u, d"),
        (envelope("cr", None, ROW), "'op' is 'cr', not one of c, r, u, d"),
        (b"{}", "'op' is null, not one of c, r, u, d"),
        (envelope("c"), "'after' is null in an insert"),
        (
            envelope("u", None, NEW),
            "'before' is null in an update; a Postgres table needs REPLICA IDENTITY FULL",
        ),
        (
            postgres("d", None, None),
            "'before' is null in a delete; a Postgres table needs REPLICA IDENTITY FULL",
        ),
        (b"[1]", "the message is an array, not an object"),
        (b'{"op":', "not JSON: expecting value at byte 6"),
        (
            envelope("u", ROW, {**NEW, "weight": "heavy"}),
            "in 'after': column 'weight': 'heavy' is not a FLOAT",
        ),
        (
            envelope("u", {"name": "no id"}, NEW),
            "in 'before': column 'id': NULL, but the column is NOT NULL",
        ),
        (envelope("c", None, [1]), "in 'after': expected an object, found an array"),
    ],
)
def test_what_is_no_change_is_rejected_whole_or_dropped(products, message, why):
    assert products.rejection(FORMAT, message) == why
    around = [envelope("c", None, ROW), message, envelope("c", None, ROW)]
    decoded = build(FORMAT, IGNORE).decoder(products.schema).decode(around)
    forgiven = "heavy" in why
    assert decoded.origin.to_pylist() == ([0, 1, 1, 2] if forgiven else [0, 2])
    assert decoded.ignored == (0 if forgiven else 1)


def test_a_bad_scalar_becomes_null_when_told_to_ignore(products):
    bad = {**NEW, "weight": "heavy"}
    rows = products.tuples(products.rows(FORMAT, [envelope("u", ROW, bad)], IGNORE))
    assert [(row[0], row[-1]) for row in rows] == [("-U", 5.18), ("+U", None)]


def test_a_partial_before_image_passes_with_nulls(products):
    rows = products.tuples(products.rows(FORMAT, [postgres("u", {"id": 111}, NEW)]))
    assert rows[0] == ("-U", 111, None, None, None)
    assert rows[1][:2] == ("+U", 111)


def test_a_payload_that_is_no_object_is_rejected(products):
    assert products.rejection(FORMAT, b'{"schema":{}}', INCLUDE) == (
        "'payload' is null, not an object"
    )


def test_metadata_of_mysql(products):
    told = products.metadata(FORMAT, products.messages("debezium-data-schema-exclude")[:1])
    [first] = told
    assert len(first.pop("source.properties")) == 14
    assert first == {
        "schema": None,
        "ingestion-timestamp": dt.datetime(2020, 5, 13, 7, 40, 6, 100000, UTC),
        "source.timestamp": dt.datetime(1970, 1, 1, tzinfo=UTC),
        "source.database": "inventory",
        "source.schema": None,
        "source.table": "products",
    }


def test_metadata_of_postgres_is_the_same_for_both_rows_of_an_update(products):
    before, after = products.metadata(FORMAT, [postgres("u", ROW, NEW)])
    assert before == after
    properties = after.pop("source.properties")
    assert len(properties) == 11
    assert (properties["txId"], properties["sequence"]) == ("570", None)
    assert after == {
        "schema": None,
        "ingestion-timestamp": dt.datetime(2024, 6, 10, 6, 13, 20, 456000, UTC),
        "source.timestamp": dt.datetime(2024, 6, 10, 6, 13, 20, 123000, UTC),
        "source.database": "postgres",
        "source.schema": "inventory",
        "source.table": "products",
    }


def test_the_included_schema_is_metadata(products):
    name = "debezium-data-schema-include"
    told = products.metadata(FORMAT, products.messages(name), INCLUDE)
    assert len(told) == 20
    assert all(each["schema"].startswith('{"type":"struct","fields":[') for each in told)
    assert told[0]["source.table"] == "products"


@pytest.mark.parametrize("keys", [["source.table"], ["source.table", "source.properties"]])
def test_metadata_alone_may_be_read_and_is_checked(products, keys):
    messages = [
        postgres("u", ROW, NEW),
        envelope("c", None, ROW),
        envelope("c", None, ROW, source=5),
    ]
    decoded = build(FORMAT).decoder(products.schema, [], keys).decode(messages)
    assert decoded.rows.schema.names == keys
    assert decoded.rows["source.table"].to_pylist() == ["products", "products", None]
    [rejected] = decoded.rejected
    assert (rejected.index, "found 5" in rejected.reason) == (2, True)


def test_a_projection_reads_only_its_columns(products):
    message = envelope("u", {"id": "x", "name": "a"}, {"id": "y", "name": "b"})
    decoded = build(FORMAT).decoder(products.schema, ["name"]).decode([message])
    assert decoded.rows.to_pylist() == [{"name": "a"}, {"name": "b"}]


def test_null_fields_and_the_null_side_can_be_left_out():
    schema = pa.schema([arrow_field("a", "INT"), arrow_field("b", "INT")])
    rows = [("+U", {"a": 1, "b": None}), ("-D", {"a": None, "b": 2})]
    assert encode(FORMAT, schema, rows, {"encode.ignore-null-fields": "true"}) == [
        b'{"after":{"a":1},"op":"c"}',
        b'{"before":{"b":2},"op":"d"}',
    ]


def test_large_batches_keep_rows_and_messages_together(products):
    messages = []
    for n in range(30_000):
        old, new = {**ROW, "id": n}, {**NEW, "id": n}
        messages.append(envelope("u", old, new) if n % 3 else envelope("c", None, new))
    messages[77] = b"{"
    decoded = build(FORMAT).decoder(products.schema).decode(messages)
    assert [r.index for r in decoded.rejected] == [77]
    assert decoded.rows["id"].to_pylist() == decoded.origin.to_pylist()
    assert decoded.rows.num_rows == 50_000 - 2


def test_writing_with_the_schema_included_is_refused(products):
    with pytest.raises(OptionError, match="schema-include: cannot be true for writing"):
        encode(FORMAT, products.schema, [], INCLUDE)
    assert decode(FORMAT, products.schema, [], INCLUDE) == []


@pytest.mark.parametrize(
    ("option", "text", "complaint"),
    [
        ("ignore-parse-errors", "abc", "'abc' is not true or false"),
        ("timestamp-format.standard", "test", "'test' is not one of SQL, ISO-8601"),
        ("map-null-key.mode", "invalid", "'invalid' is not one of FAIL, DROP, LITERAL"),
        ("fail-on-missing-field", "true", "unknown option"),
    ],
)
def test_a_bad_option_is_named(option, text, complaint):
    with pytest.raises(OptionError) as caught:
        build(FORMAT, {option: text})
    assert complaint in str(caught.value)


def test_it_is_a_changelog():
    assert build(FORMAT).changelog
