"""SQL costs nothing while it runs: what Spark plans from is what it plans from by hand."""

import re

import pytest
from streamcore_sql import Session

COLUMNS = "id BIGINT, item STRING, amount DOUBLE, note STRING"
ORDERS = {
    "connector": "kafka",
    "topic": "orders",
    "properties.bootstrap.servers": "localhost:9092",
    "scan.startup.mode": "earliest-offset",
    "format": "json",
}


@pytest.fixture
def session(spark):
    session = Session(spark)
    options = ", ".join(f"'{key}' = '{value}'" for key, value in ORDERS.items())
    session.execute(
        f"""CREATE TABLE orders ({COLUMNS}) WITH ({options});
        CREATE TABLE costs (id BIGINT, cost DOUBLE) WITH ({options});
        CREATE VIEW small AS SELECT id, item, amount FROM orders WHERE amount < 9"""
    )
    return session


def optimized(frame):
    """The plan that becomes tasks, without what numbers its attributes and objects."""
    spark = frame.sparkSession._jsparkSession
    analyzed = frame._jdf.queryExecution().analyzed()
    text = spark.sessionState().optimizer().execute(analyzed).toString()
    text = re.sub(r"@[0-9a-f]+|#\d+L?", "", text)
    return re.sub(r"(?s)(StreamingRelationV2) .*?PythonTable, \[.*?\], \[", r"\1 [", text)


@pytest.mark.parametrize(
    ("query", "columns", "by_hand"),
    [
        ("SELECT * FROM orders", COLUMNS, lambda rows: rows),
        (
            "SELECT item, id FROM orders",
            "id BIGINT, item STRING",
            lambda rows: rows.select("item", "id"),
        ),
        (
            "SELECT item, amount FROM orders WHERE amount > 3",
            "item STRING, amount DOUBLE",
            lambda rows: rows.where("amount > 3"),
        ),
        (
            "SELECT UPPER(item) AS item, amount * 2 AS twice FROM orders",
            "item STRING, amount DOUBLE",
            lambda rows: rows.selectExpr("UPPER(item) AS item", "amount * 2 AS twice"),
        ),
        (
            "SELECT id FROM small WHERE item = 'a'",
            "id BIGINT, item STRING, amount DOUBLE",
            lambda rows: rows.where("amount < 9").where("item = 'a'").select("id"),
        ),
        (
            "SELECT item, COUNT(*) AS n FROM orders GROUP BY item",
            "item STRING",
            lambda rows: rows.groupBy("item").agg({"*": "count"}).toDF("item", "n"),
        ),
        (
            "INSERT INTO costs SELECT id, amount FROM orders WHERE amount > 3",
            "id BIGINT, amount DOUBLE",
            lambda rows: rows.where("amount > 3").selectExpr("id AS id", "amount AS cost"),
        ),
    ],
)
def test_a_statement_is_planned_like_the_dataframe(spark, session, query, columns, by_hand):
    (statement,) = session.parse(query)
    planned = session.prepare(statement).plan
    rows = spark.readStream.format("streamcore").options(**ORDERS).schema(columns).load()
    assert optimized(planned.frame) == optimized(by_hand(rows))
