"""Kinds of changes move between the words of several systems without being lost."""

import pytest
from pyspark.errors import PySparkException
from streamcore import OptionError
from streamcore.spark.changes import (
    from_change_types,
    from_changelog,
    to_change_types,
    to_changelog,
)

CHANGES = [(1, "a", "+I"), (1, "a", "-U"), (1, "b", "+U"), (2, "c", "-D")]


@pytest.fixture
def changes(spark):
    return spark.createDataFrame(CHANGES, "id INT, v STRING, _row_kind STRING")


def rows(frame):
    return [tuple(row) for row in frame.collect()]


def test_changes_become_plain_rows_and_changes_again(changes):
    plain = to_changelog(changes)
    assert plain.columns == ["op", "id", "v"]
    assert [row.op for row in plain.collect()] == [
        "INSERT",
        "UPDATE_BEFORE",
        "UPDATE_AFTER",
        "DELETE",
    ]
    assert rows(from_changelog(plain)) == CHANGES


def test_words_can_be_chosen_and_what_has_none_is_left_out(changes):
    words = {"INSERT, UPDATE_AFTER": "u", "DELETE": "d"}
    assert rows(to_changelog(changes, "what", words)) == [
        ("u", 1, "a"),
        ("u", 1, "b"),
        ("d", 2, "c"),
    ]


def test_words_of_another_system_are_read(spark):
    frame = spark.createDataFrame([(1, "c"), (2, "r"), (3, "u"), (4, "d")], "id INT, op STRING")
    words = {"c, r": "INSERT", "u": "UPDATE_AFTER", "d": "DELETE"}
    assert rows(from_changelog(frame, op_mapping=words)) == [
        (1, "+I"),
        (2, "+I"),
        (3, "+U"),
        (4, "-D"),
    ]


def test_an_unknown_word_fails_or_is_skipped(spark):
    frame = spark.createDataFrame([(1, "INSERT"), (2, "TRUNCATE"), (3, None)], "id INT, op STRING")
    assert rows(from_changelog(frame, error_handling="SKIP")) == [(1, "+I")]
    with pytest.raises(PySparkException, match="op: 'TRUNCATE' is not one of DELETE, INSERT, UPD"):
        from_changelog(frame).collect()


def test_sparks_own_change_types_are_understood_both_ways(changes):
    told = to_change_types(changes)
    assert [row._change_type for row in told.collect()] == [
        "insert",
        "update_preimage",
        "update_postimage",
        "delete",
    ]
    assert rows(from_change_types(told)) == CHANGES


def test_rows_without_a_kind_are_inserts(spark):
    frame = spark.createDataFrame([(1,)], "id INT")
    assert rows(to_changelog(frame)) == [("INSERT", 1)]


def test_an_operation_that_does_not_exist_is_named(changes):
    with pytest.raises(OptionError, match="op_mapping: 'UPSERT' is not one of INSERT, UPDATE_BEF"):
        to_changelog(changes, op_mapping={"UPSERT": "u"})
