"""`raw`, behaviour by behaviour."""

from __future__ import annotations

import pyarrow as pa
import pytest
from streamcore import OptionError, RecordError
from streamcore.testing import decode, encode
from streamcore.testing.codec import build
from streamcore.types import arrow_field

LITTLE = {"endianness": "little-endian"}


def table(sql_type: str, nullable: bool = True) -> pa.Schema:
    return pa.schema([arrow_field("f", sql_type, nullable)])


def values(sql_type, messages, options=None):
    return [row["f"] for _, row in decode("raw", table(sql_type), messages, options)]


def written(sql_type, given, options=None):
    return encode("raw", table(sql_type), [{"f": value} for value in given], options)


def rejection(sql_type, message, options=None, nullable=True):
    decoded = build("raw", options).decoder(table(sql_type, nullable)).decode([message])
    assert decoded.rows.num_rows == 0
    [rejected] = decoded.rejected
    return rejected.reason


FLOAT_MAX = 3.4028234663852886e38
DOUBLE_MAX = 1.7976931348623157e308


@pytest.mark.parametrize(
    ("sql_type", "value", "hex_text", "options"),
    [
        ("TINYINT", 127, "7f", {}),
        ("SMALLINT", 32767, "7fff", {}),
        ("SMALLINT", 32767, "ff7f", LITTLE),
        ("INT", 2**31 - 1, "7fffffff", {}),
        ("INT", 2**31 - 1, "ffffff7f", LITTLE),
        ("INT", -2, "fffffffe", {"endianness": "BIG-ENDIAN"}),
        ("BIGINT", 2**63 - 1, "7fffffffffffffff", {}),
        ("BIGINT", 2**63 - 1, "ffffffffffffff7f", LITTLE),
        ("FLOAT", FLOAT_MAX, "7f7fffff", {}),
        ("FLOAT", FLOAT_MAX, "ffff7f7f", LITTLE),
        ("DOUBLE", DOUBLE_MAX, "7fefffffffffffff", {}),
        ("DOUBLE", DOUBLE_MAX, "ffffffffffffef7f", LITTLE),
        ("BOOLEAN", True, "01", {}),
        ("BOOLEAN", False, "00", {}),
        ("STRING", "Hello World", b"Hello World".hex(), {}),
        ("STRING", "", "", {}),
        ("STRING", "你好世界", "你好世界".encode().hex(), {}),
        ("STRING", "Hello", "feff00480065006c006c006f", {"charset": "UTF-16"}),
        ("STRING", "你好", "feff4f60597d", {"charset": "UTF-16"}),
        ("STRING", "你好", "4f60597d", {"charset": "UTF-16BE"}),
        ("STRING", "你好", "c4e3bac3", {"charset": "GBK"}),
        ("STRING", "é", "e9", {"charset": "ISO-8859-1"}),
        ("VARCHAR(20)", "abc", "616263", {}),
        ("BYTES", b"Hello\xff", b"Hello\xff".hex(), {}),
        ("BINARY(3)", b"\x01\x03\x05", "010305", {}),
    ],
)
def test_a_value_and_null_survive_a_round_trip(sql_type, value, hex_text, options):
    message = bytes.fromhex(hex_text)
    assert written(sql_type, [value, None], options) == [message, None]
    assert values(sql_type, [message], options) == [value]
    assert values(sql_type, [message, None, message], options) == [value, None, value]


@pytest.mark.parametrize("count", [1, 3, 20_000])
def test_numbers_and_texts_keep_their_place(count):
    numbers = list(range(count))
    assert values("BIGINT", written("BIGINT", numbers)) == numbers
    assert values("STRING", [str(n).encode() for n in numbers]) == [str(n) for n in numbers]


def test_utf16_without_a_mark_is_big_endian_and_a_mark_decides():
    assert values("STRING", ["你好".encode("utf-16-be")], {"charset": "UTF-16"}) == ["你好"]
    assert values("STRING", ["你好".encode("utf-16")], {"charset": "UTF-16"}) == ["你好"]


def test_any_byte_but_zero_is_true():
    assert values("BOOLEAN", [b"\x02", b"\x00"]) == [True, False]


@pytest.mark.parametrize(
    ("sql_type", "message", "why"),
    [
        ("INT", b"\x01\x02\x03", "column 'f': INT takes 4 bytes, the message has 3"),
        ("BOOLEAN", b"", "column 'f': BOOLEAN takes 1 byte, the message has 0"),
        ("DOUBLE", b"\x00" * 9, "column 'f': DOUBLE takes 8 bytes, the message has 9"),
        ("STRING", b"abc\xff", "column 'f': byte 3 is not UTF-8"),
    ],
)
def test_a_message_of_the_wrong_size_or_charset_is_rejected(sql_type, message, why):
    assert rejection(sql_type, message) == why


def test_one_bad_message_costs_no_neighbour():
    decoded = build("raw").decoder(table("INT")).decode([b"\0\0\0\1", b"\0", None, b"\0\0\0\2"])
    assert decoded.rows.to_pylist() == [{"f": 1}, {"f": None}, {"f": 2}]
    assert decoded.origin.to_pylist() == [0, 2, 3]
    assert [r.index for r in decoded.rejected] == [1]


def test_null_in_a_not_null_column_rejects_the_message():
    for sql_type in ("STRING", "INT", "BOOLEAN"):
        why = rejection(sql_type, None, nullable=False)
        assert why == "column 'f': NULL, but the column is NOT NULL"


def test_without_its_column_raw_still_counts_messages():
    decoded = build("raw").decoder(table("STRING"), []).decode([b"a", None, b"c"])
    assert decoded.rows.num_rows == 3
    assert decoded.origin.to_pylist() == [0, 1, 2]


# --- lines ------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", ["\n", "\\n", "\\u000a"])
def test_lines_become_rows_and_one_trailing_empty_part_is_dropped(delimiter):
    options = {"line-delimiter": delimiter}
    decoded = (
        build("raw", options)
        .decoder(table("STRING"))
        .decode([b"a\nb", b"", None, b"c\n", b"d\n\n", b"\n", b"e"])
    )
    assert decoded.rows["f"].to_pylist() == ["a", "b", "c", "d", "", "", "e"]
    assert decoded.origin.to_pylist() == [0, 0, 3, 4, 4, 5, 6]


def test_a_delimiter_may_be_longer_and_is_taken_literally():
    assert values("STRING", [b"a||b|c||"], {"line-delimiter": "||"}) == ["a", "b|c"]
    assert values("STRING", [b"a.b"], {"line-delimiter": "."}) == ["a", "b"]


def test_lines_are_split_after_decoding_the_charset():
    text = "你好\n世界"
    options = {"line-delimiter": "\n", "charset": "GBK"}
    assert values("STRING", [text.encode("gbk")], options) == ["你好", "世界"]
    assert written("STRING", ["你好"], options) == ["你好\n".encode("gbk")]


def test_the_delimiter_is_written_after_each_value_but_not_for_null():
    options = {"line-delimiter": "\\n"}
    assert written("STRING", ["a", None, ""], options) == [b"a\n", None, b"\n"]
    assert written("BYTES", [b"a"], options) == [b"a\n"]
    assert values("STRING", written("STRING", ["a", "b"], options), options) == ["a", "b"]
    assert values("BIGINT", [b"12345678\n\0\0\0\0\0\0\0\1"], options) == [0x3132333435363738, 1]


def test_without_a_delimiter_line_feeds_are_data():
    assert values("STRING", [b"a\nb\n"]) == ["a\nb\n"]


# --- options and schema -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"charset": "UNKNOWN"}, "charset: 'UNKNOWN' is not the name of a charset"),
        ({"charset": "base64"}, "charset: 'base64' is not the name of a charset"),
        ({"endianness": "BIG_ENDIAN"}, "'BIG_ENDIAN' is not one of big-endian, little-endian"),
        ({"line-delimiter": ""}, "line-delimiter: '' is empty"),
    ],
)
def test_a_bad_option_is_named_with_what_would_be_right(options, complaint):
    with pytest.raises(OptionError) as caught:
        build("raw", options)
    assert complaint in str(caught.value)


def test_more_than_one_column_is_refused_when_planning():
    schema = pa.schema([arrow_field("f0", "STRING"), arrow_field("f1", "BIGINT")])
    with pytest.raises(OptionError, match="exactly one column, the table has 2: `f0` STRING, `f1`"):
        decode("raw", schema, [])


@pytest.mark.parametrize(
    "sql_type", ["TIMESTAMP(3)", "DATE", "DECIMAL(5, 2)", "ARRAY<INT>", "INTERVAL YEAR TO MONTH"]
)
def test_types_without_a_byte_form_are_refused_when_planning(sql_type):
    with pytest.raises(OptionError) as caught:
        encode("raw", table(sql_type), [])
    assert f"f: 'raw' does not carry {sql_type}" in str(caught.value)


def test_a_character_outside_the_charset_is_not_written():
    with pytest.raises(RecordError, match="row 1, column 'f': '你' is not in charset US-ASCII"):
        written("STRING", ["a", "a你"], {"charset": "US-ASCII"})
