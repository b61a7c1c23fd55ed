"""Aggregates over changes take rows back by sign; what cannot is refused with what to do."""

import re

import pytest
from sqlglot import parse_one
from streamcore_sql.cursor import SqlText
from streamcore_sql.errors import SqlError
from streamcore_sql.parser import parse
from streamcore_sql.planner.retraction import aggregate_by_sign, filter_by_kind

PRICE = "CAST('1234567890123456.123456789012345678' AS DECIMAL(38, 18))"
KEPT = f"""VALUES ('a', 3L, {PRICE}), ('a', NULL, {PRICE}), ('b', NULL, NULL), ('c', 5L, -{PRICE})
  AS t (k, x, price)"""
CHANGES = f"""VALUES ('a', 1L, {PRICE}, '+I'), ('a', NULL, {PRICE}, '+I'), ('b', 7L, {PRICE}, '+I'),
  ('b', NULL, NULL, '+I'), ('a', 1L, {PRICE}, '-U'), ('a', 3L, {PRICE}, '+U'),
  ('b', 7L, {PRICE}, '-U'), ('c', 5L, -{PRICE}, '+U'), ('gone', 2L, {PRICE}, '+I'),
  ('gone', 2L, {PRICE}, '-D') AS t (k, x, price, _row_kind)"""


def text(sql):
    (statement,) = parse(sql)
    return statement.query


def rewritten(sql):
    tree = parse_one(sql, read="spark")
    aggregate_by_sign(tree, text(sql))
    return tree.sql(dialect="spark", normalize_functions=False)


@pytest.fixture(scope="module")
def tables(spark):
    spark.sql(f"SELECT * FROM {CHANGES}").createTempView("changes")
    spark.sql(f"SELECT * FROM {KEPT}").createTempView("kept")
    yield
    for view in ("changes", "kept"):
        spark.catalog.dropTempView(view)


def rows(spark, sql):
    """Of changes: what is left when those that delete have deleted."""
    found = [row.asDict() for row in spark.sql(sql).collect()]
    left = [row for row in found if row.pop("_row_kind", "+U") != "-D"]
    return sorted((tuple(row.values()) for row in left), key=str)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(*), COUNT(1), COUNT(x), SUM(x), AVG(x) FROM t GROUP BY k",
        "SELECT k, SUM(x + 1), SUM(price), SUM(-price) FROM t GROUP BY k",
        "SELECT COUNT(*), COUNT(x), SUM(x), AVG(x) FROM t",
        "SELECT k, COUNT(*) FILTER (WHERE x > 3), SUM(x) FILTER (WHERE x > 3) FROM t GROUP BY k",
        "SELECT k, COUNT(*) FROM t GROUP BY k HAVING COUNT(*) > 1",
        "SELECT k, COUNT(*) FROM t GROUP BY k HAVING SUM(x) > 1",
        "SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING n < 2",
        "SELECT UPPER(k), COUNT(*) * 2 + SUM(x) FROM t GROUP BY UPPER(k)",
        "SELECT x > 3 AS large, COUNT(*) FROM t GROUP BY x > 3",
    ],
)
def test_what_is_left_counts_as_if_nothing_else_had_been_there(spark, tables, query):
    changed = rewritten(query.replace("FROM t", "FROM changes"))
    assert rows(spark, changed) == rows(spark, query.replace("FROM t", "FROM kept"))


def test_a_total_of_nothing_is_a_row_with_nothing_in_it(spark, tables):
    query = "SELECT COUNT(*), COUNT(x), SUM(x), AVG(x) FROM changes"
    everything = rewritten(query.replace("changes", "changes WHERE k = 'gone'"))
    assert rows(spark, everything) == [(0, 0, None, None)]


@pytest.mark.parametrize("columns", ["k, n", "*"])
def test_a_group_that_no_longer_meets_a_condition_around_it_is_deleted(spark, tables, columns):
    inner = rewritten("SELECT k, COUNT(*) AS n FROM changes GROUP BY k")
    outer = parse_one(f"SELECT {columns} FROM ({inner}) WHERE n > 1", read="spark")
    filter_by_kind(outer)
    found = {row.k: (row.n, row["_row_kind"]) for row in spark.sql(outer.sql("spark")).collect()}
    assert found == {"a": (2, "+U"), "b": (1, "-D"), "c": (1, "-D"), "gone": (0, "-D")}


@pytest.mark.parametrize(
    "aggregate",
    [
        "MIN(x)",
        "MAX(x)",
        "COUNT(DISTINCT x)",
        "SUM(DISTINCT x)",
        "COUNT(x, y)",
        "MAX_BY(x, y)",
        "COLLECT_LIST(x)",
        "TRY_SUM(x)",
        "HLL_SKETCH_AGG(x)",
    ],
)
def test_what_cannot_take_a_row_back_is_refused_by_its_name(aggregate):
    with pytest.raises(SqlError, match=re.escape(aggregate) + " cannot take a row back"):
        rewritten(f"SELECT k, {aggregate} FROM t GROUP BY k")


def test_functions_of_what_rows_are_grouped_by_are_no_aggregates():
    for query in (
        "SELECT my_function(k), COUNT(*) FROM t GROUP BY k",
        "SELECT my_function(x) AS k, COUNT(*) FROM t GROUP BY k",
        "SELECT my_function(x), COUNT(*) FROM t GROUP BY 1",
        "SELECT my_function(SUM(x)), COUNT(*) FROM t GROUP BY k",
    ):
        assert "my_function(" in rewritten(query).lower()


def test_the_query_text_is_what_the_statement_kept():
    assert isinstance(text("SELECT 1 FROM t"), SqlText)
