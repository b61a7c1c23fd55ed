"""`ogg-json`, behaviour by behaviour."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from streamcore import OptionError, PluginError
from streamcore.testing import encode
from streamcore.testing.codec import build

FORMAT = "ogg-json"
IGNORE = {"ignore-parse-errors": "true"}


def row(number: int, weight: float = 1.5) -> dict:
    return {"id": number, "name": "hammer", "description": None, "weight": weight}


def envelope(op, before=None, after=None, **others) -> bytes:
    body = {
        "table": "SHOP.PRODUCTS",
        "op_type": op,
        "op_ts": "2024-06-10 06:13:20.123456",
        "current_ts": "2024-06-10T06:13:21.654321",
        "pos": "00000000000000002928",
        "primary_keys": ["id"],
        "before": before,
        "after": after,
    }
    return json.dumps({**body, **others}).encode()


STREAM = [
    envelope("I", None, row(101)),
    envelope("U", row(101), row(101, 5.17)),
    envelope("D", row(101, 5.17), None),
]


def test_a_stream_of_changes_gives_its_rows_and_is_written_as_inserts_and_deletes(products):
    rows = products.rows(FORMAT, STREAM)
    assert products.tuples(rows) == [
        ("+I", 101, "hammer", None, 1.5),
        ("-U", 101, "hammer", None, 1.5),
        ("+U", 101, "hammer", None, 5.17),
        ("-D", 101, "hammer", None, 5.17),
    ]
    assert encode(FORMAT, products.schema, rows[:2]) == [
        b'{"before":null,"after":{"id":101,"name":"hammer","description":null,"weight":1.5},'
        b'"op_type":"I"}',
        b'{"before":{"id":101,"name":"hammer","description":null,"weight":1.5},"after":null,'
        b'"op_type":"D"}',
    ]


def test_metadata_has_microseconds(products):
    assert products.metadata(FORMAT, STREAM[:1]) == [
        {
            "table": "SHOP.PRODUCTS",
            "primary-keys": ["id"],
            "ingestion-timestamp": dt.datetime(2024, 6, 10, 6, 13, 21, 654321, dt.UTC),
            "event-timestamp": dt.datetime(2024, 6, 10, 6, 13, 20, 123456, dt.UTC),
        }
    ]


def test_metadata_that_is_no_time_is_rejected_only_when_wanted(products):
    message = envelope("I", None, row(1), op_ts="yesterday")
    assert products.rows(FORMAT, [message])
    why = products.rejection(FORMAT, message, keys=["event-timestamp"])
    assert why.startswith("column 'event-timestamp': 'yesterday' is not a TIMESTAMP")


@pytest.mark.parametrize("message", [None, b""])
def test_tombstones_are_skipped(products, message):
    decoded = build(FORMAT).decoder(products.schema).decode([message])
    assert (decoded.rows.num_rows, list(decoded.rejected)) == (0, [])


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (envelope("T"), "'op_type' is 'T', not one of I, U, D"),
        (envelope("I"), "'after' is null in an insert"),
        (envelope("U", None, row(1)), "'before' is null in an update; a Postgres table needs"),
        (envelope("D"), "'before' is null in a delete; a Postgres table needs"),
        (b"{", "not JSON: expecting property name"),
    ],
)
def test_what_is_no_change_is_rejected_whole_or_dropped(products, message, why):
    assert products.rejection(FORMAT, message).startswith(why)
    around = [envelope("I", None, row(7)), message, envelope("I", None, row(8))]
    decoded = build(FORMAT, IGNORE).decoder(products.schema).decode(around)
    assert decoded.rows["id"].to_pylist() == [7, 8]
    assert decoded.ignored == 1


def test_metadata_it_does_not_have_is_refused_by_name(products):
    with pytest.raises(PluginError, match="'ogg-json' has no metadata 'database'; it has table,"):
        build(FORMAT).decoder(products.schema, None, ["database"])


@pytest.mark.parametrize(
    ("option", "text", "complaint"),
    [
        ("ignore-parse-errors", "abc", "'abc' is not true or false"),
        ("timestamp-format.standard", "test", "'test' is not one of SQL, ISO-8601"),
        ("map-null-key.mode", "invalid", "'invalid' is not one of FAIL, DROP, LITERAL"),
    ],
)
def test_a_bad_option_is_named(option, text, complaint):
    with pytest.raises(OptionError) as caught:
        build(FORMAT, {option: text})
    assert complaint in str(caught.value)


def test_it_is_a_changelog():
    assert build(FORMAT).changelog
