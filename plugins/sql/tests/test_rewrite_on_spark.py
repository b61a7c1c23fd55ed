"""Rewritten queries by value, on streams of a real Spark."""

import json
import os

import pytest
from streamcore_sql import parse
from streamcore_sql.rewrite import DropDuplicates, rewrite

BIDS = [  # two batches: the second one moves the watermark far ahead
    [
        {"item": "a", "price": 4, "user": 1, "ts": "2024-01-01 08:05:00", "tags": ["x", "y"]},
        {"item": "a", "price": 2, "user": 1, "ts": "2024-01-01 08:07:00", "tags": []},
        {"item": "b", "price": 5, "user": 2, "ts": "2024-01-01 08:09:00", "tags": ["z"]},
        {"item": "b", "price": 3, "user": 1, "ts": "2024-01-01 08:11:00"},
        {"item": "a", "price": 1, "user": 2, "ts": "2024-01-01 08:13:00"},
        {"item": "a", "price": 1, "user": 2, "ts": "2024-01-01 08:13:00"},
    ],
    [{"item": "c", "price": 9, "user": 3, "ts": "2024-01-01 12:00:00"}],
    [{"item": "c", "price": 9, "user": 3, "ts": "2024-01-01 12:00:01"}],
]
SCHEMA = "item STRING, price INT, user INT, ts TIMESTAMP, tags ARRAY<STRING>"
TABLE = parse(
    "CREATE TABLE bid (item STRING, price INT, `user` INT, ts TIMESTAMP(3), tags ARRAY<STRING>,"
    " WATERMARK FOR ts AS ts)"
)[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bids")
    for number, batch in enumerate(BIDS):
        lines = "\n".join(json.dumps(row) for row in batch)
        file = folder / f"{number}.json"
        file.write_text(lines)
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark reads oldest first
    return folder


@pytest.fixture
def run(spark, folder, tmp_path):
    """Run a query over the bids to its end; each batch is a list of rows."""

    def run(text):
        rewritten = rewrite(parse(text)[0].query, lookup=lambda name: TABLE)
        for ref in rewritten.tables:
            stream = (
                spark.readStream.schema(SCHEMA)
                .option("maxFilesPerTrigger", 1)
                .json(str(folder))
                .withWatermark("ts", "0 seconds")
            )
            stream.createOrReplaceTempView(ref.view)
        for stage in rewritten.stages:
            assert isinstance(stage.operation, DropDuplicates)
            keys = stage.operation.keys
            rows = spark.sql(stage.sql).dropDuplicates(list(keys) if keys else None)
            rows.createOrReplaceTempView(stage.view)
        batches = []
        query = (
            spark.sql(rewritten.sql)
            .writeStream.outputMode(rewritten.mode)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .foreachBatch(lambda rows, _: batches.append([tuple(r) for r in rows.collect()]))
            .start()
        )
        query.awaitTermination(120)
        return rewritten, batches

    spark.conf.set("spark.sql.shuffle.partitions", "1")
    return run


def clock(moment):
    return f"{moment:%H:%M}"


def flat(batches):
    return sorted(row for batch in batches for row in batch)


def windows(batches, *, of=2):
    """Rows with their first columns as clock times, those of the last batches left out."""
    rows = [(*map(clock, row[:of]), *row[of:]) for batch in batches for row in batch]
    return sorted(row for row in rows if row[0] < "12:00")


def test_a_tumbling_window_tells_each_result_once(run):
    rewritten, batches = run(
        "SELECT window_start, window_end, SUM(price), COUNT(DISTINCT `user`) FROM TABLE(TUMBLE("
        "TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) GROUP BY window_start, window_end"
    )
    assert rewritten.mode == "append"
    assert windows(batches) == [("08:00", "08:10", 11, 2), ("08:10", "08:20", 5, 2)]


def test_a_tumbling_window_can_be_shifted(run):
    _, batches = run(
        "SELECT window_start, window_end, SUM(price) FROM TABLE(TUMBLE(DATA => TABLE bid, TIMECOL"
        " => DESCRIPTOR(ts), SIZE => INTERVAL '10' MINUTES, `OFFSET` => INTERVAL '8' MINUTES))"
        " GROUP BY window_start, window_end"
    )
    assert windows(batches) == [("07:58", "08:08", 6), ("08:08", "08:18", 10)]


def test_hopping_windows_overlap(run):
    _, batches = run(
        "SELECT window_start, window_end, SUM(price) AS total FROM TABLE(HOP(TABLE bid, "
        "DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES))"
        " GROUP BY window_start, window_end"
    )
    assert windows(batches) == [
        ("08:00", "08:10", 11),
        ("08:05", "08:15", 16),
        ("08:10", "08:20", 5),
    ]


def test_a_session_ends_after_its_gap(run):
    _, batches = run(
        "SELECT window_start, window_end, item, COUNT(*) FROM TABLE(SESSION(TABLE bid PARTITION BY"
        " item, DESCRIPTOR(ts), INTERVAL '5' MINUTES)) GROUP BY window_start, window_end, item"
    )
    assert windows(batches) == [
        ("08:05", "08:12", "a", 2),
        ("08:09", "08:16", "b", 2),
        ("08:13", "08:18", "a", 2),
    ]


def test_cumulating_windows_grow(run):
    rewritten, batches = run(
        "SELECT window_start, window_end, SUM(price) FROM TABLE(CUMULATE(TABLE bid, DESCRIPTOR(ts),"
        " INTERVAL '5' MINUTES, INTERVAL '15' MINUTES)) GROUP BY window_start, window_end"
    )
    assert rewritten.mode == "update"
    assert windows(batches) == [("08:00", "08:10", 11), ("08:00", "08:15", 16)]


def test_the_older_group_windows_give_the_same(run):
    _, batches = run(
        "SELECT TUMBLE_START(ts, INTERVAL '10' MINUTE), TUMBLE_END(ts, INTERVAL '10' MINUTE),"
        " SUM(price) FROM bid GROUP BY TUMBLE(ts, INTERVAL '10' MINUTE)"
    )
    assert windows(batches) == [("08:00", "08:10", 11), ("08:10", "08:20", 5)]


def test_a_window_without_an_aggregation_adds_its_columns(run):
    _, batches = run(
        "SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES))"
        " WHERE price = 5"
    )
    [row] = flat(batches)
    assert row[:3] == ("b", 5, 2)
    assert [f"{moment:%H:%M:%S}" for moment in row[-3:]] == ["08:00:00", "08:10:00", "08:09:59"]


def test_a_window_of_windows_tells_each_result_once(run):
    _, batches = run(
        "WITH small AS (SELECT window_start AS s, window_time AS rowtime, SUM(price) AS total FROM "
        "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' MINUTES))"
        " GROUP BY window_start, window_end, window_time)"
        " SELECT window_start, window_end, SUM(total), COUNT(*) FROM TABLE(TUMBLE(TABLE small,"
        " DESCRIPTOR(rowtime), INTERVAL '10' MINUTES)) GROUP BY window_start, window_end"
    )
    assert windows(batches) == [("08:00", "08:10", 11, 1), ("08:10", "08:20", 5, 1)]


def test_the_best_row_of_each_window_is_kept(run):
    _, batches = run(
        "SELECT window_start, item, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY"
        " window_start, window_end ORDER BY price DESC) AS rn FROM TABLE(TUMBLE(TABLE bid,"
        " DESCRIPTOR(ts), INTERVAL '10' MINUTES))) WHERE rn = 1"
    )
    assert windows(batches, of=1) == [("08:00", "b", 5), ("08:10", "b", 3)]


def test_windows_of_two_streams_are_joined(run):
    _, batches = run(
        "SELECT l.window_start, l.item, r.price FROM"
        " (SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES))) AS l JOIN"
        " (SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES))) AS r"
        " ON l.price = r.price AND l.window_start = r.window_start AND l.window_end = r.window_end"
        " WHERE l.item = 'b'"
    )
    assert windows(batches, of=1) == [("08:00", "b", 5), ("08:10", "b", 3)]


def test_a_count_without_a_window_tells_each_change(run):
    rewritten, batches = run("SELECT item, COUNT(*), COUNT(DISTINCT `user`) FROM bid GROUP BY item")
    assert rewritten.mode == "update"
    assert batches[0] == [("a", 4, 2), ("b", 2, 2)]
    assert batches[2] == [("c", 2, 1)]


def test_distinct_rows_come_once(run):
    rewritten, batches = run("SELECT DISTINCT item, `user` FROM bid")
    assert rewritten.mode == "append"
    assert flat(batches) == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 3)]


def test_a_union_keeps_equal_rows_once(run):
    _, batches = run("SELECT item FROM bid WHERE price < 3 UNION SELECT item FROM bid")
    assert flat(batches) == [("a",), ("b",), ("c",)]


def test_the_first_row_of_a_key_is_kept(run):
    _, batches = run(
        "SELECT item, price, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY ts)"
        " AS rn FROM bid) WHERE rn = 1"
    )
    assert flat(batches) == [("a", 4, 1), ("b", 5, 1), ("c", 9, 1)]


def test_the_last_row_of_a_key_is_told_again_when_it_changes(run):
    rewritten, batches = run(
        "SELECT item, price, `user` FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item"
        " ORDER BY ts DESC) AS rn FROM bid) WHERE rn = 1 AND price < 5"
    )
    assert rewritten.mode == "update"
    assert flat(batches) == [("a", 1, 2), ("b", 3, 1)]


@pytest.mark.parametrize(
    ("order", "kept"),
    [
        ("price", [("a", 1, 2), ("b", 3, 1)]),
        ("price DESC, ts ASC", [("a", 4, 1), ("b", 5, 2)]),
        ("`user` DESC, price ASC", [("a", 1, 2), ("b", 5, 2)]),
        ("`user` ASC, ts DESC", [("a", 2, 1), ("b", 3, 1)]),
    ],
)
def test_a_key_keeps_the_first_row_of_any_order(run, order, kept):
    rewritten, batches = run(
        "SELECT item, price, `user` FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item"
        f" ORDER BY {order}) AS rn FROM bid) WHERE rn = 1"
    )
    assert rewritten.mode == "update"
    assert sorted(batches[0]) == kept


def test_grouping_sets_of_a_window_tell_which_keys_a_row_has(run):
    _, batches = run(
        "SELECT window_start, item, `user`, COUNT(*), GROUPING_ID(item, `user`) FROM TABLE("
        "TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTE))"
        " GROUP BY window_start, window_end, GROUPING SETS ((item, `user`), (item), ())"
    )
    rows = [row[1:] for batch in batches for row in batch]
    assert sorted(row[-1] for row in rows) == [*[0] * 4, *[1] * 4, *[3] * 2]
    assert ("b", 2, 1, 0) in rows
    assert rows.count((None, None, 3, 3)) == 2


def test_a_star_over_the_last_rows_has_every_column_that_was_selected(run):
    _, batches = run(
        "SELECT * FROM (SELECT item, tags, ROW_NUMBER() OVER (PARTITION BY item"
        " ORDER BY ts DESC, price DESC) AS rn FROM bid) WHERE rn = 1"
    )
    assert sorted(batches[0], key=str) == [("a", None, 1), ("b", None, 1)]


def test_arrays_come_apart(run):
    _, batches = run("SELECT item, tag FROM bid CROSS JOIN UNNEST(tags) AS t(tag)")
    assert flat(batches) == [("a", "x"), ("a", "y"), ("b", "z")]


def test_an_empty_array_keeps_its_row_in_a_left_join(run):
    _, batches = run(
        "SELECT price, tag FROM bid LEFT JOIN UNNEST(tags) AS t(tag) ON TRUE WHERE price IN (2, 5)"
    )
    assert flat(batches) == [(2, None), (5, "z")]


def test_elements_are_numbered_from_one(run):
    _, batches = run("SELECT tag, n FROM bid CROSS JOIN UNNEST(tags) WITH ORDINALITY AS t(tag, n)")
    assert flat(batches) == [("x", 1), ("y", 2), ("z", 1)]


def test_an_interval_join_finds_its_pairs(run):
    _, batches = run(
        "SELECT l.item, r.price FROM bid AS l JOIN bid AS r ON l.item = r.item AND r.ts BETWEEN"
        " l.ts AND l.ts + INTERVAL '3' MINUTE WHERE l.price > r.price"
    )
    assert flat(batches) == [("a", 2), ("b", 3)]
