"""Windows and joins by value, from real topics; the last row of each only moves the watermark."""

import json

import pytest
from confluent_kafka import Producer
from streamcore.testing.services.kafka import unique_name
from streamcore_sql import Session

EVENTS = [("a", 1, 0), ("b", 2, 3), ("a", 3, 7), ("a", 4, 11), ("b", 5, 14), ("z", 0, 59)]
PAYMENTS = [(1, 4), (2, 20), (4, 16), (0, 59)]
NAMES = [("a", "Ann"), ("b", "Bob")]


def at(second):
    return f"2024-05-01 10:00:{second:02d}"


@pytest.fixture(scope="module")
def topics(kafka):
    """Events, what was paid for them and when, and the names of who they are about."""
    names = {each: kafka.create_topic(unique_name(each), 1) for each in ("events", "paid", "names")}
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    rows = {
        "events": [{"who": who, "n": n, "ts": at(second)} for who, n, second in EVENTS],
        "paid": [{"n": n, "ts": at(second)} for n, second in PAYMENTS],
        "names": [{"who": who, "name": name} for who, name in NAMES],
    }
    for topic, values in rows.items():
        for value in values:
            producer.produce(names[topic], json.dumps(value).encode())
    producer.flush()
    return names


@pytest.fixture
def rows(spark, kafka, topics, tmp_path):
    """Runs a query over the tables until it has read what is there; gives its rows, sorted."""
    where = f"""'connector' = 'kafka', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset',
      'properties.bootstrap.servers' = '{kafka.bootstrap_servers}'"""
    session = Session(spark, checkpoint=str(tmp_path), once=True)
    session.execute(
        f"""
        CREATE TABLE events (who STRING, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
        WITH ('topic' = '{topics["events"]}', {where});
        CREATE TABLE paid (n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
        WITH ('topic' = '{topics["paid"]}', {where});
        CREATE TABLE names (who STRING, name STRING)
        WITH ('topic' = '{topics["names"]}', 'scan.bounded.mode' = 'latest-offset', {where});
        """
    )
    yield lambda query: sorted((c.row for c in session.execute(query)), key=str)
    session.stop()


WINDOW = """SELECT EXTRACT(SECOND FROM window_start) AS s, EXTRACT(SECOND FROM window_end) AS e,
  COUNT(DISTINCT who), SUM(n) FROM TABLE({}) GROUP BY window_start, window_end"""


def test_tumbling_windows(rows):
    query = WINDOW.format("TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '10' SECOND)")
    assert rows(query) == [(0, 10, 2, 6), (10, 20, 2, 9)]


def test_hopping_windows(rows):
    hop = "HOP(TABLE events, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)"
    expected = [(0, 10, 2, 6), (10, 20, 2, 9), (5, 15, 2, 12), (55, 5, 2, 3)]
    assert rows(WINDOW.format(hop)) == expected


def test_cumulating_windows(rows):
    cumulate = "CUMULATE(TABLE events, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)"
    expected = [(0, 10, 2, 6), (0, 5, 2, 3), (10, 15, 2, 9), (10, 20, 2, 9), (50, 0, 1, 0)]
    assert rows(WINDOW.format(cumulate)) == expected


def test_session_windows(rows):
    query = """SELECT who, EXTRACT(SECOND FROM window_start), EXTRACT(SECOND FROM window_end),
      SUM(n) FROM TABLE(SESSION(TABLE events PARTITION BY who, DESCRIPTOR(ts),
        INTERVAL '5' SECOND)) GROUP BY who, window_start, window_end"""
    assert rows(query) == [("a", 0, 5, 1), ("a", 7, 16, 7), ("b", 14, 19, 5), ("b", 3, 8, 2)]


def test_the_older_group_windows(rows):
    query = """SELECT EXTRACT(SECOND FROM TUMBLE_START(ts, INTERVAL '10' SECOND)), SUM(n)
      FROM events GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)"""
    assert rows(query) == [(0, 6), (10, 9)]


def test_an_interval_join_and_what_it_does_not_find(rows):
    query = """SELECT e.n, EXTRACT(SECOND FROM p.ts) FROM events AS e {} JOIN paid AS p
      ON e.n = p.n AND p.ts BETWEEN e.ts AND e.ts + INTERVAL '5' SECOND"""
    found = [(0, 59), (1, 4), (4, 16)]
    assert rows(query.format("INNER")) == found
    assert rows(query.format("LEFT")) == sorted([*found, (2, None), (3, None), (5, None)])


def test_a_regular_join_keeps_both_sides(rows):
    query = "SELECT e.who, p.n FROM events AS e JOIN paid AS p ON e.n = p.n"
    assert rows(query) == [("a", 1), ("a", 4), ("b", 2), ("z", 0)]


def test_a_stream_meets_a_table_that_ends(rows):
    query = "SELECT e.n, t.name FROM events AS e LEFT JOIN names AS t ON e.who = t.who WHERE n < 3"
    assert rows(query) == [(0, None), (1, "Ann"), (2, "Bob")]
