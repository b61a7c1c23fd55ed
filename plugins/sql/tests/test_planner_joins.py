"""Temporal and lookup joins by value, on real topics."""

import json

import pytest
from confluent_kafka import Producer
from streamcore_sql import Session


@pytest.fixture
def session(spark, tmp_path):
    session = Session(spark, checkpoint=str(tmp_path), once=True)
    yield session
    session.stop()


@pytest.fixture
def send(kafka):
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})

    def send(topic, *rows):
        for key, value in rows:
            payload = None if value is None else json.dumps(value).encode()
            producer.produce(topic, payload, None if key is None else json.dumps(key).encode())
        producer.flush()

    return send


@pytest.fixture
def tables(session, kafka, kafka_topic):
    """Orders, and the rates they are converted with."""
    orders, rates = kafka_topic(), kafka_topic()
    servers = f"'properties.bootstrap.servers' = '{kafka.bootstrap_servers}'"
    session.execute(
        f"""
        CREATE TABLE orders (id BIGINT, currency STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
        WITH ('connector' = 'kafka', 'topic' = '{orders}', 'format' = 'json', {servers},
              'scan.startup.mode' = 'earliest-offset');
        CREATE TABLE rates (
          currency STRING, rate INT, since TIMESTAMP(3), WATERMARK FOR since AS since,
          PRIMARY KEY (currency) NOT ENFORCED
        ) WITH ('connector' = 'upsert-kafka', 'topic' = '{rates}', 'key.format' = 'json',
                'value.format' = 'json', {servers});
        """
    )
    return orders, rates


def order(number, currency, second):
    return None, {"id": number, "currency": currency, "ts": f"2024-05-01 10:00:{second:02d}"}


def rate(currency, value, second):
    row = {"currency": currency, "rate": value, "since": f"2024-05-01 10:00:{second:02d}"}
    return {"currency": currency}, row


def fill(send, tables):
    orders, rates = tables
    send(rates, rate("eur", 1, 0), rate("eur", 2, 20), rate("usd", 7, 10), rate("eur", 3, 59))
    send(
        orders,
        order(1, "eur", 5),
        order(2, "eur", 25),
        order(3, "usd", 5),
        order(4, "usd", 15),
        order(5, "gbp", 15),
        order(99, "eur", 59),
    )


def test_each_row_meets_the_version_of_its_own_time(session, tables, send):
    fill(send, tables)
    query = """SELECT o.id, r.rate FROM orders AS o
      JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency"""
    rows = sorted(change.row for change in session.execute(query))
    assert rows == [(1, 1), (2, 2), (4, 7)]


def test_a_star_and_using_mean_the_columns_of_both_sides(session, tables, send):
    fill(send, tables)
    query = """SELECT * FROM orders AS o
      JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r USING (currency)"""
    rows = sorted(change.row for change in session.execute(query))
    at = [[f"{moment:%S}" for moment in (row[2], row[4])] for row in rows]
    assert [(row[0], row[1], row[3]) for row in rows] == [
        (1, "eur", 1),
        (2, "eur", 2),
        (4, "usd", 7),
    ]
    assert at == [["05", "00"], ["25", "20"], ["15", "10"]]


def test_a_left_temporal_join_keeps_rows_without_a_version(session, tables, send):
    fill(send, tables)
    query = """SELECT o.id, r.rate FROM orders AS o
      LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency"""
    rows = sorted(change.row for change in session.execute(query))
    assert rows == [(1, 1), (2, 2), (3, None), (4, 7), (5, None)]


def test_a_lookup_join_takes_the_table_as_it_is(session, tables, send):
    fill(send, tables)
    query = """SELECT o.id, r.rate FROM
      (SELECT *, PROCTIME() AS p FROM orders) AS o
      JOIN rates FOR SYSTEM_TIME AS OF o.p AS r ON o.currency = r.currency"""
    rows = sorted(change.row for change in session.execute(query))
    assert rows == [(1, 3), (2, 3), (3, 7), (4, 7), (99, 3)]


def test_versions_come_from_a_changelog_too(session, tables, kafka, kafka_topic, send):
    changes = kafka_topic()
    session.execute(
        f"""CREATE TABLE rates_of_a_database (
          currency STRING, rate INT, since TIMESTAMP(3), WATERMARK FOR since AS since,
          PRIMARY KEY (currency) NOT ENFORCED
        ) WITH ('connector' = 'kafka', 'topic' = '{changes}', 'format' = 'debezium-json',
                'properties.bootstrap.servers' = '{kafka.bootstrap_servers}',
                'scan.startup.mode' = 'earliest-offset')"""
    )
    fill(send, tables)
    first, second, end = (rate("eur", n, at)[1] for n, at in ((1, 0), (2, 20), (9, 59)))
    send(
        changes,
        (None, {"before": None, "after": first, "op": "c"}),
        (None, {"before": first, "after": second, "op": "u"}),
        (None, {"before": None, "after": {**end, "currency": "chf"}, "op": "c"}),
    )
    query = """SELECT o.id, r.rate FROM orders AS o
      LEFT JOIN rates_of_a_database FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency"""
    rows = sorted(change.row for change in session.execute(query))
    assert rows == [(1, 1), (2, 2), (3, None), (4, None), (5, None)]
