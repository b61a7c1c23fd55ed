"""`csv`, behaviour by behaviour."""

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

IGNORE = {"ignore-parse-errors": "true"}
NULL = {"null-literal": "null"}
CUSTOM = {
    "escape-character": "*",
    "quote-character": "'",
    "array-element-delimiter": ":",
    "field-delimiter": ";",
}
UTC = dt.UTC


def table(*columns: str) -> pa.Schema:
    return arrow_schema({f"f{number}": column for number, column in enumerate(columns)})


def framed(sql_type: str) -> pa.Schema:
    return table("STRING", sql_type, "STRING")


def cell(sql_type: str, text: str, options=None):
    """What one cell between two others reads as."""
    mark = (options or {}).get("field-delimiter", ",")
    message = f"BEGIN{mark}{text}{mark}END".encode()
    [(kind, row)] = decode("csv", framed(sql_type), [message], options)
    assert (kind, row["f0"], row["f2"]) == ("+I", "BEGIN", "END")
    return row["f1"]


def written(sql_type: str, value, options=None) -> str:
    row = {"f0": "BEGIN", "f1": value, "f2": "END"}
    [message] = encode("csv", framed(sql_type), [row], options)
    mark = (options or {}).get("field-delimiter", ",")
    text = message.decode()
    start, end = f"BEGIN{mark}", f"{mark}END"
    assert text.startswith(start)
    assert text.endswith(end)
    return text[len(start) : -len(end)]


def rejection(schema, message: bytes, options=None) -> str:
    decoded = build("csv", options).decoder(schema).decode([message])
    assert decoded.rows.num_rows == 0
    [rejected] = decoded.rejected
    return rejected.reason


def rows(schema, messages, options=None):
    return [tuple(row.values()) for _, row in decode("csv", schema, messages, options)]


# --- types ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql_type", "text", "value"),
    [
        ("BIGINT", "null", None),
        ("STRING", "null", None),
        ("STRING", '"This is a test\n\r."', "This is a test\n\r."),
        ("BOOLEAN", "true", True),
        ("TINYINT", "124", 124),
        ("SMALLINT", "10000", 10000),
        ("INT", "1234567", 1234567),
        ("BIGINT", "12345678910", 12345678910),
        ("DOUBLE", "0.33333333332", 0.33333333332),
        ("DOUBLE", "NaN", math.nan),
        (
            "DECIMAL(38, 25)",
            "1234.0000000000000000000000001",
            Decimal("1234.0000000000000000000000001"),
        ),
        (
            "DECIMAL(38, 0)",
            "123456789012345678901234567890",
            Decimal(123456789012345678901234567890),
        ),
        ("DATE", "2018-10-12", dt.date(2018, 10, 12)),
        ("TIME(0)", "12:12:12", dt.time(12, 12, 12)),
        ("TIME(3)", "12:12:12.232", dt.time(12, 12, 12, 232000)),
        ("TIMESTAMP(0)", '"2018-10-12 12:12:12"', dt.datetime(2018, 10, 12, 12, 12, 12)),
        (
            "TIMESTAMP(3)",
            '"2018-10-12 12:12:12.123"',
            dt.datetime(2018, 10, 12, 12, 12, 12, 123000),
        ),
        ("TIMESTAMP_LTZ(0)", '"1970-01-01 00:02:03Z"', dt.datetime(1970, 1, 1, 0, 2, 3, 0, UTC)),
        (
            "TIMESTAMP_LTZ(3)",
            '"1970-01-01 00:02:03.456Z"',
            dt.datetime(1970, 1, 1, 0, 2, 3, 456000, UTC),
        ),
        ("INTERVAL YEAR TO MONTH", "14", 14),
        ("INTERVAL DAY TO SECOND", "1500", dt.timedelta(milliseconds=1500)),
        ("ROW<a STRING, b INT, c BOOLEAN>", "Hello;42;false", {"a": "Hello", "b": 42, "c": False}),
        ("ARRAY<STRING>", "a;b;c", ["a", "b", "c"]),
        ("ARRAY<TINYINT>", "12;4;null", [12, 4, None]),
        ("ARRAY<INT>", "", []),
        ("BYTES", "awML", b"k\x03\x0b"),
    ],
)
def test_every_type_is_read_and_written_alike(sql_type, text, value):
    got = cell(sql_type, text, NULL)
    assert got == value or (isinstance(value, float) and math.isnan(got))
    assert written(sql_type, value, NULL) == text


def test_floats_are_read_to_the_nearest_and_written_shortest():
    assert cell("FLOAT", "0.33333334") == pytest.approx(0.33333334, rel=1e-7)
    assert written("FLOAT", 0.33333334) == "0.33333334"
    assert written("DOUBLE", 1e10) == "1.0E10"
    assert written("DOUBLE", 5.0) == "5.0"


@pytest.mark.parametrize(
    ("sql_type", "text", "value"),
    [
        ("STRING", "123*'4**", "123'4*"),
        ("STRING", "'123''4**'", "123'4*"),
        ("STRING", "'a;b*'c'", "a;b'c"),
        ("STRING", "a*nb", "a\nb"),
        ("INT", "       12          ", 12),
        ("TIME(3)", "12:12:12.232342", dt.time(12, 12, 12, 232000)),
        ("TIME(2)", "12:12:12.232312", dt.time(12, 12, 12, 230000)),
        ("TIME(0)", "12:12:12.45", dt.time(12, 12, 12)),
        ("TIME(0)", "12:12", dt.time(12, 12)),
        ("ROW<a STRING, b INT>", "1:2", {"a": "1", "b": 2}),
        ("ARRAY<INT>", "1:2:3", [1, 2, 3]),
    ],
)
def test_custom_characters_are_understood(sql_type, text, value):
    assert cell(sql_type, text, CUSTOM) == value


@pytest.mark.parametrize(
    ("sql_type", "text", "value"),
    [
        ("BOOLEAN", " TRUE ", True),
        ("BOOLEAN", "trueA", False),
        ("BOOLEAN", "", False),
        ("INT", "+12", 12),
        ("INT", "007", 7),
        ("DOUBLE", " 1d ", 1.0),
        ("DOUBLE", "0x1p3", 8.0),
        ("DOUBLE", "-Infinity", -math.inf),
        ("DOUBLE", ".5", 0.5),
        ("DECIMAL(5, 2)", "1.005", Decimal("1.01")),
        ("DECIMAL(5, 2)", "1E+2", Decimal("100.00")),
        ("DATE", "2018-1-2", dt.date(2018, 1, 2)),
        ("TIMESTAMP(3)", " 2018-10-12 12:12:12.5 ", dt.datetime(2018, 10, 12, 12, 12, 12, 500000)),
        ("STRING", "", ""),
        ("STRING", " a ", " a "),
        ("STRING", 'a"b"', 'a"b"'),
        ("STRING", '"a""b"', 'a"b'),
        ("STRING", '"a,b" ', "a,b"),
        ("STRING", "\t", "\t"),
    ],
)
@pytest.mark.parametrize("copies", [1, 2, 1500])
def test_a_cell_reads_the_same_alone_and_in_a_crowd(sql_type, text, value, copies):
    message = f"BEGIN,{text},END".encode()
    got = rows(framed(sql_type), [message] * copies)
    assert got == [("BEGIN", value, "END")] * copies


@pytest.mark.parametrize(
    ("sql_type", "text", "why"),
    [
        ("INT", "null", "'null' is not an INT"),
        ("INT", "", "'' is not an INT"),
        ("INT", "12.5", "'12.5' is not an INT"),
        ("INT", "0x10", "'0x10' is not an INT"),
        ("TINYINT", "128", "'128' is out of range for TINYINT"),
        ("DOUBLE", "inf", "'inf' is not a DOUBLE"),
        ("DOUBLE", "1e400", "'1e400' is out of range for DOUBLE"),
        ("FLOAT", "1e39", "'1e39' is out of range for FLOAT"),
        ("DECIMAL(5, 2)", " 1", "' 1' is not a DECIMAL(5, 2)"),
        ("DECIMAL(5, 2)", "123456", "'123456' is out of range for DECIMAL(5, 2)"),
        ("DATE", "20180102", "'20180102' is not a DATE, write 'yyyy-MM-dd'"),
        ("DATE", "2021-02-30", "'2021-02-30' is not a DATE, write 'yyyy-MM-dd'"),
        ("TIMESTAMP(3)", "2018-10-12T12:12:12", "'2018-10-12T12:12:12' is not a TIMESTAMP, write"),
        ("TIMESTAMP_LTZ(3)", "2018-10-12 12:12:12", "'2018-10-12 12:12:12' is not a TIMESTAMP_LTZ"),
        ("BYTES", "a_-=", "'a_-=' is not base64 text"),
        ("ROW<a INT, b INT>", "1", "2 fields expected in the ROW, it has 1"),
    ],
)
@pytest.mark.parametrize("copies", [1, 1500])
def test_a_cell_that_does_not_fit_is_rejected_or_forgiven(sql_type, text, why, copies):
    message = f"BEGIN,{text},END".encode()
    good = b"BEGIN,,END" if sql_type.startswith("ROW") else None
    schema = framed(sql_type)
    messages = [message] + ([good] if good else []) + [message] * (copies - 1)
    decoded = build("csv").decoder(schema).decode(messages)
    assert len(decoded.rejected) == copies
    assert {
        r.reason for r in decoded.rejected if not r.reason.startswith(f"column 'f1': {why}")
    } == set()
    if not good:
        assert rows(schema, messages, IGNORE) == [("BEGIN", None, "END")] * copies


def test_a_bad_element_is_named_by_its_place():
    assert rejection(framed("ARRAY<INT>"), b"a,1;x;3,b") == "column 'f1[1]': 'x' is not an INT"
    assert cell("ARRAY<INT>", "1;x;3", IGNORE) == [1, None, 3]
    why = rejection(framed("ROW<a INT, b INT>"), b"a,1;x,b")
    assert why == "column 'f1.b': 'x' is not an INT"


# --- records ----------------------------------------------------------------------------

THREE = table("STRING", "INT", "STRING")


def test_null_messages_are_no_rows():
    assert rows(THREE, [None, b"a,1,b", None]) == [("a", 1, "b")]


def test_too_few_fields_are_an_error_or_null():
    assert rejection(THREE, b"Test") == "3 fields expected, the message has 1"
    assert rows(THREE, [b"Test"], IGNORE) == [("Test", None, None)]


def test_missing_columns_can_be_an_error_even_when_ignoring():
    options = {**IGNORE, "fail-on-missing-columns": "true"}
    decoded = build("csv", options).decoder(THREE).decode([b"Test", b"a,1,b"])
    assert decoded.rows.num_rows == 1
    assert decoded.ignored == 1


def test_too_many_fields_reject_or_drop_the_row():
    assert rejection(THREE, b"a,1,b,c") == "3 fields expected, the message has 4"
    decoded = build("csv", IGNORE).decoder(THREE).decode([b"a,1,b,c", b"a,1,b"])
    assert decoded.rows.to_pylist() == [{"f0": "a", "f1": 1, "f2": "b"}]
    assert (decoded.origin.to_pylist(), decoded.ignored) == ([1], 1)


def test_extra_fields_can_be_ignored():
    options = {"ignore-trailing-unmappable": "true"}
    assert rows(THREE, [b"a,1,b,c,d"], options) == [("a", 1, "b")]


def test_a_trailing_delimiter_is_tolerated_unless_forbidden():
    assert rows(THREE, [b"a,1,b,", b"a,1,b, "]) == [("a", 1, "b")] * 2
    assert "has 4" in rejection(THREE, b"a,1,b,", {"allow-trailing-comma": "false"})


def test_only_the_first_record_of_a_message_is_read():
    assert rows(THREE, [b"a,1,b\nc,2,d", b"e,3,f\r\n", b"g,4,h\n"]) == [
        ("a", 1, "b"),
        ("e", 3, "f"),
        ("g", 4, "h"),
    ]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"", "the message holds no record"),
        (b'a,1,"b', "the quote at character 4 is never closed"),
        (b'a,"1"x,b', "'x' follows a closing quote at character 5"),
        (b"a,1,\xff", "column 'f2': byte 0xff is not UTF-8"),
    ],
)
@pytest.mark.parametrize("crowd", [0, 30, 1500])
def test_a_malformed_record_is_rejected_and_costs_no_neighbour(message, why, crowd):
    messages = [b"n,2,m"] * crowd + [message] + [b"n,2,m"] * crowd
    decoded = build("csv").decoder(THREE).decode(messages)
    assert decoded.rejected == [(crowd, why)]
    assert decoded.rows["f1"].to_pylist() == [2] * 2 * crowd
    dropped = build("csv", IGNORE).decoder(THREE).decode(messages)
    assert dropped.ignored == (0 if b"\xff" in message else 1)


def test_quotes_that_would_join_two_messages_do_not():
    messages = [b'a,1,"x', b'y",2,b', b"c,3,d\ne,4,f"] * 700
    decoded = build("csv").decoder(THREE).decode(messages)
    apart = [{"f0": 'y"', "f1": 2, "f2": "b"}, {"f0": "c", "f1": 3, "f2": "d"}]
    assert decoded.rows.to_pylist() == apart * 700
    assert [r.index for r in decoded.rejected] == list(range(0, 2100, 3))


def test_comments_are_data_unless_allowed():
    one = table("STRING", "INT")
    assert rows(one, [b"#Test,1"]) == [("#Test", 1)]
    options = {"allow-comments": "true"}
    assert rejection(one, b"#Test,1", options) == "the message holds no record"
    assert rows(one, [b"#Test\n a,1"], options) == [("a", 1)]
    decoded = build("csv", {**options, **IGNORE}).decoder(one).decode([b"#Test,1"] * 1500)
    assert (decoded.rows.num_rows, decoded.ignored) == (0, 1500)


def test_a_byte_order_mark_is_skipped():
    assert rows(table("STRING", "INT"), [b"\xef\xbb\xbfa,1"] * 3) == [("a", 1)] * 3


def test_blanks_are_trimmed_only_when_asked_and_never_inside_quotes():
    schema = table("STRING", "STRING", "STRING")
    message = b' a b , "c " , d'
    assert rows(schema, [message]) == [(" a b ", ' "c " ', " d")]
    assert rows(schema, [message], {"trim-spaces": "true"}) == [("a b", "c ", "d")]


def test_empty_fields_can_be_null():
    schema = table("STRING", "INT", "STRING")
    assert rows(schema, [b",,x"], {"empty-string-as-null": "true"}) == [(None, None, "x")]


def test_the_null_literal_is_exact_and_counts_inside_quotes():
    schema = table("STRING", "STRING", "STRING")
    assert rows(schema, [b'null,"null", null'], NULL) == [(None, None, " null")]


def test_null_in_a_not_null_column_rejects_the_message():
    schema = table("STRING", "INT NOT NULL")
    assert rejection(schema, b"a,null", NULL) == "column 'f1': NULL, but the column is NOT NULL"
    decoded = build("csv", NULL).decoder(schema).decode([b"a,1"] * 1500 + [b"b,null"])
    assert [r.index for r in decoded.rejected] == [1500]


def test_quotes_can_be_disabled():
    options = {"disable-quote-character": "true"}
    assert rows(table("STRING", "STRING"), [b'"abc,"d"'], options) == [('"abc', '"d"')]
    assert written("TIMESTAMP(0)", dt.datetime(2019, 12, 26, 12, 12, 12), options) == (
        "2019-12-26 12:12:12"
    )


@pytest.mark.parametrize("given", ["\t", "\\t", "\\u0009"])
def test_the_delimiter_may_be_a_tab_plain_or_escaped(given):
    options = {"field-delimiter": given}
    assert rows(table("STRING", "INT"), [b"a,b\t1"], options) == [("a,b", 1)]
    assert encode("csv", table("STRING", "INT"), [{"f0": "a", "f1": 1}], options) == [b"a\t1"]


def test_a_delimiter_outside_ascii_works_too():
    options = {"field-delimiter": "§"}
    assert rows(table("STRING", "INT"), ["a§1".encode()], options) == [("a", 1)]
    assert encode("csv", table("STRING", "INT"), [{"f0": "ä§", "f1": 1}], options) == [
        '"ä§"§1'.encode()
    ]


@pytest.mark.parametrize("copies", [1, 1500])
def test_projection_keeps_places_and_order(copies):
    decoded = build("csv").decoder(THREE, ["f2", "f0"]).decode([b"a,not a number,b"] * copies)
    assert decoded.rows.schema.names == ["f2", "f0"]
    assert decoded.rows.to_pylist() == [{"f2": "b", "f0": "a"}] * copies
    counted = build("csv").decoder(THREE, []).decode([b"a,x,b"] * copies + [b"a"])
    assert counted.rows.num_rows == copies
    assert counted.origin.to_pylist() == list(range(copies))


# --- writing ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("Hello", {}, "Hello"),
        ("a b", {}, '"a b"'),
        ("a,b", {}, '"a,b"'),
        ('a"b', {}, '"a""b"'),
        ("a\\b", {}, '"a\\b"'),
        ("a-b", {}, "a-b"),
        ("x" * 24, {}, "x" * 24),
        ("x" * 25, {}, '"' + "x" * 25 + '"'),
        ("ä" * 24, {}, "ä" * 24),
        ("😀" * 12, {}, "😀" * 12),
        ("😀" * 13, {}, '"' + "😀" * 13 + '"'),
        ("line\nfeed", {}, '"line\nfeed"'),
        ("12:30", {"field-delimiter": ";"}, '"12:30"'),
        ("abc", {"field-delimiter": ";"}, "abc"),
        ("a*b'c", CUSTOM, "'a**b''c'"),
        ("", {}, ""),
        (None, {}, ""),
        (None, NULL, "null"),
    ],
)
def test_a_text_is_quoted_where_flink_quotes_it(text, options, expected):
    assert written("STRING", text, options) == expected


def test_only_what_needs_quotes_gets_them_in_a_column():
    given = [{"f0": text} for text in ("a", "b c", None, "😀 d", "e" * 30)]
    assert encode("csv", table("STRING"), given) == [
        b"a",
        b'"b c"',
        b"",
        '"😀 d"'.encode(),
        b'"' + b"e" * 30 + b'"',
    ]


def test_dates_are_bare_and_timestamps_quoted():
    when = dt.datetime(2019, 12, 26, 12, 12, 12)
    assert written("DATE", when.date()) == "2019-12-26"
    assert written("TIMESTAMP(3)", when) == '"2019-12-26 12:12:12"'
    assert written("TIMESTAMP(3)", when, {"quote-character": "#"}) == "#2019-12-26 12:12:12#"


def test_decimals_are_plain_unless_scientific_notation_is_asked_for():
    schema = table("STRING", "DECIMAL(10, 3)", "BOOLEAN")
    row = {"f0": "abc", "f1": Decimal("100000"), "f2": False}
    options = {"field-delimiter": ";", "write-bigdecimal-in-scientific-notation": "true"}
    assert encode("csv", schema, [row], options) == [b"abc;1E+5;false"]
    options["write-bigdecimal-in-scientific-notation"] = "false"
    assert encode("csv", schema, [row], options) == [b"abc;100000.000;false"]
    assert encode("csv", schema, [row]) == [b"abc,100000.000,false"]


def test_rows_within_rows_keep_their_nulls():
    schema = table("ROW<a STRING, b INT>", "ROW<t TIMESTAMP(3), s STRING>")
    when = dt.datetime(2020, 1, 2, 3, 4, 5)
    given = [
        {"f0": {"a": "x", "b": None}, "f1": {"t": when, "s": "y"}},
        {"f0": None, "f1": {"t": None, "s": None}},
    ]
    messages = encode("csv", schema, given, NULL)
    assert messages == [b'x;null,"2020-01-02 03:04:05;y"', b"null,null;null"]
    assert [row for _, row in decode("csv", schema, messages, NULL)] == given


def test_null_in_a_not_null_column_is_not_written():
    schema = table("STRING", "INT NOT NULL")
    batch = pa.RecordBatch.from_pylist([{"f0": "a", "f1": 1}, {"f0": "b"}], schema=schema)
    with pytest.raises(RecordError, match="row 1, column 'f1': NULL, but it is NOT NULL"):
        build("csv").encoder(schema).encode(batch)


def test_large_batches_survive_a_round_trip():
    schema = table("BIGINT", "STRING", "DOUBLE", "TIMESTAMP(3)", "BOOLEAN")
    given = [
        {
            "f0": n,
            "f1": ["plain", "with, comma", 'with "quote"', "", "ünï"][n % 5],
            "f2": n / 8,
            "f3": dt.datetime(2024, 1, 1) + dt.timedelta(milliseconds=n),
            "f4": n % 2 == 0,
        }
        for n in range(20_000)
    ]
    messages = encode("csv", schema, given)
    assert [row for _, row in decode("csv", schema, messages)] == given


# --- options and schema -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"field-delimiter": "abc"}, "field-delimiter: 'abc' must be a single character"),
        ({"quote-character": "ab"}, "quote-character: 'ab' must be a single character"),
        ({"array-element-delimiter": ""}, "array-element-delimiter: '' must be a single character"),
        ({"escape-character": "\\t"}, "escape-character: '\\t' must be a single character"),
        (
            {"disable-quote-character": "true", "quote-character": "#"},
            "quote-character: cannot be set while quotes are disabled",
        ),
        ({"ignore-parse-errors": "maybe"}, "ignore-parse-errors: 'maybe' is not true or false"),
    ],
)
def test_a_bad_option_is_named_with_what_would_be_right(options, complaint):
    with pytest.raises(OptionError) as caught:
        build("csv", options)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("sql_type", "complaint"),
    [
        ("MAP<STRING, INT>", "f0: CSV cannot carry MAP"),
        ("MULTISET<STRING>", "f0: CSV cannot carry MULTISET"),
        ("ROW<a ROW<b INT>>", "f0.a: CSV carries ARRAY and ROW of simple types only, one level"),
        ("ARRAY<ARRAY<INT>>", "f0.element: CSV carries ARRAY and ROW of simple types only"),
        ("TIME(5)", "f0: CSV carries TIME up to precision 3, not TIME(5)"),
    ],
)
def test_types_without_a_cell_are_refused_when_planning(sql_type, complaint):
    for run in (lambda s: decode("csv", s, []), lambda s: encode("csv", s, [])):
        with pytest.raises(OptionError) as caught:
            run(table(sql_type))
        assert complaint in str(caught.value)
