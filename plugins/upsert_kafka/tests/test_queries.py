"""Queries over an upsert table follow updates, deletes and moves of its rows, to the row."""

import json
import random
from decimal import Decimal

import pytest
from confluent_kafka import Producer
from streamcore_sql import Session, SqlError

WITH = """WITH ('connector' = 'upsert-kafka', 'topic' = '{topic}', 'key.format' = 'json',
  'value.format' = 'json', 'properties.bootstrap.servers' = '{servers}' {more})"""
ORDERS = "CREATE TABLE orders (id INT, region STRING, amount DECIMAL(10, 2), {time} {key}) " + WITH
KEY = "PRIMARY KEY (id) NOT ENFORCED"
TOTALS = (
    "CREATE TABLE totals (region STRING, n BIGINT, total DECIMAL(20, 2), mean DECIMAL(20, 6), "
    "PRIMARY KEY (region) NOT ENFORCED) " + WITH
)
INSERT = """INSERT INTO totals SELECT region, COUNT(*), SUM(amount), AVG(amount)
  FROM orders WHERE region <> 'hidden' GROUP BY region"""


def totals(orders):
    """What the query should give, of the rows there are."""
    found = {}
    for region, amount in orders.values():
        if region != "hidden":
            found.setdefault(region, []).append(amount)
    told = {}
    for region, amounts in found.items():
        known = [Decimal(amount) for amount in amounts if amount is not None]
        total = sum(known, Decimal(0)) if known else None
        mean = round(total / len(known), 6) if total is not None else None
        told[region] = (len(amounts), total, mean)
    return told


def told(topic):
    """The table that another client sees."""
    rows = {key["region"]: value for key, value in topic.messages()}
    return {
        region: (row["n"], *(row[n] if row[n] is None else Decimal(str(row[n])) for n in MEASURES))
        for region, row in rows.items()
        if row is not None
    }


MEASURES = ("total", "mean")


def test_totals_are_those_of_the_rows_there_are_across_batches_and_restarts(
    kafka, upsert_table, spark, tmp_path
):
    servers, source, target = kafka.bootstrap_servers, upsert_table(2), upsert_table(1)
    more = ", 'scan.max-rows-per-batch' = '60'"
    script = ";\n".join(
        [
            ORDERS.format(topic=source.topic, servers=servers, more=more, time="", key=KEY),
            TOTALS.format(topic=target.topic, servers=servers, more=""),
            INSERT,
        ]
    )
    producer = Producer({"bootstrap.servers": servers})
    dice, orders = random.Random(11), {}
    for _ in range(2):
        for _ in range(100):
            number, row = dice.randrange(25), None
            if dice.random() < 0.7:
                cents = dice.choice([None, dice.randrange(-5000, 5000)])
                amount = None if cents is None else f"{cents / 100:.2f}"
                row = (dice.choice(["eu", "us", "asia", "hidden"]), amount)
            value = row and {"id": number, "region": row[0], "amount": row[1]}
            payload = None if value is None else json.dumps(value).encode()
            producer.produce(source.topic, payload, json.dumps({"id": number}).encode())
            orders.pop(number, None)
            if row is not None:
                orders[number] = row
        producer.flush()
        Session(spark, name="t", checkpoint=str(tmp_path), once=True).execute(script).wait(300)
        assert told(target) == totals(orders)
    assert len(list(tmp_path.glob("**/commits/[0-9]*"))) > 3


def test_a_row_that_meets_the_condition_no_more_is_deleted(kafka, upsert_table, spark, tmp_path):
    servers, source, target = kafka.bootstrap_servers, upsert_table(2), upsert_table(1)
    kept = f"CREATE TABLE kept (id INT, region STRING, {KEY}) " + WITH
    script = ";\n".join(
        [
            ORDERS.format(topic=source.topic, servers=servers, more="", time="", key=KEY),
            kept.format(topic=target.topic, servers=servers, more=""),
            "INSERT INTO kept SELECT id, region FROM orders WHERE amount > 2",
        ]
    )
    producer = Producer({"bootstrap.servers": servers})
    for number, amount in (
        (1, 5),
        (1, 1),
        (2, 5),
        (2, None),
        (3, 1),
        (4, 9),
        (1, 1),
        (5, 1),
        (5, 3),
    ):
        value = amount and {"id": number, "region": "eu", "amount": amount}
        payload = value and json.dumps(value).encode()
        producer.produce(source.topic, payload, json.dumps({"id": number}).encode())
    producer.flush()
    Session(spark, name="f", checkpoint=str(tmp_path), once=True).execute(script).wait(300)
    found = {key["id"]: value for key, value in target.messages()}
    assert {number for number, row in found.items() if row is not None} == {4, 5}


def test_a_row_that_finds_nothing_to_join_no_more_is_deleted(kafka, upsert_table, spark, tmp_path):
    servers = kafka.bootstrap_servers
    source, target, regions = upsert_table(2), upsert_table(1), upsert_table(1)
    regions.write([{"region": "eu", "views": 7, "_row_kind": "+I"}])
    script = ";\n".join(
        [
            ORDERS.format(topic=source.topic, servers=servers, more="", time="", key=KEY),
            "CREATE TABLE regions (region STRING, views INT, PRIMARY KEY (region) NOT ENFORCED) "
            + WITH.format(topic=regions.topic, servers=servers, more=""),
            f"CREATE TABLE kept (id INT, views INT, {KEY}) "
            + WITH.format(topic=target.topic, servers=servers, more=""),
            """INSERT INTO kept SELECT o.id, r.views FROM (SELECT *, PROCTIME() AS p FROM orders) o
              JOIN regions FOR SYSTEM_TIME AS OF o.p AS r ON o.region = r.region
              WHERE o.amount > 2""",
        ]
    )
    producer = Producer({"bootstrap.servers": servers})
    for number, region, amount in (
        (1, "eu", 5),
        (1, None, None),
        (2, "eu", 5),
        (2, "us", 5),
        (3, "eu", 5),
        (4, "us", 5),
        (5, "eu", 5),
        (5, "eu", 1),
    ):
        value = region and {"id": number, "region": region, "amount": amount}
        payload = value and json.dumps(value).encode()
        producer.produce(source.topic, payload, json.dumps({"id": number}).encode())
    producer.flush()
    Session(spark, name="j", checkpoint=str(tmp_path), once=True).execute(script).wait(300)
    found = {key["id"]: value and value["views"] for key, value in target.messages()}
    assert found == {1: None, 2: None, 3: 7, 4: None, 5: None}


def test_so_many_tasks_write_as_the_table_says_and_each_key_in_its_order(
    kafka, upsert_table, spark, tmp_path
):
    servers, source = kafka.bootstrap_servers, upsert_table(2)
    every, once = upsert_table(4), upsert_table(1)
    exactly = (
        ", 'sink.parallelism' = '1', 'sink.delivery-guarantee' = 'exactly-once', "
        f"'sink.transactional-id-prefix' = '{once.topic}'"
    )
    columns = "(region STRING, views BIGINT, PRIMARY KEY (region) NOT ENFORCED) "
    tables = {"every": ", 'sink.parallelism' = '4'", "once": exactly, "seen": ""}
    topics = {"every": every.topic, "once": once.topic, "seen": source.topic}
    script = ";\n".join(
        f"CREATE TABLE {name} {columns}"
        + WITH.format(topic=topics[name], servers=servers, more=more)
        for name, more in tables.items()
    )
    source.write([{"region": f"r{n % 20}", "views": n, "_row_kind": "+I"} for n in range(400)])
    for name, query in {
        "every": "SELECT region, views FROM seen",
        "once": "SELECT region, COUNT(*) FROM seen GROUP BY region",  # by several tasks
    }.items():
        session = Session(spark, name=name, checkpoint=str(tmp_path / name), once=True)
        session.execute(f"{script};\nINSERT INTO {name} {query}").wait(300)
    written = every.messages()
    for region in {key["region"] for key, _ in written}:
        views = [value["views"] for key, value in written if key["region"] == region]
        assert views == sorted(views)
        assert len(views) == 20
    assert {key["region"]: value["views"] for key, value in once.messages()} == {
        f"r{n}": 1 for n in range(20)
    }


@pytest.fixture
def explained(spark):
    def explain(query, time="", more=""):
        given = {"topic": "t", "servers": "127.0.0.1:1", "time": time, "key": KEY, "more": more}
        session = Session(spark)
        session.execute(ORDERS.format(**given) + ";" + TOTALS.format(**given | {"more": ""}))
        return str(session.execute(f"EXPLAIN INSERT INTO totals {query}"))

    return explain


def test_the_plan_says_that_rows_are_kept(explained, spark):
    plan = explained("SELECT region, COUNT(*), 1, 1 FROM orders GROUP BY region")
    assert "orders (upsert-kafka, stream): region, _row_kind (of 3 columns); " in plan
    assert "keeps the latest row of each id" in plan
    setting = "spark.sql.streaming.statefulOperator.checkCorrectness.enabled"
    assert spark.conf.get(setting) == "true"


def test_no_row_is_late_for_an_aggregate_without_a_window(explained):
    time = "ts TIMESTAMP(3), WATERMARK FOR ts AS ts,"
    plan = explained("SELECT CAST(ts AS STRING), COUNT(*), 1, 1 FROM orders GROUP BY ts", time)
    assert "watermark" not in plan.lower()


@pytest.mark.parametrize(
    ("query", "more", "expected"),
    [
        (
            "SELECT region, COUNT(*), 1, 1 FROM orders GROUP BY region",
            ", 'changelog.normalize' = 'true', 'changelog.normalize.ttl' = '1 h'",
            "'orders' forgets rows that no longer change",
        ),
        (
            "SELECT region, MAX(n), 1, 1 FROM (SELECT region, id, COUNT(*) AS n FROM orders "
            "GROUP BY region, id) GROUP BY region",
            "",
            "an aggregate of an aggregate cannot take them back",
        ),
        (
            "SELECT CAST(window_start AS STRING), COUNT(*), 1, 1 FROM TABLE(TUMBLE(TABLE orders, "
            "DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end",
            "",
            "this query cannot take rows back",
        ),
    ],
)
def test_what_would_not_be_exact_is_refused(explained, query, more, expected):
    time = "ts TIMESTAMP(3), WATERMARK FOR ts AS ts,"
    with pytest.raises(SqlError, match=expected):
        explained(query, time, more)


def test_a_bounded_table_has_its_latest_rows_and_any_aggregate(explained):
    query = "SELECT region, MAX(id), 1, 1 FROM orders GROUP BY region"
    assert "mode batch" in explained(query, more=", 'scan.bounded.mode' = 'latest-offset'")


def test_a_group_of_a_plain_stream_that_meets_having_no_more_is_deleted(
    kafka, kafka_topic, upsert_table, spark, tmp_path
):
    servers, source, target = kafka.bootstrap_servers, kafka_topic(), upsert_table(1)
    script = f"""
    CREATE TABLE words (word STRING) WITH ('connector' = 'kafka', 'topic' = '{source}',
      'properties.bootstrap.servers' = '{servers}', 'scan.startup.mode' = 'earliest-offset',
      'format' = 'json');
    CREATE TABLE rare (word STRING, n BIGINT, PRIMARY KEY (word) NOT ENFORCED)
      {WITH.format(topic=target.topic, servers=servers, more="")};
    INSERT INTO rare SELECT word, COUNT(*) FROM words GROUP BY word HAVING COUNT(*) < 3"""
    producer = Producer({"bootstrap.servers": servers})
    for words in ("aab", "abc"):
        for word in words:
            producer.produce(source, json.dumps({"word": word}).encode())
        producer.flush()
        Session(spark, name="rare", checkpoint=str(tmp_path), once=True).execute(script).wait(300)
    found = {key["word"]: value and value["n"] for key, value in target.messages()}
    assert found == {"a": None, "b": 2, "c": 1}


def test_the_last_row_of_a_key_that_leaves_its_filter_is_deleted(
    kafka, kafka_topic, upsert_table, spark, tmp_path
):
    servers, source, target = kafka.bootstrap_servers, kafka_topic(), upsert_table(1)
    script = f"""
    CREATE TABLE people (id STRING, status STRING, v INT) WITH ('connector' = 'kafka',
      'topic' = '{source}', 'properties.bootstrap.servers' = '{servers}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE active (id STRING, status STRING, PRIMARY KEY (id) NOT ENFORCED)
      {WITH.format(topic=target.topic, servers=servers, more="")};
    INSERT INTO active SELECT id, status FROM (
      SELECT id, status, ROW_NUMBER() OVER (PARTITION BY id ORDER BY v DESC) AS rn FROM people
    ) WHERE rn = 1 AND status = 'on'"""
    producer = Producer({"bootstrap.servers": servers})
    for version, people in enumerate(("a+ b+", "a-")):
        for person in people.split():
            row = {"id": person[0], "status": "on" if person[1] == "+" else "off", "v": version}
            producer.produce(source, json.dumps(row).encode())
        producer.flush()
        Session(spark, name="active", checkpoint=str(tmp_path), once=True).execute(script).wait(300)
    found = {key["id"]: value and value["status"] for key, value in target.messages()}
    assert found == {"a": None, "b": "on"}
