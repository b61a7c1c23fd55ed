"""The `avro` format as its users see it."""

import datetime as dt
import json
import re
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from streamcore import OptionError, RecordError
from streamcore.testing import decode, encode
from streamcore.testing.contracts import FormatContract
from streamcore.types import arrow_schema
from streamcore_formats.avro.derive import mismatches
from streamcore_formats.avro.plain import Avro, Encoding
from streamcore_formats.avro.schema import parse

EVERYTHING = {
    "bool": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "name": "STRING",
    "bytes": "BYTES",
    "decimal": "DECIMAL(19, 6)",
    "date": "DATE",
    "time": "TIME(0)",
    "timestamp3": "TIMESTAMP(3)",
    "map": "MAP<STRING, BIGINT>",
    "map2map": "MAP<STRING, MAP<STRING, INT>>",
    "array": "ARRAY<DOUBLE>",
    "multiset": "MULTISET<STRING>",
    "row": "ROW<a INT NOT NULL, b ARRAY<ROW<c STRING>>>",
    "required": "INT NOT NULL",
}
ROW: dict[str, Any] = {
    "bool": True,
    "tinyint": 127,
    "smallint": -32768,
    "int": 2147483647,
    "bigint": -(2**63),
    "float": 1.5,
    "double": 1e300,
    "name": "Zoë",
    "bytes": b"\x00\xff",
    "decimal": Decimal("-1234567890123.456789"),
    "date": dt.date(1964, 2, 29),
    "time": dt.time(23, 59, 59),
    "timestamp3": dt.datetime(1931, 5, 1, 1, 2, 3, 123000),
    "map": {"a": 1, "b": None},
    "map2map": {"x": {"y": 7}, "z": None},
    "array": [1.0, None, -0.5],
    "multiset": {"twice": 2},
    "row": {"a": 1, "b": [{"c": "d"}, None]},
    "required": 0,
}
NOTHING: dict[str, Any] = {**dict.fromkeys(ROW), "required": 1}


class TestAvro(FormatContract):
    plugin = Avro()
    columns: ClassVar = {**EVERYTHING}


class TestAvroWithNewTimestamps(FormatContract):
    plugin = Avro(legacy_timestamps=False)
    columns: ClassVar = {
        "a": "TIMESTAMP(6)",
        "b": "TIMESTAMP_LTZ(3)",
        "c": "TIMESTAMP_LTZ(6)",
        "d": "ARRAY<TIMESTAMP_LTZ(6)>",
        "e": "ROW<x TIMESTAMP(6)>",
    }


class TestAvroInJson(FormatContract):
    plugin = Avro(encoding=Encoding.JSON, legacy_timestamps=False)


@pytest.mark.parametrize("encoding", ["binary", "json", "BINARY", "Json"])
def test_every_type_survives_byte_for_byte(encoding):
    schema, options = arrow_schema(EVERYTHING), {"encoding": encoding}
    messages = encode("avro", schema, [ROW, NOTHING], options)
    rows = [row for _, row in decode("avro", schema, messages, options)]
    assert rows == [ROW, NOTHING]
    assert encode("avro", schema, rows, options) == messages


@pytest.mark.parametrize("encoding", ["binary", "json"])
def test_a_null_message_is_no_row(encoding):
    assert decode("avro", arrow_schema({"a": "INT"}), [None], {"encoding": encoding}) == []


def test_json_says_which_branch_a_union_holds():
    schema = arrow_schema({"a": "INT", "b": "BYTES NOT NULL", "c": "ROW<d FLOAT>"})
    row = {"a": 1, "b": b"\xe9\x00", "c": {"d": 1.1}}
    [message] = encode("avro", schema, [row], {"encoding": "json"})
    assert message.decode() == (
        '{"a":{"int":1},"b":"é\\u0000",'
        '"c":{"org.apache.flink.avro.generated.record_c":{"d":{"float":1.1}}}}'
    )


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_json_carries_infinities_as_text(value):
    schema = arrow_schema({"a": "DOUBLE NOT NULL"})
    messages = encode("avro", schema, [{"a": value}], {"encoding": "json"})
    assert b'Infinity"' in messages[0]
    assert decode("avro", schema, messages, {"encoding": "json"}) == [("+I", {"a": value})]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"", "truncated"),
        (b"[]", "expected an object, found []"),
        (b'{"a":{"int":1}}', "'b' is missing"),
        (b'{"a":1,"b":"x"}', "'a': a union is null or an object that names its type: null or int"),
        (b'{"a":{"long":1},"b":"x"}', "'a': 'long' is no branch of the union"),
        (b'{"a":{"int":1.5},"b":"x"}', "'a': expected int, found 1.5"),
        (b'{"a":{"int":true},"b":"x"}', "'a': expected int, found true"),
        (b'{"a":{"int":3000000000},"b":"x"}', "'a': 3000000000 does not fit INT"),
        (b'{"a":null,"b":null}', "'b': expected text, found null"),
        (b'{"a":null,"b":"x","c":1}', "'c' is unknown"),
        (b'{"a":null,"b":"\xff"}', "UTF-8"),
        (b'{"a":null,"b":"x"} {', "trailing"),
        (b'{"a":' * 50_000, "too deeply"),
        (b'{"a":{"int":' + b"1" * 400 + b'},"b":"x"}', "1111... does not fit INT"),
        (b'{"a":{"' + b"t" * 400 + b'":1},"b":"x"}', "tttt...' is no branch of the union"),
        (b'{"a":null,"b":"x","' + b"n" * 400 + b'":1}', "nnnn...' is unknown"),
        (b"[" * 300 + b"1e999" + b"]" * 300, "Number out of range - at `$[...]...`"),
    ],
)
def test_bad_json_is_rejected_with_the_place(message, why):
    schema = arrow_schema({"a": "INT", "b": "STRING NOT NULL"})
    good = b'{"a":{"int":5},"b":"x"}'
    decoded = Avro(encoding=Encoding.JSON).decoder(schema).decode([good, message, good])
    assert [index for index, _ in decoded.rejected] == [1]
    assert why in decoded.rejected[0].reason
    assert len(decoded.rejected[0].reason) < 200
    assert decoded.origin.to_pylist() == [0, 2]


@pytest.mark.parametrize(
    ("sql", "value", "why"),
    [
        ("DOUBLE", b"1" * 400, "'a': 111"),
        ("DOUBLE", b"1" * 5_000, "out of range"),
        ("DOUBLE", b"1e400", "out of range"),
        ("FLOAT", b"-1e300", "'a': -1e+300 does not fit FLOAT"),
        ("FLOAT", b"3.4028235677973366e38", "'a': 3.4028235677973366e+38 does not fit FLOAT"),
        ("DECIMAL(4, 2)", b'"' + b"9" * 400 + b'"', "'a': decimal '999"),
    ],
)
def test_json_numbers_too_large_for_their_column_are_rejected(sql, value, why):
    schema = arrow_schema({"a": f"{sql} NOT NULL"})
    good = b'{"a":"d"}' if sql.startswith("DECIMAL") else b'{"a":1.5}'
    decoder = Avro(encoding=Encoding.JSON).decoder(schema)
    decoded = decoder.decode([good, b'{"a":' + value + b"}", good])
    assert decoded.origin.to_pylist() == [0, 2]
    [(_, reason)] = decoded.rejected
    assert why in reason
    assert len(reason) < 200


def test_json_numbers_that_just_fit_are_read():
    schema = arrow_schema({"a": "FLOAT NOT NULL", "b": "DOUBLE NOT NULL"})
    messages = [b'{"a":3.4028235e38,"b":1e308}', b'{"a":"-Infinity","b":"Infinity"}']
    rows = Avro(encoding=Encoding.JSON).decoder(schema).decode(messages).rows.to_pylist()
    assert rows[0] == {"a": 3.4028234663852886e38, "b": 1e308}
    assert rows[1] == {"a": float("-inf"), "b": float("inf")}


# --- the schema a table gets --------------------------------------------------------------


def derived(columns, **options):
    schema = arrow_schema(columns)
    text, problems = Avro(**options).derived(schema)
    assert not problems, problems
    return json.loads(text)


def test_the_record_has_the_name_registries_already_know():
    assert derived({"a": "STRING"}) == {
        "type": "record",
        "name": "record",
        "namespace": "org.apache.flink.avro.generated",
        "fields": [{"name": "a", "type": ["null", "string"], "default": None}],
    }


def test_nested_rows_are_named_after_their_path():
    columns = {
        "row1": "ROW<a STRING> NOT NULL",
        "row2": "ROW<row3 ROW<b ARRAY<ROW<c INT>>>>",
        "rows": "MAP<STRING, ROW<d INT>>",
    }
    names = re.findall(r'"type": "record", "name": "(\w+)"', json.dumps(derived(columns)))
    assert names == [
        "record",
        "record_row1",
        "record_row2",
        "record_row2_row3",
        "record_row2_row3_b",
        "record_rows",
    ]


@pytest.mark.parametrize(
    ("sql", "avro"),
    [
        ("BOOLEAN", "boolean"),
        ("TINYINT", "int"),
        ("SMALLINT", "int"),
        ("INT", "int"),
        ("BIGINT", "long"),
        ("FLOAT", "float"),
        ("DOUBLE", "double"),
        ("CHAR(3)", "string"),
        ("VARBINARY(9)", "bytes"),
        (
            "DECIMAL(10, 2)",
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        ),
        ("DATE", {"type": "int", "logicalType": "date"}),
        ("TIME(3)", {"type": "int", "logicalType": "time-millis"}),
        ("TIMESTAMP(3)", {"type": "long", "logicalType": "timestamp-millis"}),
        ("ARRAY<INT>", {"type": "array", "items": ["null", "int"]}),
        ("ARRAY<INT NOT NULL>", {"type": "array", "items": "int"}),
        ("MAP<STRING, INT>", {"type": "map", "values": ["null", "int"]}),
        ("MULTISET<STRING>", {"type": "map", "values": ["null", "int"]}),
    ],
)
def test_each_sql_type_has_its_avro_type(sql, avro):
    not_null = derived({"a": f"{sql} NOT NULL"})["fields"][0]
    nullable = derived({"a": sql})["fields"][0]
    assert not_null == {"name": "a", "type": avro}
    assert nullable == {"name": "a", "type": ["null", avro], "default": None}


@pytest.mark.parametrize(
    ("sql", "logical"),
    [
        ("TIMESTAMP(3)", "local-timestamp-millis"),
        ("TIMESTAMP(6)", "local-timestamp-micros"),
        ("TIMESTAMP_LTZ(3)", "timestamp-millis"),
        ("TIMESTAMP_LTZ(6)", "timestamp-micros"),
    ],
)
def test_the_new_timestamp_mapping_reaches_into_nested_types(sql, logical):
    wanted = {"type": "long", "logicalType": logical}
    inside = derived({"a": f"ARRAY<{sql} NOT NULL> NOT NULL"}, legacy_timestamps=False)
    assert inside["fields"][0]["type"]["items"] == wanted


@pytest.mark.parametrize("null", ["", " NOT NULL"])
def test_a_derived_schema_describes_the_table_it_came_from(null):
    there = {k: v for k, v in EVERYTHING.items() if k not in ("tinyint", "smallint", "time")}
    schema = arrow_schema({name: sql.removesuffix(null) + null for name, sql in there.items()})
    text, _ = Avro().derived(schema)
    assert list(mismatches(parse(text), schema)) == []
    assert list(mismatches(parse(f'["null", {text}]'), schema)) == []


def test_microseconds_are_written_as_microseconds():
    schema, options = (
        arrow_schema({"a": "TIMESTAMP(6) NOT NULL"}),
        {"timestamp_mapping.legacy": "false"},
    )
    [message] = encode("avro", schema, [{"a": dt.datetime(1970, 1, 1, 0, 0, 0, 1)}], options)
    assert message == b"\x02"


@pytest.mark.parametrize(
    ("columns", "trouble"),
    [
        ({"a": "TIMESTAMP(6)"}, "a: the legacy timestamp mapping holds TIMESTAMP(3) at most"),
        (
            {"a": "ROW<b TIMESTAMP_LTZ(3)>"},
            "a.b: the legacy timestamp mapping has no TIMESTAMP_LTZ",
        ),
        ({"a": "TIME(6)"}, "a: Avro's time-millis holds TIME(3) at most"),
        ({"a": "INTERVAL YEAR TO MONTH"}, "a: INTERVAL YEAR TO MONTH has no Avro type"),
        ({"a": "INTERVAL DAY TO SECOND"}, "a: INTERVAL DAY TO SECOND has no Avro type"),
        ({"a": "MAP<INT, INT>"}, "a: the keys of an Avro map are text"),
        ({"my-col": "INT"}, "my-col: Avro names have only letters, digits and '_'"),
        (
            {"a_b": "ROW<c INT>", "a": "ROW<b ROW<c INT>>"},
            "a.b: a second record called 'record_a_b' would be needed; rename one of the columns",
        ),
    ],
)
def test_a_table_avro_cannot_carry_is_refused_when_planned(columns, trouble):
    with pytest.raises(OptionError) as error:
        encode("avro", arrow_schema(columns), [])
    assert trouble in str(error.value)


def test_nanoseconds_are_refused_by_the_new_mapping_too():
    with pytest.raises(OptionError, match=r"a: Avro timestamps hold a precision of 6 at most"):
        decode(
            "avro", arrow_schema({"a": "TIMESTAMP(9)"}), [], {"timestamp_mapping.legacy": "false"}
        )


@pytest.mark.parametrize(
    ("options", "trouble"),
    [
        ({"encoding": "text"}, "encoding: 'text' is not one of binary, json"),
        ({"codec": "lz5"}, "codec: 'lz5' is not one of null, deflate, snappy, bzip2, xz"),
        ({"timestamp_mapping.legacy": "no"}, "'no' is not true or false"),
        ({"ignore-parse-errors": "true"}, "ignore-parse-errors: unknown option"),
    ],
)
def test_options_are_checked(options, trouble):
    with pytest.raises(OptionError) as error:
        decode("avro", arrow_schema({"a": "INT"}), [], options)
    assert trouble in str(error.value)


# --- writing ------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize(
    ("columns", "rows", "trouble"),
    [
        ({"a": "INT NOT NULL"}, [{"a": 1}, {"a": None}], "row 1: 'a': null, but it is NOT NULL"),
        (
            {"a": "ROW<b ARRAY<INT NOT NULL>>"},
            [{"a": None}, {"a": {"b": None}}, {"a": {"b": [1, None]}}],
            "row 2: 'a.b': null, but it is NOT NULL",
        ),
        (
            {"a": "MAP<STRING, ROW<b INT NOT NULL>>"},
            [{"a": {"k": {"b": None}}}],
            "row 0: 'a.b': null, but it is NOT NULL",
        ),
    ],
)
def test_null_in_a_not_null_column_is_refused_by_row_and_column(encoding, columns, rows, trouble):
    schema = arrow_schema(columns)
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    with pytest.raises(RecordError) as error:
        Avro(encoding=encoding).encoder(schema).encode(batch)
    assert str(error.value) == trouble


def test_not_null_fields_below_a_null_row_are_fine():
    schema = arrow_schema({"a": "ROW<b INT NOT NULL>"})
    rows = [{"a": None}, {"a": {"b": 1}}]
    assert [row for _, row in decode("avro", schema, encode("avro", schema, rows))] == rows


def test_a_slice_of_a_batch_is_written_as_itself():
    schema = arrow_schema(EVERYTHING)
    batch = pa.RecordBatch.from_pylist([NOTHING, ROW, NOTHING, ROW], schema=schema)
    encoder = Avro().encoder(schema)
    assert encoder.encode(batch.slice(1, 2)) == encoder.encode(batch)[1:3]


def test_no_rows_give_no_messages():
    schema = arrow_schema(EVERYTHING)
    assert encode("avro", schema, []) == []


# --- reading ------------------------------------------------------------------------------


def test_only_wanted_columns_come_back_and_the_layout_stays_the_tables():
    schema = arrow_schema(EVERYTHING)
    messages = encode("avro", schema, [ROW, NOTHING])
    decoded = Avro().decoder(schema, ["name", "int"]).decode(messages)
    assert decoded.rows.to_pylist() == [
        {"name": "Zoë", "int": 2147483647},
        {"name": None, "int": None},
    ]


def test_no_columns_still_count_rows():
    schema = arrow_schema(EVERYTHING)
    messages = encode("avro", schema, [ROW, NOTHING])
    decoded = Avro().decoder(schema, []).decode([*messages, None, b"\x07"])
    assert decoded.rows.num_rows == 2
    assert decoded.origin.to_pylist() == [0, 1]
    assert [index for index, _ in decoded.rejected] == [3]


@pytest.mark.parametrize(
    ("sql", "message", "why"),
    [
        ("INT", b"", "'a': ends inside a number at byte 0"),
        ("INT", b"\x04\x02", "'a': union branch 2 of 2 at byte 0"),
        ("INT", b"\x02\x02\x00", "1 bytes left over at byte 2"),
        ("INT", b"\x02\x80\x80\x80\x80\x20", "'a': 4294967296 at byte 1 does not fit INT"),
        ("TINYINT", b"\x02\x80\x02", "'a': 128 at byte 1 does not fit TINYINT"),
        ("INT", b"\x02" + b"\xff" * 11, "'a': number of more than 10 bytes at byte 1"),
        ("TIME(3)", b"\x02\x80\xf0\xb2\x52", "'a': 86400000 at byte 1 does not fit TIME(3)"),
        ("STRING", b"\x02\x06ab", "'a': value of 3 bytes at byte 2, but only 2 are left"),
        ("STRING", b"\x02\x01", "'a': length of -1 bytes at byte 1"),
        ("STRING", b"\x02\x04\xc3\x28", "'a': text at byte 1 is not UTF-8"),
        ("BOOLEAN", b"\x02\x02", "'a': boolean of 0x02 at byte 1"),
        ("DECIMAL(3, 1)", b"\x02\x00", "'a': decimal of no bytes at byte 1"),
        ("DECIMAL(3, 1)", b"\x02\x04\x03\xe8", "'a': decimal at byte 1 does not fit DECIMAL(3, 1)"),
        ("ARRAY<INT>", b"\x02\x08\x00\x00", "'a': 4 items declared at byte 1, more than can be"),
        ("ROW<b INT NOT NULL>", b"\x02\x80", "'a.b': ends inside a number at byte 1"),
    ],
)
def test_a_bad_datum_costs_one_message_and_says_where(sql, message, why):
    schema = arrow_schema({"a": sql})
    decoded = Avro().decoder(schema).decode([b"\x00", message, b"\x00"])
    assert decoded.rows.to_pylist() == [{"a": None}, {"a": None}]
    assert decoded.origin.to_pylist() == [0, 2]
    assert [index for index, _ in decoded.rejected] == [1]
    assert why in decoded.rejected[0].reason


def test_a_key_given_twice_counts_once_the_last_time():
    schema = arrow_schema({"a": "MAP<STRING, INT NOT NULL> NOT NULL"})
    twins = b"\x04\x02k\x02\x02k\x04\x00"
    decoded = Avro().decoder(schema).decode([twins, b"\x00"])
    assert decoded.rows.to_pylist() == [{"a": [("k", 2)]}, {"a": []}]


def test_bad_messages_in_a_large_batch_cost_only_themselves():
    schema = arrow_schema({"a": "BIGINT", "b": "STRING"})
    rows = [{"a": n, "b": str(n)} for n in range(5_000)]
    messages = encode("avro", schema, rows)
    bad = {17, 1_000, 1_001, 4_999}
    mixed = [message + b"!" if n in bad else message for n, message in enumerate(messages)]
    decoded = Avro().decoder(schema).decode(mixed)
    assert [index for index, _ in decoded.rejected] == sorted(bad)
    assert decoded.rows.to_pylist() == [row for n, row in enumerate(rows) if n not in bad]
    assert decoded.origin.to_pylist() == [n for n in range(5_000) if n not in bad]
