"""Which columns each table is asked for: those that the result is made of, and no others."""

import pytest
from streamcore_sql import Session

TABLES = """
CREATE TABLE bids (a BIGINT, b INT, c STRING, d STRING, e MAP<STRING, STRING>,
  f ROW<a INT, x STRING>, millis BIGINT, ts AS TO_TIMESTAMP_LTZ(millis, 3), cents AS b * 100,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'datagen');
CREATE TABLE items (a BIGINT, b INT, c STRING, name STRING, ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');
CREATE VIEW few AS SELECT a, b, c FROM bids WHERE d = 'x';
CREATE VIEW every AS SELECT * FROM bids;
CREATE VIEW renamed (one, two, three) AS SELECT a, b, c FROM bids;
CREATE VIEW sums AS SELECT c, SUM(b) AS total, MAX(d) AS latest FROM bids GROUP BY c;
"""
EVERY = ("a", "b", "c", "d", "e", "f", "millis")
WINDOWS = "TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"


@pytest.fixture(scope="module")
def session():
    session = Session()
    session.execute(TABLES)
    return session


@pytest.mark.parametrize(
    ("query", "reads"),
    [
        ("SELECT * FROM bids", [EVERY]),
        ("SELECT a, c FROM bids", [("a", "c")]),
        ("SELECT a FROM bids WHERE d = 'x'", [("a", "d")]),
        ("SELECT COUNT(*) FROM bids", [()]),
        ("SELECT c, SUM(b) FROM bids GROUP BY c HAVING MAX(d) > 'x'", [("b", "c", "d")]),
        ("SELECT f.x, e['k'] FROM bids", [("e", "f")]),
        ("SELECT cents FROM bids", [("b",)]),
        ("SELECT ts FROM bids", [("millis",)]),
        (
            f"SELECT c, COUNT(*) FROM {WINDOWS} GROUP BY window_start, window_end, c",
            [("c", "millis")],
        ),
        ("SELECT a FROM every", [("a",)]),
        ("SELECT a FROM few", [("a", "d")]),
        ("SELECT one FROM renamed", [("a", "b", "c")]),
        ("SELECT total FROM sums", [("b", "c")]),
        ("SELECT a FROM (SELECT a, b, c FROM bids) WHERE b > 1", [("a", "b")]),
        ("WITH n AS (SELECT a, b, c FROM bids) SELECT n.a FROM n", [("a",)]),
        ("SELECT y.a FROM (SELECT x.* FROM (SELECT a, b FROM bids) AS x) AS y", [("a",)]),
        ("SELECT a FROM (SELECT DISTINCT a, b FROM bids)", [("a", "b")]),
        (
            "SELECT a FROM (SELECT a, b FROM bids UNION ALL SELECT a, b FROM items)",
            [("a", "b")] * 2,
        ),
        (
            "SELECT l.c, r.name FROM bids AS l JOIN items AS r ON l.a = r.a AND r.ts > l.ts",
            [("a", "c", "millis"), ("a", "name", "ts")],
        ),
        ("SELECT x.d, name FROM bids AS x JOIN items USING (a)", [("a", "d"), ("a", "name")]),
        (
            "SELECT w.c, COUNT(*) FROM (SELECT b, c, d, window_start, window_end FROM "
            f"{WINDOWS}) AS w GROUP BY w.window_start, w.window_end, w.c",
            [("c", "millis")],
        ),
        (
            "SELECT a, b FROM (SELECT a, b, c, d, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts "
            "DESC) AS n FROM bids) WHERE n = 1",
            [("a", "b", "millis")],
        ),
        (
            "SELECT a FROM bids WHERE a IN (SELECT i.a FROM items AS i WHERE i.b = 1)",
            [("a",), ("a", "b")],
        ),
        ("SELECT l.* FROM bids AS l JOIN items AS r ON l.a = r.a", [EVERY, ("a",)]),
        (
            "SELECT JSON_VALUE(c, '$.x' RETURNING INT DEFAULT b ON EMPTY) FROM bids",
            [("b", "c")],
        ),
    ],
)
def test_a_table_is_asked_for_what_the_result_is_made_of(session, query, reads):
    (statement,) = session.parse(query)
    assert [read.projection for read in session.look_at(statement)] == reads
