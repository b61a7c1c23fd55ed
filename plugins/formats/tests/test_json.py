"""`json`, behaviour by behaviour."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from streamcore import OptionError, RecordError
from streamcore.testing import decode, encode
from streamcore.testing.codec import build
from streamcore.types import arrow_schema

TREE = {"decode.json-parser.enabled": "false"}
IGNORE = {"ignore-parse-errors": "true"}
ISO = {"timestamp-format.standard": "ISO-8601"}


def table(**columns: str) -> pa.Schema:
    return arrow_schema(columns)


def rows(schema, messages, options=None):
    return [row for _, row in decode("json", schema, messages, options)]


def value(sql_type: str, text: str | bytes, options=None):
    """What one value of this type reads as."""
    body = text.encode() if isinstance(text, str) else text
    [row] = rows(table(f=sql_type), [b'{"f":' + body + b"}"], options)
    return row["f"]


def reason(sql_type: str, text: str, options=None) -> str:
    """Why a message with this value is rejected."""
    return rejection(table(f=sql_type), b'{"f":' + text.encode() + b"}", options)


def rejection(schema, message, options=None) -> str:
    decoded = build("json", options).decoder(schema).decode([message])
    assert decoded.rows.num_rows == 0
    [rejected] = decoded.rejected
    assert rejected.index == 0
    return rejected.reason


# --- every type, there and back -------------------------------------------------------

ALL_TYPES = table(
    bool="BOOLEAN",
    tinyint="TINYINT",
    smallint="SMALLINT",
    int="INT",
    bigint="BIGINT",
    float="FLOAT",
    double="DOUBLE",
    name="STRING",
    code="CHAR(3)",
    bytes="BYTES",
    decimal="DECIMAL(9, 6)",
    doubles="ARRAY<DOUBLE>",
    date="DATE",
    time="TIME(0)",
    timestamp3="TIMESTAMP(3)",
    timestamp9="TIMESTAMP(9)",
    timestamp_ltz3="TIMESTAMP_LTZ(3)",
    map="MAP<STRING, BIGINT>",
    multiset="MULTISET<STRING>",
    map2map="MAP<STRING, MAP<STRING, INT>>",
    row="ROW<n INT, inner ROW<at TIMESTAMP(3), tags ARRAY<STRING>>>",
    months="INTERVAL YEAR TO MONTH",
    millis="INTERVAL DAY TO SECOND",
)

FULL = (
    b'{"bool":true,"tinyint":-128,"smallint":32767,"int":45536,"bigint":-9223372036854775808,'
    b'"float":33.333,"double":44.444444,"name":"asdlkjasjkdla998y1122","code":"abc",'
    b'"bytes":"AQID/w==","decimal":123.456789,"doubles":[1.1,2.2,3.3],"date":"1990-10-14",'
    b'"time":"12:12:43","timestamp3":"1990-10-14T12:12:43.123",'
    b'"timestamp9":"1990-10-14T12:12:43.123456789","timestamp_ltz3":"1990-10-14T12:12:43.123Z",'
    b'"map":{"element":123},"multiset":{"element":2},"map2map":{"inner":{"key":234}},'
    b'"row":{"n":7,"inner":{"at":"2024-02-29T01:02:03.5","tags":["a",null]}},'
    b'"months":14,"millis":1500}'
)


@pytest.mark.parametrize("options", [ISO, {**ISO, **TREE}])
def test_every_type_survives_a_round_trip_to_the_byte(options):
    batch = build("json", options).decoder(ALL_TYPES).decode([FULL]).rows
    assert batch.schema == ALL_TYPES
    assert batch["timestamp9"].cast(pa.int64()).to_pylist() == [655906363123456789]
    [row] = batch.drop_columns(["timestamp9"]).to_pylist()
    assert row["bigint"] == -(2**63)
    assert row["bytes"] == b"\x01\x02\x03\xff"
    assert row["decimal"] == Decimal("123.456789")
    assert row["date"] == dt.date(1990, 10, 14)
    assert row["time"] == dt.time(12, 12, 43)
    assert row["timestamp3"] == dt.datetime(1990, 10, 14, 12, 12, 43, 123000)
    assert row["timestamp_ltz3"].isoformat() == "1990-10-14T12:12:43.123000+00:00"
    assert row["row"]["inner"] == {
        "at": dt.datetime(2024, 2, 29, 1, 2, 3, 500000),
        "tags": ["a", None],
    }
    assert row["millis"] == dt.timedelta(milliseconds=1500)
    assert build("json", options).encoder(ALL_TYPES).encode(batch) == [FULL]


def test_nulls_of_every_type_survive_a_round_trip():
    everything_null = b"{" + b",".join(b'"%s":null' % n.encode() for n in ALL_TYPES.names) + b"}"
    batch = build("json").decoder(ALL_TYPES).decode([b"{}", everything_null]).rows
    assert batch.to_pylist() == [dict.fromkeys(ALL_TYPES.names)] * 2
    assert build("json").encoder(ALL_TYPES).encode(batch) == [everything_null] * 2
    brief = build("json", {"encode.ignore-null-fields": "true"}).encoder(ALL_TYPES)
    assert brief.encode(batch) == [b"{}"] * 2


def test_the_result_has_exactly_the_wanted_columns_in_the_wanted_order():
    decoded = build("json", ISO).decoder(ALL_TYPES, ["name", "int"]).decode([FULL])
    assert decoded.rows.schema == pa.schema([ALL_TYPES.field("name"), ALL_TYPES.field("int")])
    assert decoded.rows.to_pylist() == [{"name": "asdlkjasjkdla998y1122", "int": 45536}]
    assert decoded.origin is None


def test_no_wanted_column_still_counts_rows():
    decoded = build("json", ISO).decoder(ALL_TYPES, []).decode([FULL, b"{", FULL])
    assert decoded.rows.num_rows == 2
    assert decoded.origin.to_pylist() == [0, 2]


def test_unwanted_columns_are_not_converted():
    decoded = build("json").decoder(table(a="INT", b="INT"), ["b"]).decode([b'{"a":"x","b":1}'])
    assert decoded.rows.to_pylist() == [{"b": 1}]


# --- coercions ------------------------------------------------------------------------


def test_numbers_and_booleans_given_as_text_are_read():
    schema = table(a="BOOLEAN", b="INT", c="BIGINT", d="DOUBLE", e="FLOAT")
    message = b'{"a":"true","b":"123","c":"1234567890123","d":"1.5","e":" 2.5 "}'
    assert rows(schema, [message]) == [
        {"a": True, "b": 123, "c": 1234567890123, "d": 1.5, "e": 2.5}
    ]


@pytest.mark.parametrize(
    ("sql_type", "text", "expected"),
    [
        ("BOOLEAN", "true", True),
        ("BOOLEAN", '"TRUE"', True),
        ("BOOLEAN", '"trueA"', False),
        ("BOOLEAN", "1", False),
        ("TINYINT", '"12"', 12),
        ("INT", "112.013", 112),
        ("INT", "-112.9", -112),
        ("INT", "1e3", 1000),
        ("BIGINT", "112.013", 112),
        ("BIGINT", "9223372036854775807", 2**63 - 1),
        ("BIGINT", '"+5"', 5),
        ("DOUBLE", '"NaN"', math.nan),
        ("DOUBLE", '"-Infinity"', -math.inf),
        ("DOUBLE", '"0x1p3"', 8.0),
        ("DOUBLE", '"1d"', 1.0),
        ("DOUBLE", "-0", 0.0),
        ("DOUBLE", "5e-324", 5e-324),
        ("DOUBLE", "1e-400", 0.0),
        ("STRING", "true", "true"),
        ("STRING", "123.234", "123.234"),
        ("STRING", "1.10", "1.10"),
        ("STRING", "1e3", "1e3"),
        ("STRING", "1234567", "1234567"),
        (
            "STRING",
            '["array data1", "array data2", 123, 234.345]',
            '["array data1","array data2",123,234.345]',
        ),
        ("STRING", '{"k": 1.1, "z" : [1, 2]}', '{"k":1.1,"z":[1,2]}'),
        ("STRING", '{"k":{"q":"\\"\\u00e9"}}', '{"k":{"q":"\\"é"}}'),
        ("STRING", '"a\tb"', "a\tb"),
        ("STRING", '"\\ud83d\\ude00"', "😀"),
        ("STRING", '"\\u0000"', "\0"),
        ("DECIMAL(38, 18)", "799.929496989092949698", Decimal("799.929496989092949698")),
        ("DECIMAL(5, 2)", '"1.005"', Decimal("1.01")),
        ("DECIMAL(5, 2)", "-1.005", Decimal("-1.01")),
        ("DECIMAL(5, 2)", "1E2", Decimal("100.00")),
        ("DECIMAL(5, 2)", "999.994", Decimal("999.99")),
        ("DECIMAL(5, 2)", "1e-1000000", Decimal("0.00")),
        ("DATE", '"2024-02-29"', dt.date(2024, 2, 29)),
        ("TIME(3)", '"18:00:24.5"', dt.time(18, 0, 24, 500000)),
        ("TIME(0)", '"18:00:24.999"', dt.time(18, 0, 24)),
        ("TIMESTAMP(3)", '"2021-02-29 00:00:00"', dt.datetime(2021, 2, 28)),
        ("TIMESTAMP(3)", '"2021-02-28 24:00:00"', dt.datetime(2021, 3, 1)),
        ("TIMESTAMP(3)", '"2021-02-28 01:02:03."', dt.datetime(2021, 2, 28, 1, 2, 3)),
        ("TIMESTAMP(3)", '"2021-02-28 01:02:03.1239"', dt.datetime(2021, 2, 28, 1, 2, 3, 123000)),
        ("BYTES", '"aGk="', b"hi"),
        ("BYTES", '"aG\\nk="', b"hi"),
        ("ROW<f BOOLEAN>", '{"f":"abc"}', {"f": False}),
    ],
)
def test_a_value_is_read_as_its_column_wants(sql_type, text, expected):
    got = value(sql_type, text)
    assert got == expected or (isinstance(expected, float) and math.isnan(expected))
    assert isinstance(got, type(expected))


def test_fewer_fraction_digits_than_the_column_has_are_read_in_one_column():
    texts = ["2024-01-01 00:00:00", "2024-01-01 00:00:00.5", "2024-01-01 00:00:00.123456"]
    messages = [f'{{"f":"{text}"}}'.encode() for text in texts]
    read = rows(table(f="TIMESTAMP(6)"), messages)
    assert [row["f"].microsecond for row in read] == [0, 500000, 123456]


@pytest.mark.parametrize(
    ("sql_type", "text", "why"),
    [
        ("INT", '"abc"', "'abc' is not an INT"),
        ("INT", "11211111111.013", "'11211111111.013' is out of range for INT"),
        ("INT", "true", "true is not an INT"),
        ("TINYINT", "128", "'128' is out of range for TINYINT"),
        ("TINYINT", "12.0", "'12.0' is not a TINYINT"),
        ("SMALLINT", '"12.5"', "'12.5' is not a SMALLINT"),
        ("BIGINT", '"long"', "'long' is not a BIGINT"),
        ("BIGINT", "9223372036854775808", "'9223372036854775808' is out of range for BIGINT"),
        ("BIGINT", "1e400", "'1e400' is out of range for BIGINT"),
        ("FLOAT", '"112.013.123"', "'112.013.123' is not a FLOAT"),
        ("FLOAT", "1e39", "'1e39' is out of range for FLOAT"),
        ("DOUBLE", '"112.013.123"', "'112.013.123' is not a DOUBLE"),
        ("DOUBLE", "1e400", "'1e400' is out of range for DOUBLE"),
        ("TIME(0)", '"18:00:243"', "'18:00:243' is not a TIME, write 'HH:mm:ss[.f]'"),
        ("DATE", '"20191112"', "'20191112' is not a DATE, write 'yyyy-MM-dd'"),
        ("DATE", '"2021-02-29"', "'2021-02-29' is not a DATE, write 'yyyy-MM-dd'"),
        ("DATE", "20191112", "'20191112' is not a DATE, which is written as text"),
        ("DECIMAL(5, 2)", "999.995", "'999.995' is out of range for DECIMAL(5, 2)"),
        ("DECIMAL(5, 2)", "123456", "'123456' is out of range for DECIMAL(5, 2)"),
        ("DECIMAL(5, 2)", "1e1000000", "'1e1000000' is out of range for DECIMAL(5, 2)"),
        ("DECIMAL(10, 3)", '"abc"', "'abc' is not a DECIMAL(10, 3)"),
        ("DECIMAL(10, 3)", '"NaN"', "'NaN' is not a DECIMAL(10, 3)"),
        ("DECIMAL(10, 3)", '"1_0"', "'1_0' is not a DECIMAL(10, 3)"),
        ("BYTES", '"aGk"', "'aGk' is not base64 text"),
        ("BYTES", '"a_-="', "'a_-=' is not base64 text"),
        ("BYTES", "5", "'5' is not base64 text"),
        ("ARRAY<INT>", '{"a":1}', "expected an ARRAY, found an object"),
        ("MAP<STRING, INT>", "[1]", "expected a MAP, found an array"),
        ("ROW<a INT>", "5", "expected a ROW, found 5"),
        ("INT", "{}", "expected an INT, found an object"),
        ("BOOLEAN", "[]", "expected a BOOLEAN, found an array"),
        ("STRING", '"\\ud800"', "\\ud800 is half a surrogate pair"),
    ],
)
@pytest.mark.parametrize("options", [{}, TREE])
def test_a_value_that_does_not_fit_is_rejected_with_its_column(sql_type, text, why, options):
    if sql_type == "BYTES" and text == "5" and options:
        assert value(sql_type, text, options) is None
    else:
        assert reason(sql_type, text, options) == f"column 'f': {why}"
    assert value(sql_type, text, {**IGNORE, **options}) is None


@pytest.mark.parametrize(
    ("sql_type", "text", "where", "forgiven"),
    [
        ("ARRAY<INT>", '[123,"abc"]', "f[1]", [123, None]),
        (
            "MAP<STRING, INT>",
            '{"key1":"123","key2":"abc"}',
            "f['key2']",
            {"key1": 123, "key2": None},
        ),
        ("ROW<a ROW<b INT>>", '{"a":{"b":"x"}}', "f.a.b", {"a": {"b": None}}),
        ("ARRAY<ROW<b INT>>", '[{"b":1},{"b":"x"}]', "f[1].b", [{"b": 1}, {"b": None}]),
        ("ARRAY<ROW<b INT NOT NULL>>", '[{"b":1},{"b":"x"}]', "f[1].b", [{"b": 1}, None]),
    ],
)
def test_only_the_innermost_bad_value_becomes_null(sql_type, text, where, forgiven):
    assert reason(sql_type, text).startswith(f"column '{where}': ")
    assert value(sql_type, text, IGNORE) == forgiven


def test_an_object_in_a_scalar_column_leaves_its_neighbours_alone():
    schema = table(a="INT", b="INT", c="STRING")
    message = b'{"a":{"x":[1,{"b":7}]},"b":2,"c":"three"}'
    assert rows(schema, [message], IGNORE) == [{"a": None, "b": 2, "c": "three"}]


@pytest.mark.parametrize("count", [1, 7, 8, 9, 100, 511, 513, 1100])
def test_booleans_and_timestamps_of_one_length_keep_their_places(count):
    schema = table(ok="BOOLEAN", ts="TIMESTAMP(3)")
    moments = [
        dt.datetime(2024, 1, 1, 0, 0, 0, 1000) + dt.timedelta(seconds=n) for n in range(count)
    ]
    flags = [n % 3 == 0 for n in range(count)]
    messages = [
        b'{"ok":%b,"ts":"%b"}' % (b"true" if flag else b"false", str(moment)[:23].encode())
        for flag, moment in zip(flags, moments, strict=True)
    ]
    read = rows(schema, messages)
    assert [row["ok"] for row in read] == flags
    assert [row["ts"] for row in read] == moments
    with_null = rows(schema, [*messages, b'{"ok":null,"ts":null}'])
    assert with_null == [*read, {"ok": None, "ts": None}]


def test_a_timestamp_of_the_right_length_in_other_digits_is_rejected():
    schema = table(ts="TIMESTAMP(3)")
    wide = "２024-01-01 00:00:00.000"  # noqa: RUF001 - a digit that is not ASCII
    decoder = build("json").decoder(schema)
    decoded = decoder.decode([b'{"ts":"2024-01-01 00:00:00.000"}', f'{{"ts":"{wide}"}}'.encode()])
    assert decoded.rows.num_rows == 1
    assert [each.index for each in decoded.rejected] == [1]


@pytest.mark.parametrize(
    ("sql_type", "text", "options", "fine"),
    [
        ("TIMESTAMP(3)", "2019-11-12 18:00:12", {}, True),
        ("TIMESTAMP(3)", "2019-11-12 18:00:12", ISO, False),
        ("TIMESTAMP(3)", "2019-11-12T18:00:12", {}, False),
        ("TIMESTAMP(3)", "2019-11-12T18:00:12", ISO, True),
        ("TIMESTAMP(3)", "2019-11-12T18:00", ISO, True),
        ("TIMESTAMP(3)", "2019-11-12 18:00", {}, False),
        ("TIMESTAMP(3)", "2019-11-12", {}, False),
        ("TIMESTAMP(3)", "2019-11-12 18:00:12Z", {}, False),
        ("TIMESTAMP(3)", "2019-11-12T18:00:12Z", ISO, False),
        ("TIMESTAMP(3)", " 2019-11-12 18:00:12", {}, False),
        ("TIMESTAMP(3)", "2019-1-12 18:00:12", {}, False),
        ("TIMESTAMP(9)", "2019-11-12 18:00:12.1234567890", {}, False),
        ("TIMESTAMP_LTZ(3)", "2019-11-12 18:00:12Z", {}, True),
        ("TIMESTAMP_LTZ(3)", "2019-11-12T18:00:12Z", ISO, True),
        ("TIMESTAMP_LTZ(3)", "2019-11-12 18:00:12", {}, False),
        ("TIMESTAMP_LTZ(3)", "2019-11-12 18:00:12+0800", {}, False),
        ("TIMESTAMP_LTZ(3)", "2019-11-12T18:00:12+08:00", ISO, False),
    ],
)
def test_timestamps_are_read_in_the_declared_standard_only(sql_type, text, options, fine):
    if fine:
        assert value(sql_type, f'"{text}"', options).hour == 18
    else:
        assert "is not a TIMESTAMP" in reason(sql_type, f'"{text}"', options)


def test_sql_timestamps_of_every_precision_survive_a_round_trip():
    schema = table(
        t3="TIMESTAMP(3)", t9="TIMESTAMP(9)", z3="TIMESTAMP_LTZ(3)", z9="TIMESTAMP_LTZ(9)"
    )
    message = (
        b'{"t3":"1990-10-14 12:12:43.123","t9":"1990-10-14 12:12:43.123456789",'
        b'"z3":"1990-10-14 12:12:43.123Z","z9":"1990-10-14 12:12:43.123456789Z"}'
    )
    batch = build("json").decoder(schema).decode([message]).rows
    assert build("json").encoder(schema).encode(batch) == [message]


@pytest.mark.parametrize(
    ("sql_type", "text", "cut"),
    [
        ("TIME(2)", "12:12:12.239", "12:12:12.23"),
        ("TIME(5)", "12:12:12.123459", "12:12:12.12345"),
        ("TIMESTAMP(1)", "1969-12-31 23:59:59.999", "1969-12-31 23:59:59.9"),
        ("TIMESTAMP(4)", "1969-01-01 00:00:00.123459", "1969-01-01 00:00:00.1234"),
        ("TIMESTAMP(8)", "2024-01-01 00:00:00.123456789", "2024-01-01 00:00:00.12345678"),
        ("TIMESTAMP_LTZ(2)", "2024-01-01 00:00:00.239Z", "2024-01-01 00:00:00.23Z"),
    ],
)
@pytest.mark.parametrize("count", [1, 600, 2500])
@pytest.mark.parametrize("identifier", ["json", "csv"])
def test_fractions_are_cut_to_the_declared_precision(identifier, sql_type, text, cut, count):
    if (identifier, sql_type) == ("csv", "TIME(5)"):
        sql_type, text, cut = "TIME(1)", "12:12:12.999", "12:12:12.9"
    schema = table(a=sql_type)
    around = '{"a":"%s"}' if identifier == "json" else "%s"
    rows = build(identifier).decoder(schema).decode([(around % text).encode()] * count).rows
    [written] = set(build("json").encoder(schema).encode(rows))
    assert written == b'{"a":"%s"}' % cut.encode()


def test_the_tree_parser_normalises_numbers_in_string_columns():
    assert value("STRING", "1.10", TREE) == "1.1"
    assert value("STRING", "1e3", TREE) == "1000.0"
    assert value("STRING", "123", TREE) == "123"


# --- messages -------------------------------------------------------------------------

AB = table(a="INT", b="STRING")


def test_a_top_level_array_is_as_many_rows():
    decoded = (
        build("json")
        .decoder(AB)
        .decode([b'{"a":0}', b'[{"a":1,"b":"x"},{"a":2}]', b"[]", b'{"a":3}'])
    )
    assert [row["a"] for row in decoded.rows.to_pylist()] == [0, 1, 2, 3]
    assert decoded.origin.to_pylist() == [0, 1, 1, 3]
    assert not decoded.rejected


def test_one_bad_element_rejects_the_array_or_is_dropped_alone():
    message = b'[{"a":1},5,{"a":2}]'
    assert rejection(AB, message) == "element 1 of the array: expected an object, found 5"
    decoded = build("json", IGNORE).decoder(AB).decode([message])
    assert [row["a"] for row in decoded.rows.to_pylist()] == [1, 2]
    assert decoded.ignored == 1


@pytest.mark.parametrize("message", [None, b"", b" \n"])
@pytest.mark.parametrize("options", [{}, TREE, IGNORE])
def test_a_message_without_content_is_no_row_and_no_error(message, options):
    decoded = build("json", options).decoder(AB).decode([message])
    assert (decoded.rows.num_rows, list(decoded.rejected), decoded.ignored) == (0, [], 0)


def test_a_bare_null_is_an_error_of_the_streaming_parser_only():
    assert "found null" in rejection(AB, b"null")
    assert rows(AB, [b"null"], TREE) == []


@pytest.mark.parametrize("tail", [b" tail", b'{"a":2}', b"}", b"\x00"])
def test_what_follows_the_first_value_is_not_looked_at(tail):
    assert rows(AB, [b'{"a":1}' + tail]) == [{"a": 1, "b": None}]


def test_the_last_of_equal_keys_wins_and_starves_no_other_column():
    assert rows(AB, [b'{"a":1,"a":2,"b":"x"}']) == [{"a": 2, "b": "x"}]
    assert rows(AB, [b'{"a":"bad","a":2,"b":"x"}']) == [{"a": 2, "b": "x"}]
    assert rows(AB, [b'{"a":1,"a":2,"a":null,"b":"x"}']) == [{"a": None, "b": "x"}]


def test_names_are_matched_exactly_and_may_be_escaped():
    assert rows(AB, [b'{"A":1,"\\u0062":"x"}']) == [{"a": None, "b": "x"}]


def test_odd_column_names_are_read_and_written():
    schema = pa.schema(
        [pa.field(name, pa.int64()) for name in ('"', "\\", "a b", "ä", "class", "")]
    )
    message = b'{"\\"":1,"\\\\":2,"a b":3,"\xc3\xa4":4,"class":5,"":6}'
    batch = build("json").decoder(schema).decode([message]).rows
    assert list(batch.to_pylist()[0].values()) == [1, 2, 3, 4, 5, 6]
    assert build("json").encoder(schema).encode(batch) == [message]


def test_pretty_printed_messages_and_a_byte_order_mark_are_read():
    assert rows(AB, [b'{\n  "a" : 1 ,\r\n\t"b" : "x"\n}', b'\xef\xbb\xbf{"a":2}']) == [
        {"a": 1, "b": "x"},
        {"a": 2, "b": None},
    ]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b'{"a":1', "not JSON: expecting ',' delimiter at byte 6"),
        (b'{"b":"\xc3\xa4', "not JSON: unterminated string starting at byte 5"),
        (b'{"b":"\xc3\xa4" "a":1}', "not JSON: expecting ',' delimiter at byte 10"),
        (b'{"a":NaN}', "not JSON: 'NaN' at byte 5 is not a value"),
        (
            b'\xef\xbb\xbf{"\xc3\xbcNaN":"\\"NaN","a":[1, -Infinity, NaN]}',
            "not JSON: '-Infinity' at byte 28 is not a value",
        ),
        (b"{'a':1}", "not JSON: expecting property name enclosed in double quotes at byte 1"),
        (b'{"a":01}', "not JSON: expecting ',' delimiter at byte 6"),
        (b"5", "expected an object or an array of objects, found 5"),
        (b'"text"', 'expected an object or an array of objects, found "text"'),
        (b'{"b":"\xff"}', "column 'b': byte 0xff is not UTF-8"),
        (b"[" * 100_000, "nested deeper than 500 levels at byte 500"),
    ],
)
def test_what_is_no_row_is_rejected_saying_where(message, why):
    assert rejection(AB, message) == why


def test_unparsable_messages_are_dropped_and_counted_when_told_to_ignore():
    messages = [b'{"a":1}', b"{", b'{"a":"x","b":"y"}', b"5", b"null", b"\xff"]
    decoded = build("json", IGNORE).decoder(AB).decode(messages)
    assert decoded.rows.to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": "y"}]
    assert decoded.origin.to_pylist() == [0, 2]
    assert decoded.ignored == 4
    assert not decoded.rejected


def test_a_bad_message_costs_no_neighbour():
    messages = [b'{"a":%d}' % n if n % 7 else b'{"a":' for n in range(50_000)]
    decoded = build("json").decoder(AB).decode(messages)
    good = [n for n in range(50_000) if n % 7]
    assert decoded.rows["a"].to_pylist() == good
    assert decoded.origin.to_pylist() == good
    assert [r.index for r in decoded.rejected] == list(range(0, 50_000, 7))


def test_invalid_bytes_outside_the_wanted_columns_do_no_harm():
    assert rows(AB, [b'{"x":"\xff","a":1}']) == [{"a": 1, "b": None}]
    assert rows(AB, [b'{"x":"\xff\t","a":1}']) == [{"a": 1, "b": None}]


# --- missing and NULL -----------------------------------------------------------------


def test_a_missing_field_is_null_or_an_error_as_configured():
    assert rows(AB, [b'{"a":1}']) == [{"a": 1, "b": None}]
    strict = {"fail-on-missing-field": "true"}
    assert rejection(AB, b'{"a":1}', strict) == "column 'b': the message has no such field"
    assert rows(AB, [b'{"a":1,"b":null}'], strict) == [{"a": 1, "b": None}]
    nested = table(r="ROW<x INT, y INT>")
    assert (
        rejection(nested, b'{"r":{"x":1}}', strict) == "column 'r.y': the message has no such field"
    )
    with pytest.raises(OptionError, match="cannot be true together with 'ignore-parse-errors'"):
        build("json", {**strict, **IGNORE})


def test_null_in_a_not_null_column_rejects_the_message_with_the_column():
    schema = table(a="INT NOT NULL", b="ROW<c INT NOT NULL>", d="ARRAY<INT NOT NULL>")
    null = "NULL, but the column is NOT NULL"
    assert rejection(schema, b"{}") == f"column 'a': {null}"
    assert rejection(schema, b'{"a":null}') == f"column 'a': {null}"
    assert rejection(schema, b'{"a":1,"b":{}}') == f"column 'b.c': {null}"
    assert rejection(schema, b'{"a":1,"d":[1,null]}') == f"column 'd[1]': {null}"
    assert rejection(table(b="INT", a="INT NOT NULL"), b"{}") == f"column 'a': {null}"
    decoded = build("json", IGNORE).decoder(schema).decode([b'{"a":"x"}', b'{"a":1}'])
    assert decoded.rows.to_pylist() == [{"a": 1, "b": None, "d": None}]
    assert decoded.ignored == 1


# --- writing --------------------------------------------------------------------------


def written(sql_type: str, given, options=None) -> str:
    [message] = encode("json", table(f=sql_type), [{"f": given}], options)
    return message.decode()[5:-1]


@pytest.mark.parametrize(
    ("sql_type", "given", "text"),
    [
        ("STRING", 'a"b\\c', r'"a\"b\\c"'),
        ("STRING", "\b\t\n\f\r\0\x1f\x7f", '"' + r"\b\t\n\f\r\u0000\u001F" + '\x7f"'),
        ("STRING", "héllo 😀", '"héllo 😀"'),
        ("DOUBLE", 1.0, "1.0"),
        ("DOUBLE", -0.0, "-0.0"),
        ("DOUBLE", 1e10, "1.0E10"),
        ("DOUBLE", 1e7, "1.0E7"),
        ("DOUBLE", 9999999.0, "9999999.0"),
        ("DOUBLE", 1e-3, "0.001"),
        ("DOUBLE", 1e-5, "1.0E-5"),
        ("DOUBLE", -1.25e-7, "-1.25E-7"),
        ("DOUBLE", 5e-324, "4.9E-324"),
        ("DOUBLE", -2e-323, "-2.0E-323"),
        ("DOUBLE", 123456789.125, "1.23456789125E8"),
        ("DOUBLE", math.nan, '"NaN"'),
        ("DOUBLE", -math.inf, '"-Infinity"'),
        ("FLOAT", 3.14, "3.14"),
        ("FLOAT", 5.0, "5.0"),
        ("FLOAT", 1e10, "1.0E10"),
        ("FLOAT", 0.33333334, "0.33333334"),
        ("TIME(3)", dt.time(1, 2, 3, 120000), '"01:02:03.12"'),
        ("TIME(3)", dt.time(1, 2, 0), '"01:02:00"'),
        ("TIME(0)", dt.time(10, 20, 30), '"10:20:30"'),
        ("TIMESTAMP(0)", dt.datetime(2020, 10, 20, 10, 20, 0), '"2020-10-20 10:20:00"'),
        ("TIMESTAMP(3)", dt.datetime(2020, 1, 1, 12, 13, 14, 120000), '"2020-01-01 12:13:14.12"'),
        ("TIMESTAMP(3)", dt.datetime(2020, 1, 1, 12, 13, 0), '"2020-01-01 12:13:00"'),
        ("ARRAY<INT>", [1, None, 3], "[1,null,3]"),
        ("ARRAY<INT>", [], "[]"),
        ("ARRAY<ARRAY<STRING>>", [["a"], None, []], '[["a"],null,[]]'),
        ("MAP<STRING, INT>", {"a": 1, 'b"': None}, r'{"a":1,"b\"":null}'),
        ("MAP<STRING, INT>", {}, "{}"),
        ("ROW<a INT, b ROW<c STRING>>", {"a": None, "b": {"c": None}}, '{"a":null,"b":{"c":null}}'),
        ("ROW<a INT, b ROW<c STRING>>", {"a": 1, "b": None}, '{"a":1,"b":null}'),
        ("BYTES", b"", '""'),
    ],
)
def test_a_value_is_written_as_flink_writes_it(sql_type, given, text):
    assert written(sql_type, given) == text


@pytest.mark.parametrize(
    ("number", "short", "plain"),
    [
        ("123.456789", "123.456789", "123.456789000"),
        ("454621864049246170", "4.5462186404924617E+17", "454621864049246170.000000000"),
        ("0.000000027", "2.7E-8", "0.000000027"),
        ("100", "1E+2", "100.000000000"),
        ("5.10", "5.1", "5.100000000"),
        ("1234567.00", "1234567", "1234567.000000000"),
        ("0", "0", "0.000000000"),
        ("-20", "-2E+1", "-20.000000000"),
    ],
)
def test_decimals_are_short_or_plain(number, short, plain):
    assert written("DECIMAL(38, 9)", Decimal(number)) == short
    options = {"encode.decimal-as-plain-number": "true"}
    assert written("DECIMAL(38, 9)", Decimal(number), options) == plain


def test_ignored_nulls_vanish_from_rows_at_every_depth_but_not_from_maps_and_arrays():
    schema = table(a="INT", r="ROW<x INT, y INT>", m="MAP<STRING, INT>", l="ARRAY<INT>")
    given = [
        {"a": None, "r": {"x": None, "y": 2}, "m": {"k": None}, "l": [None]},
        {"a": 1, "r": {"x": None, "y": None}, "m": None, "l": None},
    ]
    assert encode("json", schema, given, {"encode.ignore-null-fields": "true"}) == [
        b'{"r":{"y":2},"m":{"k":null},"l":[null]}',
        b'{"a":1,"r":{}}',
    ]


def test_a_map_with_a_null_key_cannot_even_be_built():
    with pytest.raises(pa.ArrowInvalid):
        pa.array([[(None, 1)]], pa.map_(pa.string(), pa.int32())).validate(full=True)
    for mode in ("fail", "Drop", "LITERAL"):
        build("json", {"map-null-key.mode": mode, "map-null-key.literal": "none"})


def test_null_in_a_not_null_column_is_not_written():
    schema = table(a="INT", b="STRING NOT NULL")
    batch = pa.RecordBatch.from_pylist([{"a": 1, "b": "x"}, {"a": 2, "b": None}], schema=schema)
    with pytest.raises(RecordError, match="row 1, column 'b': NULL, but it is NOT NULL"):
        build("json").encoder(schema).encode(batch)


def test_slices_and_large_batches_are_written_row_by_row():
    schema = table(a="INT", s="STRING", l="ARRAY<STRING>")
    given = [{"a": n, "s": f"s{n}" * (n % 3), "l": [str(n)] * (n % 4)} for n in range(40_000)]
    batch = pa.RecordBatch.from_pylist(given, schema=schema)
    encoder = build("json").encoder(schema)
    everything = encoder.encode(batch)
    assert len(everything) == 40_000
    assert rows(schema, everything) == given
    assert encoder.encode(batch.slice(17_001, 5)) == everything[17_001:17_006]
    assert encoder.encode(batch.slice(0, 0)) == []


# --- options --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "text", "complaint"),
    [
        ("ignore-parse-errors", "abc", "ignore-parse-errors: 'abc' is not true or false"),
        ("timestamp-format.standard", "test", "'test' is not one of SQL, ISO-8601"),
        ("timestamp-format.standard", "iso-8601", "'iso-8601' is not one of SQL, ISO-8601"),
        ("map-null-key.mode", "invalid", "'invalid' is not one of FAIL, DROP, LITERAL"),
        ("no-such", "x", "no-such: unknown option"),
    ],
)
def test_a_bad_option_is_named_with_what_would_be_right(option, text, complaint):
    with pytest.raises(OptionError) as caught:
        build("json", {option: text})
    assert complaint in str(caught.value)


def test_map_keys_other_than_strings_are_refused_when_planning():
    with pytest.raises(OptionError, match=r"a\.b: JSON can only carry maps .* STRING keys"):
        decode("json", table(a="ROW<b MAP<INT, STRING>>"), [])
    with pytest.raises(OptionError, match="m: JSON can only carry maps"):
        encode("json", table(m="MULTISET<INT>"), [])


def test_json_is_insert_only_and_offers_no_metadata():
    plugin = build("json")
    assert not plugin.changelog
    assert plugin.metadata_keys == {}
