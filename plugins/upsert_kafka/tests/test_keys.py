"""Changes go only into tables whose primary key tells the same rows apart."""

import pytest
from streamcore_sql import Session, SqlError

TABLES = """
CREATE TABLE people (id INT, name STRING, city STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'kafka', 'topic' = 'people', 'properties.bootstrap.servers' = '127.0.0.1:1',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'debezium-json');
CREATE TABLE views (region STRING, page STRING, n INT) WITH (
  'connector' = 'kafka', 'topic' = 'views', 'properties.bootstrap.servers' = '127.0.0.1:1',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
"""
SINK = """
CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{name}', 'key.format' = 'json',
  'value.format' = 'json', 'properties.bootstrap.servers' = '127.0.0.1:1');
"""


@pytest.fixture
def plan(spark):
    """Plans an INSERT from the tables above into a table with that key; nothing is started."""

    def explain(query, columns, key):
        session = Session(spark)
        session.execute(TABLES + SINK.format(name="kept", columns=columns, key=key))
        return str(session.execute(f"EXPLAIN INSERT INTO kept {query}"))

    return explain


@pytest.mark.parametrize(
    ("query", "columns", "key"),
    [
        ("SELECT id, name FROM people", "id INT, name STRING", "id"),
        ("SELECT CAST(id AS STRING), name FROM people", "id STRING, name STRING", "id"),
        ("SELECT region, COUNT(*) FROM views GROUP BY region", "r STRING, n BIGINT", "r"),
        ("SELECT COUNT(*), region FROM views GROUP BY 2", "n BIGINT, r STRING", "r"),
        (
            "SELECT region, page, SUM(n) FROM views GROUP BY region, page",
            "r STRING, p STRING, n BIGINT",
            "p, r",
        ),
        ("SELECT city, COUNT(*) FROM people GROUP BY city", "c STRING, n BIGINT", "c"),
    ],
)
def test_changes_of_the_same_key_are_planned(plan, query, columns, key):
    assert plan(query, columns, key)


@pytest.mark.parametrize(
    ("query", "columns", "key", "expected"),
    [
        (
            "SELECT id, name FROM people",
            "id INT, name STRING",
            "name",
            "rows of this query are told apart by id, but the primary key of 'kept' leaves out id",
        ),
        (
            "SELECT id, name FROM people",
            "id INT, name STRING",
            "id, name",
            "rows of this query are told apart by id, but the primary key of 'kept' is filled with "
            "name: an update of it would leave the old row behind",
        ),
        (
            "SELECT region, COUNT(*) FROM views GROUP BY region",
            "r STRING, n BIGINT",
            "n",
            "the primary key of 'kept' is filled with COUNT(*), which changes with every row",
        ),
        (
            "SELECT region, SUM(n) FROM views GROUP BY region, page",
            "r STRING, n BIGINT",
            "r",
            "rows of this query are told apart by region, page, but the primary key of 'kept' "
            "leaves out page",
        ),
    ],
)
def test_changes_of_another_key_are_refused_before_anything_is_written(
    plan, query, columns, key, expected
):
    with pytest.raises(SqlError) as caught:
        plan(query, columns, key)
    assert expected in str(caught.value)
    assert "Declare the PRIMARY KEY of 'kept' on what tells the query's rows apart" in str(
        caught.value
    )
