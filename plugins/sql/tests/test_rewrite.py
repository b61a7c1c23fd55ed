import random

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from streamcore_sql import SqlError, parse
from streamcore_sql.cursor import SqlText
from streamcore_sql.lexer import Kind, text_literal, tokens
from streamcore_sql.rewrite import (
    DropDuplicates,
    Join,
    Stage,
    TableRef,
    TemporalJoin,
    Window,
    rewrite,
    rewrite_expression,
    watermark_delay,
)
from streamcore_sql.source import Source
from streamcore_sql.statements import CreateTable, CreateView, Option

MINUTE = 60_000
CATALOG = {
    str(statement.name): statement
    for statement in parse(
        "CREATE TABLE bid (item STRING, price INT, ts TIMESTAMP(3), pt AS PROCTIME(), rate DOUBLE,"
        " tags ARRAY<STRING>, parts ARRAY<ROW<id INT, n INT>>, attrs MAP<STRING, INT>,"
        " WATERMARK FOR ts AS ts);"
        "CREATE TABLE rates (cur STRING, rate DOUBLE, ts TIMESTAMP(3), note STRING);"
        "CREATE VIEW cheap AS SELECT item, price FROM bid WHERE price < 5;"
        "CREATE VIEW named (a, b) AS SELECT item, price FROM cheap;"
        "CREATE VIEW loop_a AS SELECT * FROM loop_b;"
        "CREATE VIEW loop_b AS SELECT * FROM loop_a;"
        "CREATE VIEW windowed AS SELECT * FROM TABLE("
        "TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"
    )
    if isinstance(statement, CreateTable | CreateView)
}


def run(text, **more):
    more.setdefault("lookup", lambda name: CATALOG.get(".".join(name)))
    return rewrite(parse(text)[0].query, **more)


def tumbled(source="bid", n=1):
    return (
        f"(SELECT *, __w{n}.start AS window_start, __w{n}.end AS window_end,"
        f" window_time(__w{n}) AS window_time FROM"
        f" (SELECT *, window(ts, '10 minutes') AS __w{n} FROM {source}))"
    )


TUMBLE = "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES))"


@pytest.mark.parametrize(
    ("flink", "spark"),
    [
        # what Spark reads as Flink does stays as it is
        (
            "SELECT a, b AS c FROM t WHERE a > 1 AND b IN (1, 2)",
            "SELECT a, b AS c FROM t WHERE a > 1 AND b IN (1, 2)",
        ),
        ("SELECT t.`from`, `a b` FROM t -- done", "SELECT t.`from`, `a b` FROM t"),
        ("SELECT my_function(a) FROM t", "SELECT my_function(a) FROM t"),
        ("VALUES (1, 'a'), (2, 'b')", "VALUES (1, 'a'), (2, 'b')"),
        ("SELECT 'it''s', 'a\\b' FROM t", "SELECT 'it\\'s', 'a\\\\b' FROM t"),
        ("SELECT a FROM t LIMIT 3", "SELECT a FROM t LIMIT 3"),
        (
            "SELECT a FROM t1 UNION ALL SELECT b FROM t2",
            "SELECT a FROM t1 UNION ALL SELECT b FROM t2",
        ),
        # windows
        (
            f"SELECT window_start, window_end, COUNT(*) AS n FROM {TUMBLE} AS w"
            " WHERE price > 1 GROUP BY window_start, window_end HAVING window_start IS NOT NULL",
            f"SELECT __w1.start AS window_start, __w1.end AS window_end, COUNT(*) AS n FROM"
            f" {tumbled()} AS w WHERE price > 1 GROUP BY __w1 HAVING NOT __w1.start IS NULL",
        ),
        (
            f"SELECT w.window_start AS s, item FROM {TUMBLE} AS w"
            " GROUP BY w.window_start, w.window_end, item",
            f"SELECT w.__w1.start AS s, item FROM {tumbled()} AS w GROUP BY w.__w1, item",
        ),
        (f"SELECT * FROM {TUMBLE}", f"SELECT * EXCEPT (__w1) FROM {tumbled()}"),
        (
            f"SELECT window_start, SUM(price) FROM {TUMBLE} GROUP BY window_start",
            f"SELECT window_start, SUM(price) FROM {tumbled()} GROUP BY window_start",
        ),
        (
            f"SELECT window_time, COUNT(*) FROM {TUMBLE} GROUP BY window_start, window_end",
            "SELECT window_time(__w1) AS window_time, `EXPR$1` FROM (SELECT COUNT(*) AS `EXPR$1`,"
            f" __w1 FROM {tumbled()} GROUP BY __w1)",
        ),
        (
            "SELECT HOP_START(ts, INTERVAL '5' MINUTE, INTERVAL '1' HOUR) FROM bid"
            " GROUP BY HOP(ts, INTERVAL '5' MINUTE, INTERVAL '1' HOUR), item",
            "SELECT window(ts, '1 hour', '5 minutes').start FROM bid"
            " GROUP BY window(ts, '1 hour', '5 minutes'), item",
        ),
        (
            "SELECT SESSION_END(ts, INTERVAL '90' SECOND), TUMBLE_ROWTIME(ts, INTERVAL '1' DAY)"
            " FROM bid GROUP BY SESSION(ts, INTERVAL '90' SECOND)",
            "SELECT session_window(ts, '90 seconds').end,"
            " (window(ts, '1 day').end - INTERVAL '0.001' SECOND)"
            " FROM bid GROUP BY session_window(ts, '90 seconds')",
        ),
        # aggregates
        (
            "SELECT COUNT(DISTINCT a) FROM t GROUP BY k",
            "SELECT CAST(size(collect_set(a)) AS BIGINT) FROM t GROUP BY k",
        ),
        (
            "SELECT COUNT(DISTINCT a) FILTER (WHERE b), SUM(c) FILTER (WHERE b) FROM t",
            "SELECT CAST(size(collect_set(a) FILTER(WHERE b)) AS BIGINT),"
            " SUM(c) FILTER(WHERE b) FROM t",
        ),
        # the last row of each key
        (
            "SELECT item FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY ts DESC)"
            " AS rn FROM bid) WHERE rn = 1",
            "SELECT item FROM (SELECT __kept.*, CAST(1 AS BIGINT) AS rn FROM (SELECT"
            " max_by(struct(*), ts) AS __kept FROM (SELECT * FROM bid) AS __rows GROUP BY item))",
        ),
        # arrays and maps
        (
            "SELECT tag FROM bid CROSS JOIN UNNEST(tags) AS t(tag)",
            "SELECT tag FROM bid LATERAL VIEW explode(tags) t AS tag",
        ),
        (
            "SELECT id FROM bid, UNNEST(parts) AS t(id, n)",
            "SELECT id FROM bid LATERAL VIEW inline(parts) t AS id, n",
        ),
        (
            "SELECT k FROM bid LEFT JOIN UNNEST(attrs) AS t(k, v) ON TRUE",
            "SELECT k FROM bid LATERAL VIEW OUTER explode(attrs) t AS k, v",
        ),
        (
            "SELECT b FROM l, LATERAL TABLE(my_split(x)) AS s(b)",
            "SELECT b FROM l CROSS JOIN LATERAL my_split(x) AS s(b)",
        ),
        # joins
        (
            "SELECT b.item FROM bid AS b JOIN rates FOR SYSTEM_TIME AS OF b.pt AS r"
            " ON b.item = r.cur",
            "SELECT b.item FROM bid AS b JOIN rates AS r ON b.item = r.cur",
        ),
        # numbers
        (
            "SELECT price / 2, price / 2.0, rate / 2, (price + 1) / COUNT(*) FROM bid",
            "SELECT price DIV 2, price / 2.0, rate / 2, (price + 1) DIV COUNT(*) FROM bid",
        ),
        (
            "SELECT AVG(price), AVG(rate) FROM bid",
            "SELECT CAST(avg(price) AS BIGINT), AVG(rate) FROM bid",
        ),
        # views
        (
            "SELECT item FROM cheap",
            "SELECT item FROM (SELECT item, price FROM bid WHERE price < 5) AS cheap",
        ),
        (
            "SELECT n.a FROM named AS n",
            "SELECT n.a FROM (SELECT item, price FROM (SELECT item, price FROM bid"
            " WHERE price < 5) AS cheap) AS n(a, b)",
        ),
    ],
)
def test_a_query_becomes_spark_sql(flink, spark):
    assert run(flink).sql == spark


def test_a_window_in_a_view_is_grouped_by_as_a_whole():
    sql = run("SELECT window_start, COUNT(*) FROM windowed GROUP BY window_start, window_end").sql
    assert sql.endswith("GROUP BY __w1")


def test_windows_are_joined_as_wholes():
    side = f"(SELECT * FROM {TUMBLE})"
    sql = run(
        f"SELECT l.item FROM {side} AS l JOIN {side} AS r ON l.item = r.item"
        " AND l.window_start = r.window_start AND l.window_end = r.window_end"
    ).sql
    assert sql.endswith("ON l.item = r.item AND l.__w1 = r.__w2")


def test_counting_distinct_values_can_be_approximate_or_left_to_spark():
    query = "SELECT COUNT(DISTINCT item), COUNT(DISTINCT item, price) FROM bid"
    assert run(query, streaming=False).sql == query
    assert run(query, approximate_distinct=True).sql == (
        "SELECT approx_count_distinct(item), approx_count_distinct(CASE WHEN item IS NOT NULL AND"
        " price IS NOT NULL THEN struct(item, price) END) FROM bid"
    )


def test_a_bounded_query_may_sort_rank_and_deduplicate_as_spark_does():
    query = (
        "SELECT DISTINCT item, ROW_NUMBER() OVER (PARTITION BY item ORDER BY ts) AS rn FROM bid"
        " ORDER BY rn"
    )
    rewritten = run(query, streaming=False)
    assert rewritten.sql == query
    assert rewritten.sorted
    assert rewritten.stages == ()


# --- what a planner must know -----------------------------------------------------------------


def test_windows_and_aggregations_are_described():
    rewritten = run(
        "SELECT window_start, item AS thing, COUNT(*) FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts),"
        " INTERVAL '5' MINUTES, INTERVAL '1:30' HOUR TO MINUTE, INTERVAL '-1' MINUTE))"
        " GROUP BY window_start, window_end, item"
    )
    window = Window("HOP", "ts", 90 * MINUTE, 5 * MINUTE, -MINUTE)
    assert rewritten.windows == (window,)
    [aggregation] = rewritten.aggregations
    assert aggregation.window == window
    assert aggregation.keys == ("thing",)
    assert "window(ts, '90 minutes', '5 minutes', '-1 minute')" in rewritten.sql


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("SELECT item FROM bid", "append"),
        ("SELECT item, COUNT(*) FROM bid GROUP BY item", "update"),
        ("SELECT COUNT(*) FROM bid", "update"),
        (f"SELECT COUNT(*) FROM {TUMBLE} GROUP BY window_start, window_end", "append"),
        (f"SELECT COUNT(*) FROM {TUMBLE} GROUP BY item", "update"),
        (
            f"SELECT COUNT(*) FROM {TUMBLE.replace('ts', 'pt')} GROUP BY window_start, window_end",
            "update",
        ),
        ("SELECT COUNT(*) FROM bid GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)", "append"),
        ("SELECT COUNT(*) FROM bid GROUP BY TUMBLE(pt, INTERVAL '1' HOUR)", "update"),
        ("SELECT DISTINCT item FROM bid", "append"),
    ],
)
def test_the_mode_says_how_results_are_told(text, mode):
    assert run(text).mode == mode


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT item FROM bid WHERE price > 1", ("item", "price")),
        ("SELECT * FROM bid", None),
        ("SELECT b.* FROM bid AS b", None),
        ("SELECT COUNT(*) FROM bid", ()),
        ("SELECT item FROM (SELECT * FROM bid)", ("item",)),
        ("WITH b AS (SELECT * FROM bid) SELECT item, `price` FROM b", ("item", "price")),
        ("SELECT * FROM (SELECT item FROM bid)", ("item",)),
        ("SELECT item FROM (SELECT DISTINCT * FROM bid)", None),
        ("SELECT item FROM (SELECT * FROM bid UNION ALL SELECT * FROM bid)", None),
        ("SELECT item FROM cheap", ("item", "price")),
        (f"SELECT item FROM {TUMBLE}", ("item", "ts")),
        (f"SELECT * FROM {TUMBLE}", None),
        (
            "SELECT item FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY ts DESC)"
            " AS rn FROM bid) WHERE rn = 1",
            ("item", "ts"),
        ),
        (
            "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY ts DESC)"
            " AS rn FROM bid) WHERE rn = 1",
            None,
        ),
        (
            "SELECT x.* FROM (SELECT b.*, ROW_NUMBER() OVER (PARTITION BY item ORDER BY ts DESC)"
            " AS rn FROM bid AS b) AS x WHERE rn = 1",
            None,
        ),
        (
            "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end"
            f" ORDER BY price) AS rn FROM {TUMBLE}) WHERE rn = 1",
            None,
        ),
        ("SELECT 1 FROM x WHERE EXISTS (SELECT * FROM bid WHERE price = 1)", ("price",)),
        ("SELECT item FROM bid NATURAL JOIN rates", None),
        ("SELECT a FROM bid AS b (a, b, c, d, e, f, g, h)", None),
        ("SELECT TO_JSON(STRUCT(*)) FROM bid", None),
        (
            "SELECT b.* FROM bid AS b JOIN rates FOR SYSTEM_TIME AS OF b.ts AS r ON b.item = r.cur",
            None,
        ),
        (
            "SELECT r.* FROM bid AS b JOIN rates FOR SYSTEM_TIME AS OF b.ts AS r ON b.item = r.cur",
            ("item", "ts"),
        ),
    ],
)
def test_only_the_columns_a_query_needs_are_read(text, columns):
    [ref] = [ref for ref in run(text).tables if ref.name == ("bid",)]
    assert ref.columns == columns


def test_a_hint_overrides_options_of_one_reference_only():
    rewritten = run(
        "SELECT x.item FROM bid /*+ OPTIONS('scan.startup.mode' = 'it''s') */ AS x"
        " JOIN bid ON x.item = bid.item JOIN db.bid /*+ OPTIONS('a' = 'b') */ ON TRUE"
    )
    assert rewritten.sql == (
        "SELECT x.item FROM bid_2 AS x JOIN bid ON x.item = bid.item JOIN db_bid_2 AS `bid` ON TRUE"
    )
    assert [(ref.name, ref.view, ref.options) for ref in rewritten.tables] == [
        (("bid",), "bid_2", (Option("scan.startup.mode", "it's"),)),
        (("bid",), "bid", ()),
        (("db", "bid"), "db_bid_2", (Option("a", "b"),)),
    ]
    assert rewritten.tables[0].place.text == "bid"


def test_names_of_views_can_be_prefixed():
    rewritten = run("SELECT DISTINCT item FROM bid", prefix="q7_")
    assert rewritten.sql == "SELECT * FROM q7___step1"
    assert rewritten.stages == (
        Stage("q7___step1", "SELECT item FROM q7_bid AS `bid`", DropDuplicates()),
    )


def test_the_first_row_of_each_key_is_a_stage():
    rewritten = run(
        "SELECT item FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item, price ORDER BY ts) AS rn"
        " FROM bid) WHERE rn <= 1 AND price > 2"
    )
    assert rewritten.stages == (
        Stage(
            "__step1",
            "SELECT *, CAST(1 AS BIGINT) AS rn FROM bid",
            DropDuplicates(("item", "price"), "ts"),
        ),
    )
    assert rewritten.sql == "SELECT item FROM (SELECT * FROM __step1) WHERE price > 2"
    assert [note.place.text for note in rewritten.notes] == ["ROW_NUMBER"]


KEPT = "SELECT * FROM (SELECT __kept.*, CAST(1 AS BIGINT) AS rn FROM (SELECT {} AS __kept FROM ({})"
KEPT += " AS __rows GROUP BY {}))"


@pytest.mark.parametrize(
    ("selected", "window", "spark"),
    [
        (
            "*",
            "PARTITION BY item ORDER BY ts DESC",
            ("max_by(struct(*), ts)", "SELECT * FROM bid", "item"),
        ),
        (
            "item, price",
            "PARTITION BY item ORDER BY ts DESC",
            (
                "max_by(struct(* EXCEPT (__order1)), __order1)",
                "SELECT item, price, ts AS __order1 FROM bid",
                "item",
            ),
        ),
        (
            "UPPER(item) AS item",
            "PARTITION BY item ORDER BY bid.ts DESC, price DESC",
            (
                "max_by(struct(* EXCEPT (__key1, __order1, __order2)), struct(__order1, __order2))",
                "SELECT UPPER(item) AS item, item AS __key1, bid.ts AS __order1, price AS __order2"
                " FROM bid",
                "__key1",
            ),
        ),
        (
            "*",
            "PARTITION BY item ORDER BY CHAR_LENGTH(item) DESC",
            (
                "max_by(struct(* EXCEPT (__order1)), __order1)",
                "SELECT *, CHAR_LENGTH(item) AS __order1 FROM bid",
                "item",
            ),
        ),
    ],
)
def test_the_last_row_needs_neither_its_key_nor_its_order_selected(selected, window, spark):
    text = f"SELECT {selected}, ROW_NUMBER() OVER ({window}) AS rn FROM bid"
    assert run(f"SELECT * FROM ({text}) WHERE rn = 1").sql == KEPT.format(*spark)


def test_stages_come_inner_ones_first_with_the_expressions_they_name():
    rewritten = run(
        "WITH a AS (SELECT item FROM bid), b AS (SELECT DISTINCT item FROM a),"
        " c AS (SELECT DISTINCT item FROM b) SELECT COUNT(*) FROM c"
    )
    assert [stage.sql for stage in rewritten.stages] == [
        "WITH a AS (SELECT item FROM bid) SELECT item FROM a",
        "WITH b AS (SELECT * FROM __step1) SELECT item FROM b",
    ]


def test_a_temporal_join_on_processing_time_reads_the_table_anew():
    rewritten = run(
        "SELECT b.item, r.rate FROM bid AS b LEFT JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r"
        " ON b.item = r.cur"
    )
    assert rewritten.joins == (Join("LEFT", "processing-time"),)
    assert [ref.lookup for ref in rewritten.tables] == [False, True]
    assert rewritten.tables[1].columns == ("cur", "rate")


def test_a_temporal_join_on_event_time_is_a_stage():
    rewritten = run(
        "SELECT b.item, r.rate FROM bid AS b JOIN rates FOR SYSTEM_TIME AS OF b.ts AS r"
        " ON b.item = r.cur WHERE r.rate > 1"
    )
    right = TableRef(("rates",), "rates", columns=("cur", "rate"))
    operation = TemporalJoin("b", right, "r", (("item", "cur"),), "ts")
    assert rewritten.stages == (Stage("__step1", "SELECT * FROM bid AS b", operation),)
    assert rewritten.sql == "SELECT b.item, r.rate FROM (SELECT * FROM __step1) WHERE r.rate > 1"


@pytest.mark.parametrize(
    ("text", "keys", "sql"),
    [
        (
            "SELECT * FROM bid AS b JOIN rates FOR SYSTEM_TIME AS OF b.ts AS r ON r.cur = b.item",
            (("item", "cur"),),
            "SELECT b.*, r.* FROM (SELECT * FROM __step1)",
        ),
        (
            "SELECT * FROM bid AS b JOIN rates FOR SYSTEM_TIME AS OF b.ts AS r USING (rate)",
            (("rate", "rate"),),
            "SELECT b.*, r.* EXCEPT (rate) FROM (SELECT * FROM __step1)",
        ),
        (
            "SELECT rate, r.note FROM bid AS b"
            " JOIN rates FOR SYSTEM_TIME AS OF b.ts AS r USING (rate)",
            (("rate", "rate"),),
            "SELECT b.rate, r.note FROM (SELECT * FROM __step1)",
        ),
        (
            "SELECT * FROM bid AS b JOIN rates FOR SYSTEM_TIME AS OF b.ts AS r ON b.item = r.cur"
            " JOIN other AS o ON o.item = b.item",
            (("item", "cur"),),
            "SELECT b.*, r.*, o.* FROM (SELECT * FROM __step1) JOIN other AS o ON o.item = b.item",
        ),
    ],
)
def test_stars_and_using_of_a_temporal_join_mean_both_sides(text, keys, sql):
    rewritten = run(text)
    assert rewritten.stages[0].operation.keys == keys
    assert rewritten.sql == sql


def test_differences_from_flink_are_noted():
    notes = run("SELECT a / b, PROCTIME() FROM unknown").notes
    assert [note.place.text for note in notes] == ["PROCTIME", "a"]
    [note] = run("SELECT /*+ STATE_TTL('bid' = '1d') */ item FROM bid").notes
    assert note.text == (
        "the hint /*+ STATE_TTL('bid' = '1d') */ is left out: Spark plans by itself"
    )


# --- expressions of a table ---------------------------------------------------------------------


def test_an_expression_is_rewritten_alone():
    assert rewrite_expression(SqlText("TO_TIMESTAMP_LTZ(`ts`, 3)")) == (
        "timestamp_millis(CAST(`ts` AS BIGINT))"
    )
    assert rewrite_expression(SqlText("a || 'it''s'")) == "a || 'it\\'s'"
    assert rewrite_expression(SqlText("PROCTIME()")) == "current_timestamp()"


def test_a_moment_is_read_from_a_column_of_its_own_type():
    text = "SELECT TO_TIMESTAMP_LTZ(item), TO_TIMESTAMP_LTZ(price) FROM bid"
    assert run(text).sql == "SELECT try_to_timestamp(item), timestamp_millis(price) FROM bid"


def test_an_argument_stays_whole_beside_an_operator():
    assert rewrite_expression(SqlText("ARRAY_SLICE(a, i + 1, j)")) == (
        "slice(a, (i + 1), greatest(j - (i + 1) + 1, 0))"
    )
    assert rewrite_expression(SqlText("ABS(a + 1)")) == "ABS(a + 1)"
    assert rewrite_expression(SqlText("GREATEST(a OR b, c)")) == (
        "CASE WHEN (a OR b) IS NULL OR c IS NULL THEN NULL ELSE GREATEST(a OR b, c) END"
    )


@pytest.mark.parametrize(
    ("expression", "delay"),
    [
        ("ts", 0),
        ("ts - INTERVAL '5' SECOND", 5000),
        ("`ts` - INTERVAL '0.5' SECONDS", 500),
        ("ts - INTERVAL '1 02:03:04.5' DAY TO SECOND", 93_784_500),
    ],
)
def test_a_watermark_stays_a_fixed_time_behind(expression, delay):
    table = parse(f"CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS {expression})")[0]
    assert watermark_delay(table.watermark) == delay


@pytest.mark.parametrize("expression", ["SOURCE_WATERMARK()", "x - INTERVAL '1' SECOND", "ts + 1"])
def test_any_other_watermark_is_refused(expression):
    table = parse(f"CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS {expression})")[0]
    with pytest.raises(SqlError) as caught:
        watermark_delay(table.watermark)
    assert str(caught.value).endswith("Write WATERMARK FOR ts AS ts - INTERVAL '5' SECOND.")


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "trouble", "hint"),
    [
        (
            "SELECT * FROM bid MATCH_RECOGNIZE (PARTITION BY item)",
            "MATCH_RECOGNIZE",
            "MATCH_RECOGNIZE is not supported",
            "Find the pattern in a Python function over the rows of a key.",
        ),
        (
            "SELECT item FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY ts) AS rn"
            " FROM bid) WHERE rn <= 3",
            "ROW_NUMBER",
            "ROW_NUMBER on a stream keeps one row per key, not more",
            "Filter it with '= 1', or read a bounded table.",
        ),
        (
            "SELECT SUM(price) OVER (PARTITION BY item ORDER BY ts) FROM bid",
            "SUM",
            "SUM OVER (...) is not supported on a stream",
            "Group by a window instead: TUMBLE, HOP, SESSION or CUMULATE.",
        ),
        (
            "SELECT item FROM bid ORDER BY price",
            "price",
            "a stream cannot be sorted",
            "Leave it out: rows come as they come. Bounded tables can be sorted.",
        ),
        (
            "SELECT item FROM bid EXCEPT SELECT cur FROM rates",
            "cur",
            "EXCEPT is not supported on a stream",
            "Join the two instead, or read bounded tables.",
        ),
        (
            "SELECT SUM(DISTINCT price) FROM bid",
            "SUM",
            "SUM(DISTINCT ...) is not supported on a stream",
            "Aggregate a subquery of distinct rows instead: FROM (SELECT DISTINCT k, x FROM t).",
        ),
        (
            "SELECT COLLECT(price) FROM bid",
            "COLLECT",
            "COLLECT is not supported",
            "Write ARRAY_AGG(x), or COUNT(*) ... GROUP BY x for the number of each value.",
        ),
        (
            "SELECT CURRENT_WATERMARK(ts) FROM bid",
            "CURRENT_WATERMARK",
            "CURRENT_WATERMARK is not supported",
            "Spark applies the watermark by itself; late rows are dropped.",
        ),
        (
            "SELECT DATE_FORMAT(ts, 'YYYY-MM-dd') FROM bid",
            "DATE_FORMAT",
            "'Y' is the year of the week, which Spark does not format",
            "Write 'yyyy' for the year.",
        ),
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts)))",
            "TUMBLE",
            "TUMBLE takes DATA, TIMECOL, SIZE",
            "Write TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE).",
        ),
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MONTH))",
            "TUMBLE",
            "the SIZE of TUMBLE has no fixed length",
            "Months and years differ in length: write days, hours, minutes or seconds.",
        ),
        (
            "SELECT * FROM TABLE(SESSION(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE))",
            "SESSION",
            "a SESSION window needs a GROUP BY",
            "Sessions exist per group: GROUP BY window_start, window_end and the keys.",
        ),
        (
            "SELECT COUNT(*) FROM TABLE(SESSION(TABLE bid PARTITION BY item, DESCRIPTOR(ts),"
            " INTERVAL '1' MINUTE)) GROUP BY window_start, window_end",
            "SESSION",
            "a SESSION window is grouped by all its keys",
            "Add item to GROUP BY.",
        ),
        (
            "SELECT * FROM TABLE(CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '4' MINUTE,"
            " INTERVAL '10' MINUTE))",
            "CUMULATE",
            "CUMULATE: the step does not divide the size",
            "Choose a size that is a multiple of the step.",
        ),
        (
            "SELECT item FROM bid JOIN rates FOR SYSTEM_TIME AS OF bid.ts ON bid.item = rates.cur",
            "item",
            "'item' could come from both sides of the temporal join",
            "Write bid.item or rates.item.",
        ),
        (
            "SELECT b.item FROM bid AS b JOIN rates FOR SYSTEM_TIME AS OF b.ts AS r"
            " ON UPPER(b.item) = r.cur",
            "rates",
            "a temporal join takes equal columns only",
            "Join on columns: ON b.k = r.k; compute a key in a subquery or a computed column, and"
            " move the rest to WHERE.",
        ),
        (
            "SELECT b.item FROM bid AS b CROSS JOIN rates FOR SYSTEM_TIME AS OF b.ts AS r",
            "rates",
            "a temporal join joins a stream with a table, INNER or LEFT",
            "Put it first: FROM rows JOIN versions FOR SYSTEM_TIME AS OF rows.ts AS v ON ...",
        ),
        (
            "SELECT item SIMILAR TO 'a%' FROM bid",
            "SIMILAR",
            "SIMILAR TO is not supported",
            "Write s RLIKE '^(pattern)$', with a regular expression.",
        ),
        (
            "SELECT item IS NOT JSON FROM bid",
            "JSON",
            "IS JSON is not supported",
            "Write TRY_PARSE_JSON(s) IS NOT NULL.",
        ),
        (
            "SELECT (ts, ts) OVERLAPS (ts, ts) FROM bid",
            "OVERLAPS",
            "OVERLAPS is not supported",
            "Compare the bounds: a_start < b_end AND b_start < a_end.",
        ),
        (
            "SELECT JSON_STRING(item) FROM bid",
            "JSON_STRING",
            "JSON_STRING is not supported",
            "Write TO_JSON(x) for a row, an array or a map.",
        ),
        (
            "SELECT a FROM loop_a",
            "loop_a",
            "view 'loop_a' reads itself: loop_a -> loop_b -> loop_a",
            "",
        ),
        ("SELECT item FROM bid WHERE price = = 1", "=", "'=' does not fit here", ""),
        (
            "SELECT item, FROM bid",
            ",",
            "',' does not fit before FROM",
            "Remove it, or name one more column.",
        ),
        (
            "SELECT JSON_OBJECTAGG(KEY item VALUE price NULL ON NULL) FROM bid",
            "JSON_OBJECTAGG",
            "JSON_OBJECTAGG is not supported",
            "Write TO_JSON(MAP_FROM_ARRAYS(COLLECT_LIST(k), COLLECT_LIST(v))).",
        ),
        (
            "SELECT item FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY ts DESC,"
            " item ASC) AS rn FROM bid) WHERE rn = 1",
            "ROW_NUMBER",
            "ROW_NUMBER in two directions is not supported for 'item'",
            "Order by columns that are numbers or times, or all one way.",
        ),
        (
            "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(price), INTERVAL '1' HOUR))"
            " GROUP BY window_start, window_end",
            "price",
            "'price' is INT, and windows need a time",
            "Declare one in the table: ts AS TO_TIMESTAMP_LTZ(price, 3).",
        ),
    ],
)
def test_what_cannot_be_done_is_said_with_what_to_write_instead(text, place, trouble, hint):
    with pytest.raises(SqlError) as caught:
        run(text)
    assert (caught.value.trouble, caught.value.hint) == (trouble, hint)
    assert caught.value.place.text == place


def test_a_refusal_points_at_its_line_in_a_script():
    script = "SET 'a' = 'b';\nINSERT INTO t\nSELECT item,\n  RANK() OVER (ORDER BY ts)\nFROM bid"
    with pytest.raises(SqlError) as caught:
        rewrite(parse(script)[1].query)
    assert str(caught.value) == (
        "line 4, column 3: RANK on a stream keeps one row per key, not more\n"
        "      RANK() OVER (ORDER BY ts)\n"
        "      ^^^^\n"
        "Filter it with '= 1', or read a bounded table."
    )


def test_a_query_nested_too_deeply_is_refused():
    text = "(" * 3000 + "1" + ")" * 3000
    with pytest.raises(SqlError, match="this query is nested too deeply"):
        rewrite(SqlText(f"SELECT {text}"))
    with pytest.raises(SqlError, match="this expression is nested too deeply"):
        rewrite_expression(SqlText(text))


def test_a_long_query_is_not_a_deep_one():
    text = "SELECT " + "1 + " * 3000 + "1 AS total"
    assert rewrite(SqlText(text)).sql == text


# --- for any input --------------------------------------------------------------------------------


@given(st.text(max_size=30))
def test_any_text_reaches_spark_as_it_was(value):
    sql = rewrite(SqlText(f"SELECT {text_literal(value)}")).sql
    [literal] = sqlglot.parse_one(sql, read="spark").expressions
    assert literal.this == value


QUERIES = [
    f"SELECT window_start, item, COUNT(DISTINCT price) FROM {TUMBLE} GROUP BY window_start,"
    " window_end, item",
    "SELECT item FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY ts DESC) AS rn"
    " FROM bid) WHERE rn = 1",
    "SELECT b.item, CAST(JSON_VALUE(x, '$.a' RETURNING INT) AS BIGINT) FROM bid AS b JOIN rates"
    " FOR SYSTEM_TIME AS OF b.ts AS r ON b.item = r.cur CROSS JOIN UNNEST(tags) AS t(tag)",
    "SELECT TUMBLE_START(ts, INTERVAL '1' HOUR), EXTRACT(DAY FROM ts), TRIM(BOTH 'x' FROM item)"
    " FROM bid /*+ OPTIONS('a'='b') */ GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)",
]


@pytest.mark.parametrize("seed", range(4))
def test_broken_queries_are_refused_and_never_crash(seed):
    chance = random.Random(seed)
    pieces = [
        [q[t.start : t.end] for t in tokens(Source(q)) if t.kind is not Kind.END] for q in QUERIES
    ]
    outcomes = set()
    for _ in range(150):
        words = list(chance.choice(pieces))
        for _ in range(chance.randint(1, 3)):
            words[chance.randrange(len(words))] = chance.choice(chance.choice(pieces))
        try:
            outcomes.add(bool(run_text(" ".join(words)).sql))
        except SqlError as error:
            outcomes.add(bool(error.trouble))
    assert outcomes == {True}


def run_text(text):
    return rewrite(SqlText(text), lookup=lambda name: CATALOG.get(".".join(name)))


@pytest.mark.parametrize(
    ("condition", "endless"),
    [
        ("l.ts BETWEEN r.ts AND r.ts + INTERVAL '1' HOUR", False),
        ("l.price > 3 AND r.ts > TIMESTAMP '2024-01-01 00:00:00'", True),
    ],
)
def test_a_bound_on_time_in_where_bounds_an_inner_join(condition, endless):
    comma = run(f"SELECT l.item FROM bid AS l, bid AS r WHERE l.item = r.item AND {condition}")
    inner = run(f"SELECT l.item FROM bid AS l JOIN bid AS r ON l.item = r.item WHERE {condition}")
    assert [join.endless for join in (*comma.joins, *inner.joins)] == [endless, endless]
