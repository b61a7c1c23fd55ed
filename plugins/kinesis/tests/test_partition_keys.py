"""Partition keys are spelled exactly, in clause order, and never longer than 256 characters."""

import pyarrow as pa
import pytest
from streamcore import Column, Table
from streamcore_kinesis.partition_keys import partition_problems, spelled_keys

ROWS = pa.RecordBatch.from_pydict(
    {
        "a": pa.array(["x", None]),
        "b": pa.array([1, 2]),
        "c": pa.array([True, False]),
        "d": pa.array([1.0, 1e10]),
    }
)


@pytest.mark.parametrize("delimiter", ["", "|", ",", "--"])
def test_columns_are_joined_in_clause_order(delimiter):
    assert spelled_keys(ROWS, ["b", "a"], delimiter) == [f"1{delimiter}x", f"2{delimiter}null"]


def test_booleans_and_floats_are_spelled_as_java_does():
    assert spelled_keys(ROWS, ["c", "d"], "|") == ["true|1.0", "false|1.0E10"]


@pytest.mark.parametrize(
    ("first", "second", "length"), [(300, 1, 256), (255, 5, 255), (254, 5, 256), (100, 100, 201)]
)
def test_keys_are_cut_at_256_characters(first, second, length):
    rows = pa.RecordBatch.from_pydict({"a": ["x" * first], "b": ["y" * second]})
    assert len(spelled_keys(rows, ["a", "b"], "|")[0]) == length


SPELLED_ALIKE = [
    (1.0, "1.0"),
    (100.0, "100.0"),
    (-2.5, "-2.5"),
    (1234567.0, "1234567.0"),
    (9999999.0, "9999999.0"),
    (1e7, "1.0E7"),
    (12345678.0, "1.2345678E7"),
    (1e10, "1.0E10"),
    (0.1, "0.1"),
    (0.001, "0.001"),
    (0.0001, "1.0E-4"),
    (1e-5, "1.0E-5"),
    (0.0, "0.0"),
    (-0.0, "-0.0"),
    (float("nan"), "NaN"),
    (float("inf"), "Infinity"),
    (float("-inf"), "-Infinity"),
]
FLOATS = [
    (0.3, "0.3"),
    (16777216.0, "1.6777216E7"),
    (33554432.0, "3.3554432E7"),
    (2**-149, "1.4E-45"),
    (2 * 2**-149, "2.8E-45"),
    (7 * 2**-149, "9.8E-45"),
    (2**-126, "1.1754944E-38"),
    (3.4028234663852886e38, "3.4028235E38"),
    (8.41e21, "8.41E21"),
    (2e-3, "0.002"),
    (1 / 3, "0.33333334"),
]
DOUBLES = [
    (2**-1074, "4.9E-324"),
    (2 * 2**-1074, "9.9E-324"),
    (2**-1022, "2.2250738585072014E-308"),
    (1.7976931348623157e308, "1.7976931348623157E308"),
    (2e23, "2.0E23"),
    (1e23, "1.0E23"),
    (1 / 3, "0.3333333333333333"),
]


@pytest.mark.parametrize(
    ("arrow", "value", "text"),
    [(pa.float32(), *pair) for pair in SPELLED_ALIKE + FLOATS]
    + [(pa.float64(), *pair) for pair in SPELLED_ALIKE + DOUBLES],
)
def test_floats_are_spelled_as_java_prints_them(arrow, value, text):
    rows = pa.RecordBatch.from_arrays([pa.array([value, None], arrow)], ["x"])
    assert spelled_keys(rows, ["x"], "|") == [text, "null"]


def test_characters_count_as_in_java_and_are_never_cut_in_half():
    smile = "\N{GRINNING FACE}"  # counts twice
    batch = pa.RecordBatch.from_pydict({"a": [smile * 200, "x" + smile * 200], "b": ["tail"] * 2})
    assert spelled_keys(batch, ["a", "b"], "|") == [smile * 128, "x" + smile * 127]


def test_unusable_partition_columns_are_named():
    table = Table(
        (
            Column("a", "STRING"),
            Column("at", "TIMESTAMP(3)"),
            Column("m", "STRING", metadata="shard-id"),
        ),
        partition_keys=("a", "a", "at", "m", "gone"),
    )
    assert [str(problem) for problem in partition_problems(table)] == [
        "PARTITIONED BY: column 'a' is listed twice",
        "PARTITIONED BY: column 'at' is TIMESTAMP(3), which has no partition key text; choose a "
        "column of CHAR, VARCHAR, STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE",
        "PARTITIONED BY: column 'm' is not a physical column",
        "PARTITIONED BY: column 'gone' is not a physical column",
    ]


SPELLABLE = ["CHAR(3)", "VARCHAR(9)", "STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT"]
SPELLABLE += ["FLOAT", "DOUBLE"]
UNSPELLABLE = ["DATE", "TIME(0)", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "BINARY(3)", "BYTES"]
UNSPELLABLE += ["VARBINARY(9)", "DECIMAL(10, 2)", "ARRAY<INT>", "MAP<STRING, INT>", "ROW<n INT>"]


@pytest.mark.parametrize("declared", SPELLABLE)
def test_columns_with_a_text_make_partition_keys(declared):
    table = Table((Column("a", declared),), partition_keys=("a",))
    assert list(partition_problems(table)) == []


@pytest.mark.parametrize("declared", UNSPELLABLE)
def test_columns_without_a_text_make_none(declared):
    table = Table((Column("a", declared),), partition_keys=("a",))
    (found,) = partition_problems(table)
    assert str(found).startswith(f"PARTITIONED BY: column 'a' is {declared}, which has no partit")
