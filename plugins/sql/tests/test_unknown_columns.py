"""A column that nothing can give is told before Spark is started, with its place."""

import pytest
from streamcore_sql import Session, SqlError

TABLES = """
CREATE TABLE bids (auction BIGINT, price INT, channel STRING, tags ARRAY<STRING>,
  item ROW<name STRING, size INT>, extra MAP<STRING, STRING>, ts TIMESTAMP(3),
  cents AS price * 100, p AS PROCTIME(), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');
CREATE TABLE auctions (id BIGINT, seller STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
  WITH ('connector' = 'datagen');
CREATE VIEW dear (number, cost) AS SELECT auction, price FROM bids WHERE price > 100;
CREATE TABLE sink (id BIGINT, n BIGINT) WITH ('connector' = 'print');
"""


class NoSpark(Exception):
    pass


@pytest.fixture
def session(monkeypatch):
    def start(session):
        raise NoSpark

    session = Session()
    session.execute(TABLES)
    monkeypatch.setattr(Session, "spark", property(start))
    return session


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("SELECT auction, prise FROM bids", {"prise": "Did you mean 'price'?"}),
        (
            "SELECT b.prise, b.chanel FROM bids AS b",
            {"prise": "Did you mean 'price'?", "chanel": "Did you mean 'channel'?"},
        ),
        ("SELECT auction FROM bids WHERE pirce > 3", {"pirce": "Did you mean 'price'?"}),
        ("SELECT COUNT(*) FROM bids GROUP BY chanel", {"chanel": "Did you mean 'channel'?"}),
        ("SELECT itme.name FROM bids", {"itme": "Did you mean 'item'?"}),
        ("INSERT INTO sink SELECT auctoin, 1 FROM bids", {"auctoin": "Did you mean 'auction'?"}),
        ("EXPLAIN SELECT prise FROM bids", {"prise": "Did you mean 'price'?"}),
        ("SELECT numbr FROM dear", {"numbr": "Did you mean 'number'?"}),
        ("CREATE VIEW v AS SELECT prise FROM bids", {"prise": "Did you mean 'price'?"}),
        (
            "SELECT b.price, a.price FROM bids AS b JOIN auctions AS a ON a.id = b.auction",
            {"price": "Columns: id, seller, ts."},
        ),
        (
            "SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(tss), "
            "INTERVAL '1' HOUR)) GROUP BY window_start, window_end",
            {"tss": "Did you mean 'ts'?"},
        ),
        (
            "EXECUTE STATEMENT SET BEGIN INSERT INTO sink SELECT idd, 1 FROM auctions; "
            "INSERT INTO sink SELECT prise, 1 FROM bids; END",
            {"idd": "Did you mean 'id'?", "prise": "Did you mean 'price'?"},
        ),
    ],
)
def test_every_typo_is_told_without_spark(session, statement, told):
    with pytest.raises(SqlError) as caught:
        session.execute(statement)
    problems = caught.value.problems
    assert [each.trouble for each in problems] == [f"no column called '{name}'" for name in told]
    assert [each.place.text for each in problems] == list(told)
    assert [each.hint for each in problems] == list(told.values())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT B.Price, bids.auction FROM bids AS b, bids",
        "SELECT number, cost FROM dear",
        "SELECT item.name, item.`size`, extra['k'], tags[1], (item).size FROM bids",
        "SELECT price AS p1, p1 + 1 AS p2 FROM bids HAVING p2 > 3",
        "SELECT auction, tag FROM bids CROSS JOIN UNNEST(tags) AS t (tag)",
        "SELECT tag, at FROM bids CROSS JOIN UNNEST(tags) WITH ORDINALITY AS t (tag, at)",
        "SELECT k, v FROM bids, UNNEST(extra) AS t (k, v)",
        "SELECT whatever FROM bids, LATERAL TABLE(my_split(channel)) AS t",
        "SELECT word FROM bids, LATERAL TABLE(my_split(channel)) AS t (word)",
        "SELECT x.name FROM (SELECT item.* FROM bids) AS x",
        "SELECT c FROM (SELECT COUNT(*) AS c FROM bids GROUP BY channel)",
        "SELECT EXPR$0 FROM (SELECT COUNT(*) FROM bids GROUP BY channel)",
        "WITH n (a, b) AS (SELECT auction, price FROM bids) SELECT a, n.b FROM n",
        "SELECT a, b FROM (VALUES (1, 2)) AS t (a, b), bids",
        "SELECT TRANSFORM(tags, x -> UPPER(x)) FROM bids",
        "SELECT TIMESTAMPADD(DAY, 1, ts), TIMESTAMPDIFF(SECOND, ts, p), CURRENT_USER FROM bids",
        "SELECT EXTRACT(EPOCH FROM ts), EXTRACT(ISODOW FROM ts), FLOOR(ts TO DECADE) FROM bids",
        "SELECT auction FROM bids AS b WHERE EXISTS (SELECT 1 FROM auctions WHERE id = b.auction)",
        "SELECT (SELECT MAX(id) FROM auctions) AS m, cents FROM bids",
        "SELECT window_start, window_time FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), "
        "INTERVAL '1' HOUR)) AS w",
        "SELECT default_database.bids.price, `bids`.`price` FROM default_database.bids",
        "SELECT CAST(ROW(1, 'a') AS ROW<x INT, y STRING>).x, r.y FROM (SELECT CAST(item AS "
        "ROW<x STRING, y INT>) AS r FROM bids)",
    ],
)
def test_names_that_something_gives_are_left_to_spark(session, query):
    with pytest.raises(NoSpark):
        session.execute(query)
