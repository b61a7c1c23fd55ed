"""Partition keys are spelled exactly, in clause order, and never longer than 256 characters."""

import pyarrow as pa
import pytest
from streamcore import Column, Table
from streamcore_kinesis.partition_keys import java_float, partition_problems, spelled_keys

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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.1, "0.1"),
        (100.0, "100.0"),
        (1234567.0, "1234567.0"),
        (12345678.0, "1.2345678E7"),
        (1e10, "1.0E10"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (-2.5, "-2.5"),
        (0.0, "0.0"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_floats_print_as_in_java(value, text):
    assert java_float(value) == text


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
