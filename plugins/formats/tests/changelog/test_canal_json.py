"""`canal-json`, behaviour by behaviour."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from streamcore import OptionError
from streamcore.testing import encode
from streamcore.testing.codec import build

FORMAT = "canal-json"
IGNORE = {"ignore-parse-errors": "true"}


def row(number: int, name: str | None = "n", weight: str | None = "1.5") -> dict:
    return {"id": str(number), "name": name, "description": None, "weight": weight}


def envelope(change, data, old=None, **others) -> bytes:
    body = {"data": data, "old": old, "type": change, "database": "mydb", "table": "product"}
    return json.dumps({**body, **others}).encode()


def test_recorded_changes_give_the_recorded_rows_and_are_written_as_inserts_and_deletes(products):
    rows = products.rows(FORMAT, products.messages("canal-data"))
    assert rows == products.expected("canal-data")
    assert len(rows) == 26
    written = encode(FORMAT, products.schema, rows)
    assert written[0] == (
        b'{"data":[{"id":101,"name":"scooter","description":"Small 2-wheel scooter",'
        b'"weight":3.14}],"type":"INSERT"}'
    )
    assert written[-1].endswith(b'"type":"DELETE"}')
    told = {"+I": "+I", "+U": "+I", "-U": "-D", "-D": "-D"}
    assert products.rows(FORMAT, written) == [(told[kind], each) for kind, each in rows]


def test_an_explicit_null_in_old_means_the_value_was_null(products):
    message = envelope("UPDATE", [row(106, "hammer")], [{"name": None}])
    rows = products.tuples(products.rows(FORMAT, [message]))
    assert rows == [("-U", 106, None, None, 1.5), ("+U", 106, "hammer", None, 1.5)]


def test_what_an_element_of_old_lacks_comes_from_its_own_row(products):
    data = [row(1, "one", "10"), row(2, "two", "20")]
    message = envelope("UPDATE", data, [{"weight": "11"}, {"name": "zwei"}])
    assert products.tuples(products.rows(FORMAT, [message])) == [
        ("-U", 1, "one", None, 11.0),
        ("+U", 1, "one", None, 10.0),
        ("-U", 2, "zwei", None, 20.0),
        ("+U", 2, "two", None, 20.0),
    ]


def test_many_rows_of_one_message_keep_their_order_and_origin(products):
    messages = [
        envelope("INSERT", [row(1), row(2)]),
        envelope("DELETE", [row(1), row(2)]),
        envelope("INSERT", []),
    ]
    decoded = build(FORMAT).decoder(products.schema).decode(messages)
    assert decoded.rows["id"].to_pylist() == [1, 2, 1, 2]
    assert decoded.kinds.to_pylist() == [0, 0, 3, 3]
    assert decoded.origin.to_pylist() == [0, 0, 1, 1]


def test_values_may_also_be_numbers(products):
    message = envelope("INSERT", [{"id": 1, "name": 2.50, "weight": 3}])
    assert products.tuples(products.rows(FORMAT, [message])) == [("+I", 1, "2.5", None, 3.0)]


def test_filters_take_whole_names_and_skip_silently(products):
    messages = [
        envelope("INSERT", [row(1)]),
        envelope("INSERT", [row(2)], table="orders"),
        envelope("INSERT", [row(3)], database="yourdb"),
        envelope("INSERT", [{"id": "no number"}], database="yourdb"),
        envelope("TRUNCATE", None, database="yourdb"),
    ]
    options = {"database.include": "^my.*", "table.include": "^prod.*"}
    for keys in ([], ["database", "table"]):
        decoder = build(FORMAT, options).decoder(products.schema, None, keys)
        decoded = decoder.decode(messages)
        assert decoded.rows["id"].to_pylist() == [1]
        assert decoded.origin.to_pylist() == [0]
        assert (list(decoded.rejected), decoded.ignored) == ([], 0)
    partly = build(FORMAT, {"table.include": "prod"}).decoder(products.schema).decode(messages)
    assert partly.rows.num_rows == 0


def test_a_filtered_name_that_is_missing_is_an_error(products):
    message = json.dumps({"data": [row(1)], "type": "INSERT"}).encode()
    assert products.rejection(FORMAT, message, {"table.include": ".*"}) == (
        "'table' is missing, and 'table.include' needs it"
    )


def test_metadata_is_read_for_every_row(products):
    told = products.metadata(FORMAT, products.messages("canal-data")[:1])
    assert len(told) == 9
    assert (
        told[0]
        == told[8]
        == {
            "database": "inventory",
            "table": "products2",
            "sql-type": {"id": 4, "name": 12, "description": 12, "weight": 7},
            "pk-names": ["id"],
            "ingestion-timestamp": dt.datetime(2020, 5, 13, 12, 38, 35, 477000, dt.UTC),
            "event-timestamp": dt.datetime(2020, 5, 13, 12, 38, 35, 0, dt.UTC),
        }
    )


@pytest.mark.parametrize("message", [None, b""])
def test_messages_without_content_are_skipped(products, message):
    decoded = build(FORMAT).decoder(products.schema).decode([message])
    assert (decoded.rows.num_rows, list(decoded.rejected)) == (0, [])


def test_table_creation_is_skipped(products):
    message = envelope("CREATE", None, isDdl=True)
    assert products.rows(FORMAT, [message, envelope("INSERT", [row(1)]), message])[0][1]["id"] == 1


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (
            envelope("ALTER", None, isDdl=True),
            "'type' is 'ALTER', not one of INSERT, UPDATE, DELETE",
        ),
        (envelope("insert", [row(1)]), "'type' is 'insert', not one of INSERT, UPDATE, DELETE"),
        (b"{}", "'type' is null, not one of INSERT, UPDATE, DELETE"),
        (envelope("INSERT", None), "'data' is null, not an array"),
        (envelope("UPDATE", [row(1)]), "'old' is null, not an array"),
        (envelope("UPDATE", [row(1)], []), "'old' has 0 rows where 'data' has 1"),
        (envelope("UPDATE", [row(1)], [5]), "'old[0]' is 5, not an object"),
        (
            envelope("INSERT", [row(1), {"id": "x"}, row(3)]),
            "in 'data[1]': column 'id': 'x' is not an INT",
        ),
        (
            envelope("UPDATE", [row(1)], [{"id": None}]),
            "in 'old[0]': column 'id': NULL, but the column is NOT NULL",
        ),
        (b"not json", "not JSON: expecting value at byte 0"),
    ],
)
def test_what_is_no_change_is_rejected_whole_or_dropped(products, message, why):
    assert products.rejection(FORMAT, message) == why
    around = [envelope("INSERT", [row(7)]), message, envelope("INSERT", [row(8)])]
    decoded = build(FORMAT, IGNORE).decoder(products.schema).decode(around)
    assert decoded.rows["id"].to_pylist() == [7, 8]
    assert decoded.ignored == 1


def test_the_kafka_connectors_copy_of_the_data_reads_alike(products):
    rows = products.rows(FORMAT, products.messages("kafka/canal-data"))
    assert len(rows) == 26
    assert rows[0][1]["name"] == "scooter"


@pytest.mark.parametrize(
    ("option", "text", "complaint"),
    [
        ("ignore-parse-errors", "abc", "'abc' is not true or false"),
        ("timestamp-format.standard", "test", "'test' is not one of SQL, ISO-8601"),
        ("map-null-key.mode", "invalid", "'invalid' is not one of FAIL, DROP, LITERAL"),
        ("table.include", "(", "'(' is not a regular expression: "),
    ],
)
def test_a_bad_option_is_named(option, text, complaint):
    with pytest.raises(OptionError) as caught:
        build(FORMAT, {option: text})
    assert complaint in str(caught.value)


def test_all_options_are_taken():
    plugin = build(
        FORMAT,
        {
            "ignore-parse-errors": "true",
            "timestamp-format.standard": "ISO-8601",
            "database.include": "mydb",
            "table.include": "mytable",
            "map-null-key.mode": "LITERAL",
            "map-null-key.literal": "nullKey",
            "encode.decimal-as-plain-number": "true",
            "encode.ignore-null-fields": "true",
        },
    )
    assert (plugin.databases, plugin.tables, plugin.changelog) == ("mydb", "mytable", True)
