"""`maxwell-json`, behaviour by behaviour."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from streamcore import OptionError
from streamcore.testing import encode
from streamcore.testing.codec import build

FORMAT = "maxwell-json"
IGNORE = {"ignore-parse-errors": "true"}


def row(number: int, name: str | None = "hammer", weight: float | None = 1.5) -> dict:
    return {"id": number, "name": name, "description": None, "weight": weight}


def envelope(change, data, old=None, **others) -> bytes:
    body = {
        "database": "shop",
        "table": "product",
        "type": change,
        "ts": 1718000000,
        "xid": 7125,
        "commit": True,
        "data": data,
        "primary_key_columns": ["id"],
    }
    if old is not None:
        body["old"] = old
    return json.dumps({**body, **others}).encode()


STREAM = [
    envelope("insert", row(101, "scooter", 3.14)),
    envelope("insert", row(102, "car battery", 8.1)),
    envelope("update", row(101, "scooter", 5.17), {"weight": 3.14}),
    envelope("update", row(102, None, 8.1), {"name": "car battery", "description": "12V"}),
    envelope("delete", row(101, "scooter", 5.17)),
]


def test_a_stream_of_changes_gives_its_rows_and_is_written_as_inserts_and_deletes(products):
    rows = products.rows(FORMAT, STREAM)
    assert products.tuples(rows) == [
        ("+I", 101, "scooter", None, 3.14),
        ("+I", 102, "car battery", None, 8.1),
        ("-U", 101, "scooter", None, 3.14),
        ("+U", 101, "scooter", None, 5.17),
        ("-U", 102, "car battery", "12V", 8.1),
        ("+U", 102, None, None, 8.1),
        ("-D", 101, "scooter", None, 5.17),
    ]
    assert encode(FORMAT, products.schema, rows[2:4]) == [
        b'{"data":{"id":101,"name":"scooter","description":null,"weight":3.14},"type":"delete"}',
        b'{"data":{"id":101,"name":"scooter","description":null,"weight":5.17},"type":"insert"}',
    ]


def test_an_explicit_null_in_old_means_the_value_was_null(products):
    rows = products.tuples(
        products.rows(FORMAT, [envelope("update", row(1, "now"), {"name": None})])
    )
    assert rows == [("-U", 1, None, None, 1.5), ("+U", 1, "now", None, 1.5)]


def test_metadata_counts_seconds(products):
    told = products.metadata(FORMAT, STREAM[:1])
    assert told == [
        {
            "database": "shop",
            "table": "product",
            "primary-key-columns": ["id"],
            "ingestion-timestamp": dt.datetime(2024, 6, 10, 6, 13, 20, 0, dt.UTC),
        }
    ]


def test_a_time_no_clock_can_show_is_rejected(products):
    message = envelope("insert", row(1), ts=2**62)
    why = products.rejection(FORMAT, message, keys=["ingestion-timestamp"])
    assert "out of range" in why


@pytest.mark.parametrize("message", [None, b""])
def test_messages_without_content_are_skipped(products, message):
    decoded = build(FORMAT).decoder(products.schema).decode([message])
    assert (decoded.rows.num_rows, list(decoded.rejected)) == (0, [])


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (envelope("bootstrap-insert", row(1)), "'type' is 'bootstrap-insert', not one of insert,"),
        (envelope("table-create", None), "'type' is 'table-create', not one of insert,"),
        (envelope("insert", None), "'data' is null"),
        (envelope("update", row(1)), "'old' is null"),
        (envelope("update", row(1), [1]), "'old' is an array, not an object"),
        (envelope("insert", {"id": "x"}), "in 'data': column 'id': 'x' is not an INT"),
        (envelope("insert", {}), "in 'data': column 'id': NULL, but the column is NOT NULL"),
        (b"5", "the message is 5, not an object"),
    ],
)
def test_what_is_no_change_is_rejected_whole_or_dropped(products, message, why):
    assert products.rejection(FORMAT, message).startswith(why)
    around = [envelope("insert", row(7)), message, envelope("insert", row(8))]
    decoded = build(FORMAT, IGNORE).decoder(products.schema).decode(around)
    assert decoded.rows["id"].to_pylist() == [7, 8]
    assert decoded.ignored == 1


@pytest.mark.parametrize(
    ("option", "text", "complaint"),
    [
        ("ignore-parse-errors", "abc", "'abc' is not true or false"),
        ("timestamp-format.standard", "test", "'test' is not one of SQL, ISO-8601"),
        ("map-null-key.mode", "invalid", "'invalid' is not one of FAIL, DROP, LITERAL"),
        ("schema-include", "true", "unknown option"),
    ],
)
def test_a_bad_option_is_named(option, text, complaint):
    with pytest.raises(OptionError) as caught:
        build(FORMAT, {option: text})
    assert complaint in str(caught.value)


def test_it_is_a_changelog():
    assert build(FORMAT).changelog
