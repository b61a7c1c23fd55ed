"""How queries read their tables, planned without Spark."""

import pytest
from streamcore_sql import Session, SqlError
from streamcore_sql.planner.queries import QueryReader

TABLES = """
CREATE TABLE orders (id BIGINT, status STRING, currency STRING, ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json',
      'properties.bootstrap.servers' = 'h:1', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE rates (currency STRING, rate INT, since TIMESTAMP(3), WATERMARK FOR since AS since,
  PRIMARY KEY (currency) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'rates', 'key.format' = 'json',
      'value.format' = 'json', 'properties.bootstrap.servers' = 'h:1');
CREATE TABLE timed (currency STRING, rate INT,
  since TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR since AS since,
  PRIMARY KEY (currency) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'rates', 'key.format' = 'json',
      'value.format' = 'json', 'properties.bootstrap.servers' = 'h:1');
"""


@pytest.fixture
def reading():
    """How a query is read; `upserts` if a table keeps the latest row of each key."""
    session = Session()
    session.execute(TABLES)

    def reading(text, *, upserts=False):
        (statement,) = session.parse(text)
        return QueryReader(session.catalog).read(statement.query, upserts=upserts)

    return reading


def test_deletes_that_do_not_say_since_when_are_noted(reading):
    query = """SELECT o.id, r.rate FROM orders AS o
      JOIN {} FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency"""
    note = reading(query.format("rates")).rewritten.notes[-1]
    assert note.text == (
        "a delete in 'rates' has its key alone, and so no 'since': rows go on meeting the version "
        "that was deleted, unless the time is that of the message, as in since TIMESTAMP_LTZ(3) "
        "METADATA FROM 'timestamp'"
    )
    assert note.place.text == "rates"
    (note,) = reading(query.format("timed")).rewritten.notes
    assert note.text == "a temporal join keeps every version of a row for good"


LAST = """SELECT {} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS rn
  FROM orders) WHERE rn = 1"""


def test_a_last_row_that_leaves_its_filter_is_deleted(reading):
    query = LAST.format("id, status") + " AND status = 'on'"
    sql = reading(query, upserts=True).rewritten.sql
    assert sql.startswith(
        "SELECT id, status, IF(COALESCE(status = 'on', FALSE), `_row_kind`, '-D')"
    )
    assert "_row_kind" not in reading(query).rewritten.sql
    assert "_row_kind" not in reading(LAST.format("id, status"), upserts=True).rewritten.sql
    around = f"SELECT id FROM (SELECT * FROM ({query})) AS x"
    sql = reading(around, upserts=True).rewritten.sql
    assert sql.startswith("SELECT id, `_row_kind` FROM (SELECT * EXCEPT (`_row_kind`)")


@pytest.mark.parametrize(
    ("joined", "notes"),
    [
        (
            "orders AS b ON a.id = b.id",
            [
                "a join without a bound on time keeps the rows of both sides for good: "
                "'table.exec.state.ttl' does not apply"
            ],
        ),
        ("orders AS b ON a.id = b.id AND a.ts < b.ts + INTERVAL '1' HOUR", []),
        ("(VALUES (1)) AS b (id) ON a.id = b.id", []),
        (
            "orders /*+ OPTIONS('scan.bounded.mode' = 'latest-offset') */ AS b ON a.id = b.id",
            [],
        ),
        (
            "rates FOR SYSTEM_TIME AS OF PROCTIME() AS b ON a.currency = b.currency",
            ["a lookup takes the table as it is when the micro-batch runs, not row by row"],
        ),
    ],
)
def test_what_a_join_keeps_for_good_is_noted(reading, joined, notes):
    found = reading(f"SELECT a.id FROM orders AS a JOIN {joined}").rewritten.notes
    assert [note.text for note in found] == notes


CUMULATED = """SELECT window_start, COUNT(*) FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts),
  INTERVAL '1' MINUTE, INTERVAL '1' HOUR)) GROUP BY window_start, window_end"""


def test_windows_that_are_told_before_they_close_are_noted(reading):
    (note,) = reading(CUMULATED).rewritten.notes
    assert note.text == "CUMULATE tells its windows whenever they change, not once when they close"
    query = """SELECT COUNT(*) FROM (SELECT *, PROCTIME() AS p FROM orders)
      GROUP BY TUMBLE(p, INTERVAL '1' MINUTE)"""
    notes = [note.text for note in reading(query).rewritten.notes]
    assert "a window over processing time is told whenever it changes, not when it closes" in notes


def test_a_table_has_one_watermark_on_a_column_of_its_own():
    table = "CREATE TABLE t (r ROW<ts TIMESTAMP(3)>, ts TIMESTAMP(3), {})"
    table += " WITH ('connector' = 'datagen')"
    with pytest.raises(SqlError, match="a table has one WATERMARK, this is the second"):
        Session().execute(table.format("WATERMARK FOR ts AS ts, WATERMARK FOR ts AS ts"))
    session = Session()
    session.execute(table.format("WATERMARK FOR r.ts AS r.ts"))
    (statement,) = session.parse("SELECT r FROM t")
    with pytest.raises(SqlError, match="Spark needs a watermark on a column of its own") as caught:
        QueryReader(session.catalog).read(statement.query)
    assert caught.value.hint == (
        "Compute a column from it first, and declare the watermark on that."
    )
