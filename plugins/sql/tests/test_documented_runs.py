"""The statements of the connectors' public documentation run, on a real broker and by value."""

import json
import re
from pathlib import Path

import pytest
from confluent_kafka import Producer
from streamcore.testing.services.kafka import unique_name
from streamcore_sql import Session, parse
from streamcore_sql.planner.binding import bind
from streamcore_sql.statements import CreateTable

SCRIPT = (Path(__file__).parent / "documented.sql").read_text()
MOMENT = "CAST(TIMESTAMP '2024-05-01 10:00:00' AS TIMESTAMP_LTZ(3))"
BEHAVIOUR = f"1, 2, 'buy', {MOMENT}"
TIMED = f"{MOMENT}, 1, 2, 'buy'"
READ_BEHAVIOUR = "user_id, item_id, behavior, CAST(ts AS STRING)"
BOUGHT = (1, 2, "buy", "2024-05-01 10:00:00")
ROUND_TRIPS = {
    "plain": (BEHAVIOUR, READ_BEHAVIOUR, BOUGHT),
    "with_metadata": (TIMED, "`partition`, `offset`, item_id, behavior", (0, 0, 2, "buy")),
    "value_format": (TIMED, READ_BEHAVIOUR, BOUGHT),
    "key_and_value_format": (TIMED, READ_BEHAVIOUR, BOUGHT),
    "overlapping_fields": ("1, 2, 3, 4, 'buy'", "*", (1, 2, 3, 4, "buy")),
    "user_events": (
        "1, 2, 'c', 'buy', TIMESTAMP '2024-05-01 10:00:00'",
        "user_id, behavior, CAST(event_ts AS STRING), proctime IS NOT NULL",
        (1, "buy", "2024-05-01 10:00:00", True),
    ),
    "avro_events": (
        "1, 'hello', TIMESTAMP '2024-05-01 10:00:00.123'",
        "user_id, message, CAST(event_ts AS STRING)",
        (1, "hello", "2024-05-01 10:00:00.123"),
    ),
    "keyed_events": ("1, 'hello'", "*", (1, "hello")),
    "exactly_once_sink": ("1, 'once'", "*", (1, "once")),
}
BOUNDED = "'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'"


@pytest.fixture(scope="module")
def documented(kafka):
    """Every documented table, each with a topic of its own on our broker."""
    statements = [each for each in parse(SCRIPT) if isinstance(each, CreateTable)]
    tables = {}
    for statement in statements:
        text, name = statement.place.text, str(statement.name)
        if "kafka'" in text:
            topic = kafka.create_topic(unique_name(name), 1)
            text = re.sub(r"'topic' = '[^']+'", f"'topic' = '{topic}'", text)
            if "'connector' = 'kafka'" in text and "scan.startup.mode" not in text:
                start = "'scan.startup.mode' = 'earliest-offset', 'topic' ="
                text = text.replace("'topic' =", start)
            servers = f"'properties.bootstrap.servers' = '{kafka.bootstrap_servers}'"
            text = re.sub(r"'properties.bootstrap.servers' = '[^']+'", servers, text)
        tables[name] = text
    return tables


@pytest.fixture
def session(spark, documented, tmp_path):
    session = Session(spark, checkpoint=str(tmp_path), once=True)
    for text in documented.values():
        session.execute(text)
    yield session
    session.stop()


def topic_of(text):
    return re.search(r"'topic' = '([^']+)'", text)[1]


def test_every_documented_table_has_options_and_columns_that_fit(documented):
    for text in documented.values():
        (statement,) = parse(text)
        bind(statement).check(writing=False)


@pytest.mark.parametrize("table", ROUND_TRIPS)
def test_a_documented_table_gives_back_what_was_inserted(session, table):
    values, columns, expected = ROUND_TRIPS[table]
    assert session.execute(f"INSERT INTO {table} SELECT {values}").wait(120)
    rows = session.execute(f"SELECT {columns} FROM {table} /*+ OPTIONS({BOUNDED}) */").collect()
    assert [tuple(row) for row in rows] == [expected]


def test_metadata_of_the_format_is_read_beside_that_of_the_connector(session, documented, kafka):
    row = {"user_id": 1, "item_id": 2, "behavior": "buy"}
    source = {"table": "clicks", "ts_ms": 1714557600000}
    change = {"before": None, "after": row, "op": "c", "source": source}
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(topic_of(documented["with_format_metadata"]), json.dumps(change).encode())
    producer.flush()
    query = f"""SELECT origin_table, CAST(event_time AS STRING), partition_id, `offset`, behavior
      FROM with_format_metadata /*+ OPTIONS({BOUNDED}) */"""
    (found,) = session.execute(query).collect()
    assert tuple(found)[:5] == ("clicks", "2024-05-01 10:00:00", 0, 0, "buy")


def test_the_documented_pipelines_fill_their_sinks(session, documented, kafka):
    orders, created = kafka.create_topic(unique_name("orders"), 1), "2024-05-01 10:00:00"
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number, amount in enumerate(["9.50", "0.00", "1.25"]):
        row = {"order_id": number, "product": "tea", "amount": amount, "created_at": created}
        producer.produce(orders, json.dumps(row).encode())
    for user, region in [(1, "eu"), (2, "eu"), (1, "eu"), (3, "us")]:
        row = {"user_id": user, "page_id": 7, "viewtime": created, "user_region": region}
        producer.produce(topic_of(documented["pageviews"]), json.dumps(row).encode())
    producer.flush()
    session.execute(
        f"""CREATE TABLE orders_source WITH ('topic' = '{orders}',
          'scan.startup.mode' = 'earliest-offset') LIKE order_events_sink
          (OVERWRITING OPTIONS)"""
    )
    for statement in SCRIPT.split(";\n"):
        if "INSERT INTO" in statement:
            assert session.execute(statement).wait(120)
    sold = session.execute(
        f"SELECT order_id, amount FROM order_events_sink /*+ OPTIONS({BOUNDED}) */"
    )
    assert sorted((row[0], str(row[1])) for row in sold.collect()) == [(0, "9.50"), (2, "1.25")]
    counted = session.execute(
        """SELECT region, pv, uv FROM pageviews_per_region
          /*+ OPTIONS('scan.bounded.mode' = 'latest-offset') */"""
    )
    assert sorted(tuple(row)[:3] for row in counted.collect()) == [("eu", 3, 2), ("us", 1, 1)]
