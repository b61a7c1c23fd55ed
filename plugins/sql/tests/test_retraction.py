"""Aggregates over changes take rows back by sign; what cannot is refused with what to do."""

import pytest
from sqlglot import parse_one
from streamcore_sql.cursor import SqlText
from streamcore_sql.errors import SqlError
from streamcore_sql.parser import parse
from streamcore_sql.planner.retraction import aggregate_by_sign

SIGN = "CASE WHEN `_row_kind` IN ('-U', '-D') THEN -1 ELSE 1 END"
KIND = f"IF(SUM({SIGN}) = 0, '-D', '+U') AS `_row_kind`"


def text(sql):
    (statement,) = parse(sql)
    return statement.query


def rewritten(sql):
    tree = parse_one(sql, read="spark")
    aggregate_by_sign(tree, text(sql))
    return tree.sql(dialect="spark", normalize_functions=False)


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("COUNT(*)", f"SUM({SIGN})"),
        ("COUNT(x)", f"SUM(IF(x IS NULL, 0, {SIGN}))"),
        ("SUM(x)", f"SUM((x) * {SIGN})"),
        ("SUM(x + 1)", f"SUM((x + 1) * {SIGN})"),
        (
            "AVG(x)",
            f"(SUM((x) * {SIGN}) / NULLIF(SUM(IF(x IS NULL, 0, {SIGN})), 0))",
        ),
    ],
)
def test_sums_of_signs(aggregate, expected):
    found = rewritten(f"SELECT k, {aggregate} AS a FROM t GROUP BY k")
    assert found == f"SELECT k, {expected} AS a, {KIND} FROM t GROUP BY k"


def test_a_group_that_no_longer_meets_having_is_deleted():
    found = rewritten("SELECT k, COUNT(*) FROM t GROUP BY k HAVING COUNT(*) > 1")
    assert "HAVING" not in found
    assert f"IF((SUM({SIGN}) = 0) OR NOT (SUM({SIGN}) > 1), '-D', '+U')" in found


@pytest.mark.parametrize("aggregate", ["MIN(x)", "MAX(x)", "COUNT(DISTINCT x)"])
def test_what_cannot_take_a_row_back_is_refused(aggregate):
    with pytest.raises(SqlError, match="cannot take a row back"):
        rewritten(f"SELECT k, {aggregate} FROM t GROUP BY k")


def test_the_query_text_is_what_the_statement_kept():
    assert isinstance(text("SELECT 1 FROM t"), SqlText)
