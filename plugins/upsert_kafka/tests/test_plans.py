"""What queries over changes do to kinds, and what is refused because no kind would tell it."""

import pytest
from streamcore_sql import Session, SqlError

AT = "'properties.bootstrap.servers' = '127.0.0.1:1'"
UPSERT = f"WITH ('connector' = 'upsert-kafka', {AT}, 'key.format' = 'json', 'value.format' = 'json'"
PLAIN = f"WITH ('connector' = 'kafka', {AT}, 'scan.startup.mode' = 'earliest-offset'"
RATES = "(currency STRING, rate INT, since TIMESTAMP(3), WATERMARK FOR since AS since, {key})"
KEY = "PRIMARY KEY (currency) NOT ENFORCED"
TABLES = f"""
CREATE TABLE people (id INT, name STRING, city STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts,
  PRIMARY KEY (id) NOT ENFORCED) {PLAIN}, 'topic' = 'people', 'format' = 'debezium-json');
CREATE TABLE views (region STRING, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
  {PLAIN}, 'topic' = 'views', 'format' = 'json');
CREATE TABLE rates {RATES.format(key=KEY)} {UPSERT}, 'topic' = 'rates');
CREATE TABLE normal {RATES.format(key=KEY)} {UPSERT}, 'topic' = 'rates',
  'changelog.normalize' = 'true');
CREATE TABLE inserts (a STRING, b INT) {PLAIN}, 'topic' = 'o', 'format' = 'json');
CREATE TABLE changes (a STRING, b INT) {PLAIN}, 'topic' = 'o', 'format' = 'debezium-json');
CREATE TABLE by_name (a STRING, b INT, PRIMARY KEY (a) NOT ENFORCED) {UPSERT}, 'topic' = 'o');
CREATE TABLE by_id (a INT, b STRING, PRIMARY KEY (a) NOT ENFORCED) {UPSERT}, 'topic' = 'o');
"""
NOW = "(SELECT *, PROCTIME() AS p FROM {0}) AS u JOIN normal FOR SYSTEM_TIME AS OF u.p AS x"


@pytest.fixture
def plan(spark):
    """What EXPLAIN says of an INSERT; Spark has looked at it, too."""
    session = Session(spark)
    session.execute(TABLES)
    return lambda insert: str(session.execute(f"EXPLAIN INSERT INTO {insert}"))


def test_rows_that_find_nothing_to_join_are_deleted(plan):
    join = NOW.format("rates")
    text = plan(f"by_name SELECT u.currency, x.rate FROM {join} ON u.rate = x.rate")
    assert "IF(COALESCE(`_found_1`, FALSE), `_row_kind`, '-D') AS `_row_kind`" in text
    assert "LEFT JOIN (SELECT *, TRUE AS `_found_1`" in text


@pytest.mark.parametrize(
    "insert",
    [
        f"by_id SELECT u.id, x.currency FROM {NOW.format('people')} ON u.city = x.currency "
        "WHERE x.rate > 3",
        f"by_id SELECT u.id, x.currency FROM {NOW.format('people')} ON TRUE",
        f"by_id SELECT u.id, u.name FROM {NOW.format('people')} ON u.city = x.currency",
        "by_id SELECT * FROM (SELECT id, name FROM people)",
        "by_id SELECT p.* FROM (SELECT id, name FROM people) AS p WHERE p.name <> 'x'",
        "by_id SELECT pid, name FROM (SELECT id AS pid, name FROM people)",
        "by_id SELECT pid, name FROM (SELECT id AS pid, name FROM people) AS t WHERE name <> 'x'",
        "by_name SELECT region AS r, COUNT(*) FROM views GROUP BY r",
        "inserts SELECT v.region, r.rate FROM views AS v "
        "JOIN rates FOR SYSTEM_TIME AS OF v.ts AS r ON v.region = r.currency",
        f"inserts SELECT u.region, x.rate FROM {NOW.format('views')} ON u.region = x.currency",
    ],
)
def test_queries_that_tell_all_their_changes_are_planned(plan, insert):
    assert plan(insert)


def test_a_table_that_keeps_every_change_is_told_old_rows(plan):
    text = plan("changes SELECT currency, rate FROM rates WHERE rate > 2")
    assert "keeps the latest row of each currency" in text


def test_deletes_that_end_no_version_are_told(spark):
    session = Session(spark)
    session.execute(TABLES)
    (insert,) = session.parse(
        "INSERT INTO inserts SELECT v.region, r.rate FROM views AS v "
        "JOIN rates FOR SYSTEM_TIME AS OF v.ts AS r ON v.region = r.currency"
    )
    notes = session.prepare(insert).notes
    assert (
        "a delete in 'rates' has its key alone, and so no 'since': rows go on meeting the version "
        "that was deleted, unless the time is that of the message, as in "
        "since TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'"
    ) in notes


@pytest.mark.parametrize(
    ("insert", "expected"),
    [
        (
            "by_id SELECT p.id, v.region FROM people AS p JOIN views AS v ON p.city = v.region "
            "AND v.ts BETWEEN p.ts AND p.ts + INTERVAL '1' HOUR WHERE v.n > 2",
            "'people' updates and deletes rows, which a join or set of streams cannot pass on",
        ),
        (
            "by_id SELECT id, name FROM people WHERE city IN (SELECT region FROM views)",
            "'people' updates and deletes rows, which a join or set of streams cannot pass on",
        ),
        (
            "by_id SELECT id, t.x FROM people CROSS JOIN UNNEST(ARRAY['a', 'b']) AS t(x)",
            "'people' updates and deletes rows, and UNNEST makes several of one",
        ),
        (
            "by_id SELECT id, name FROM people LIMIT 3",
            "'people' updates and deletes rows, and LIMIT would take its first changes, not its "
            "first rows",
        ),
        (
            "changes SELECT region, CAST(COUNT(*) AS INT) FROM views GROUP BY region",
            "table 'changes' ('kafka') keeps every change, and so must be told each row as it was "
            "before; this query only tells what its rows are now",
        ),
        (
            "inserts SELECT v.region, p.id FROM (SELECT *, PROCTIME() AS at FROM views) AS v "
            "JOIN people FOR SYSTEM_TIME AS OF v.at AS p ON v.region = p.city",
            "a lookup takes the rows of a table, and 'people' has changes",
        ),
        (
            "inserts SELECT currency, rate FROM normal",
            "only takes inserts, but 'normal' updates and deletes rows",
        ),
        (
            f"by_name SELECT u.name, x.rate FROM {NOW.format('people')} ON u.city = x.currency",
            "rows of this query are told apart by id, but the primary key of 'by_name' leaves out "
            "id",
        ),
        (
            f"by_name SELECT x.currency, x.rate FROM {NOW.format('rates')} ON u.rate = x.rate",
            "rows of this query are told apart by currency, but the primary key of 'by_name' "
            "leaves out currency",
        ),
        (
            "inserts SELECT v.region, r.rate FROM views AS v "
            "JOIN normal FOR SYSTEM_TIME AS OF v.ts AS r ON v.region = r.currency",
            "'normal' is normalised, and a join at a row's own time takes its versions as they are",
        ),
    ],
)
def test_what_would_lose_or_repeat_changes_is_refused(plan, insert, expected):
    with pytest.raises(SqlError) as caught:
        plan(insert)
    assert expected in str(caught.value)
