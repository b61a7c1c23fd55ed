"""Every function Spark says differently, by value on a real Spark."""

import re
from datetime import date, datetime
from decimal import Decimal

import pytest
from streamcore_sql import parse
from streamcore_sql.cursor import SqlText
from streamcore_sql.rewrite import rewrite
from streamcore_sql.rewrite.function_table import TEMPLATES
from streamcore_sql.rewrite.special_calls import SPECIAL

TS = "TIMESTAMP '2024-03-05 10:20:30.123'"
JSON = """'{"a": 1, "b": "x", "c": {"d": [1, 2]}, "e": 1.5}'"""

CASES = {
    # texts
    "'it''s' || ' \\n'": "it's \\n",
    "U&'caf\\00e9'": "café",
    "CHAR_LENGTH('äb')": 2,
    "CHARACTER_LENGTH('äb')": 2,
    "UPPER('a') || LOWER('B')": "Ab",
    "LTRIM('xxa', 'x')": "a",
    "RTRIM('axx', 'x')": "a",
    "BTRIM('xax', 'x')": "a",
    "TRIM('  a ')": "a",
    "TRIM(BOTH 'x' FROM 'xax')": "a",
    "TRIM(LEADING FROM '  a')": "a",
    "TRIM('x' FROM 'xax')": "a",
    "POSITION('b' IN 'abc')": 2,
    "SUBSTRING('abcdef' FROM 2 FOR 3)": "bcd",
    "SUBSTRING('abcdef', 3)": "cdef",
    "OVERLAY('abcdef' PLACING 'X' FROM 2 FOR 3)": "aXef",
    "OVERLAY('abcdef' PLACING 'X' FROM 2)": "aXcdef",
    "REGEXP('abc', 'b.')": True,
    "REGEXP_EXTRACT('foobar', 'o(b)')": "ob",
    "REGEXP_EXTRACT('foobar', 'o(b)', 1)": "b",
    "REGEXP_EXTRACT('foobar', 'z(b)', 1)": None,
    "REGEXP_REPLACE('a1b22', '\\d+', '#')": "a#b#",
    "SPLIT_INDEX('a.b.c', '.', 1)": "b",
    "SPLIT_INDEX('a.b.c', '.', 9)": None,
    "SPLIT('a.b', '.')": ["a", "b"],
    "STR_TO_MAP('a=1,b=2')": {"a": "1", "b": "2"},
    "STR_TO_MAP('a:1;b:2', ';', ':')": {"a": "1", "b": "2"},
    "FROM_BASE64('YWI=')": "ab",
    "TO_BASE64('ab')": "YWI=",
    "MD5('a')": "0cc175b9c0f1b6a831c399e269772661",
    "SHA1('a')": "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8",
    "CHAR_LENGTH(SHA224('a'))": 56,
    "SHA256('a')": "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
    "CHAR_LENGTH(SHA384('a'))": 96,
    "CHAR_LENGTH(SHA512('a'))": 128,
    "CHAR_LENGTH(UUID())": 36,
    "IS_ALPHA('ab')": True,
    "IS_DIGIT('a1')": False,
    "IS_DECIMAL('1.5')": True,
    "IS_DECIMAL('x')": False,
    "CONCAT_WS('-', 'a', NULL, 'b')": "a-b",
    "LPAD('a', 3, 'x') || RPAD('b', 3, 'y')": "xxabyy",
    "INITCAP('ab cd')": "Ab Cd",
    "REPLACE('aba', 'a', 'x')": "xbx",
    "REVERSE('abc')": "cba",
    "PARSE_URL('http://h/p?k=v', 'QUERY', 'k')": "v",
    "'a\\b' LIKE 'a\\b'": True,
    "'a_b' LIKE 'a!_b' ESCAPE '!'": True,
    # numbers
    "7 / 2": 3,
    "7.0 / 2": Decimal("3.5"),
    "MOD(7, 4)": 3,
    "TRUNCATE(-1.239, 2)": -1.23,
    "TRUNCATE(CAST(42.9 AS DOUBLE))": 42.0,
    "RAND_INTEGER(1)": 0,
    "RAND_INTEGER(3, 1)": 0,
    "CEIL(1.2)": 2,
    "FLOOR(-1.2)": -2,
    "GREATEST(1, 3, 2)": 3,
    "GREATEST(1, CAST(NULL AS INT))": None,
    "LEAST(1, CAST(NULL AS INT))": None,
    "IF(1 > 2, 'a', 'b')": "b",
    "IFNULL(CAST(NULL AS INT), 5)": 5,
    "COALESCE(NULL, 1)": 1,
    "NULLIF(1, 1)": None,
    "CASE WHEN TRUE THEN 1 ELSE 2 END": 1,
    # points in time
    "TO_TIMESTAMP('2024-03-05 10:20:30')": datetime(2024, 3, 5, 10, 20, 30),
    "TO_TIMESTAMP('05.03.2024', 'dd.MM.yyyy')": datetime(2024, 3, 5),
    "TO_TIMESTAMP('nonsense')": None,
    "CAST(TO_TIMESTAMP_LTZ(1500, 3) AS STRING)": "1970-01-01 00:00:01.5",
    "CAST(TO_TIMESTAMP_LTZ(2, 0) AS STRING)": "1970-01-01 00:00:02",
    "CAST(TO_TIMESTAMP_LTZ(CAST(2500 AS BIGINT)) AS STRING)": "1970-01-01 00:00:02.5",
    "CAST(TO_TIMESTAMP_LTZ(UPPER('2024-03-05 10:20:30')) AS STRING)": "2024-03-05 10:20:30",
    "CAST(TO_TIMESTAMP_LTZ(ABS(CAST(2500 AS BIGINT))) AS STRING)": "1970-01-01 00:00:02.5",
    "CAST(TO_TIMESTAMP_LTZ('2024-03-05 10:20:30') AS STRING)": "2024-03-05 10:20:30",
    "CAST(TO_TIMESTAMP_LTZ('5.3.24 10:20', 'd.M.yy HH:mm', 'Asia/Tokyo') AS STRING)": (
        "2024-03-05 01:20:00"
    ),
    "TO_DATE('2024-03-05')": date(2024, 3, 5),
    "TO_DATE('05/03/24', 'dd/MM/yy')": date(2024, 3, 5),
    f"DATE_FORMAT({TS}, 'yyyy-MM-dd HH:mm:ss.SSS')": "2024-03-05 10:20:30.123",
    "FROM_UNIXTIME(0)": "1970-01-01 00:00:00",
    "UNIX_TIMESTAMP('1970-01-01 00:00:05')": 5,
    f"EXTRACT(SECOND FROM {TS})": 30,
    f"EXTRACT(MILLISECOND FROM {TS})": 123,
    f"EXTRACT(EPOCH FROM {TS})": 1709634030,
    f"EXTRACT(YEAR FROM {TS})": 2024,
    f"EXTRACT(ISODOW FROM {TS})": 2,
    f"EXTRACT(ISOYEAR FROM {TS})": 2024,
    f"WEEK({TS})": 10,
    f"CAST(FLOOR({TS} TO HOUR) AS STRING)": "2024-03-05 10:00:00",
    f"CAST(CEIL({TS} TO HOUR) AS STRING)": "2024-03-05 11:00:00",
    "CAST(CEILING(TIMESTAMP '2024-03-05 00:00:00' TO DAY) AS STRING)": "2024-03-05 00:00:00",
    f"TIMESTAMPDIFF(MINUTE, TIMESTAMP '2024-03-05 10:00:00', {TS})": 20,
    f"CAST(TIMESTAMPADD(DAY, 1, {TS}) AS STRING)": "2024-03-06 10:20:30.123",
    f"CAST({TS} + INTERVAL '1' DAY AS STRING)": "2024-03-06 10:20:30.123",
    "CONVERT_TZ('2024-01-01 00:00:00', 'UTC', 'Asia/Tokyo')": "2024-01-01 09:00:00",
    "PROCTIME() IS NOT NULL": True,
    "LOCALTIMESTAMP IS NOT NULL": True,
    "LOCALTIME IS NOT NULL": True,
    "CURRENT_ROW_TIMESTAMP() <= CURRENT_TIMESTAMP": True,
    "DATE '2024-03-05'": date(2024, 3, 5),
    # casts
    "CAST('1' AS INT) + 1": 2,
    "TRY_CAST('x' AS INT)": None,
    "CAST(1 AS STRING)": "1",
    "CAST('abcdef' AS VARCHAR(3))": "abc",
    "CAST(123 AS VARCHAR)": "123",
    "CAST('ab' AS CHAR(4))": "ab  ",
    "CAST('ab' AS BYTES)": bytearray(b"ab"),
    "CAST(1.239 AS DECIMAL(10, 2))": Decimal("1.24"),
    "CAST('2024-03-05 10:20:30' AS TIMESTAMP(3))": datetime(2024, 3, 5, 10, 20, 30),
    "CAST(ROW(1, 'a') AS ROW<x BIGINT, y STRING>).y": "a",
    "CAST(ARRAY[1] AS ARRAY<STRING>)": ["1"],
    # JSON
    f"JSON_VALUE({JSON}, '$.a')": "1",
    f"JSON_VALUE({JSON}, 'lax $.b')": "x",
    f"JSON_VALUE({JSON}, '$.a' RETURNING INT) + 1": 2,
    f"JSON_VALUE({JSON}, '$.e' RETURNING DOUBLE NULL ON EMPTY)": 1.5,
    f"JSON_VALUE({JSON}, '$.z' DEFAULT 'none' ON EMPTY)": "none",
    f"JSON_VALUE({JSON}, '$.z' RETURNING INT DEFAULT 7 ON EMPTY DEFAULT 8 ON ERROR)": 7,
    f"JSON_VALUE({JSON}, '$.z' RETURNING INT DEFAULT -1 ON EMPTY)": -1,
    f"JSON_VALUE({JSON}, '$.z' RETURNING INT DEFAULT CAST('2' AS INT) + 1 ON EMPTY)": 3,
    f"JSON_VALUE({JSON}, '$.z' NULL ON EMPTY ERROR ON ERROR)": None,
    f"JSON_VALUE({JSON}, '$.z' DEFAULT 'none' ON ERROR)": None,
    f"JSON_VALUE({JSON}, '$.b' RETURNING INT DEFAULT 8 ON ERROR)": 8,
    "JSON_VALUE('{no', '$.b' DEFAULT 'none' ON EMPTY DEFAULT 'broken' ON ERROR)": "broken",
    f"JSON_QUERY({JSON}, '$.c.d' WITH CONDITIONAL WRAPPER)": "[1,2]",
    f"JSON_QUERY({JSON}, '$.c.d' WITH UNCONDITIONAL ARRAY WRAPPER)": "[[1,2]]",
    f"JSON_QUERY({JSON}, '$.a' WITH CONDITIONAL ARRAY WRAPPER NULL ON EMPTY)": "[1]",
    f"JSON_QUERY({JSON}, '$.z' EMPTY ARRAY ON EMPTY)": "[]",
    f"JSON_QUERY({JSON}, '$.z' WITHOUT WRAPPER EMPTY OBJECT ON EMPTY)": "{}",
    f"JSON_QUERY({JSON}, '$.c.d')": "[1,2]",
    f"JSON_QUERY({JSON}, '$.a' WITH WRAPPER)": "[1]",
    f"JSON_QUERY({JSON}, 'lax $.b' WITH WRAPPER)": '["x"]',
    f"JSON_QUERY({JSON}, '$.z' WITH WRAPPER)": None,
    """JSON_QUERY('{"a": "5"}', '$.a' WITH WRAPPER)""": '["5"]',
    f"JSON_QUERY({JSON}, '$.c.d' RETURNING ARRAY<INT>)": [1, 2],
    f"JSON_EXISTS({JSON}, '$.c.d')": True,
    f"JSON_EXISTS({JSON}, '$.c.x' FALSE ON ERROR)": False,
    "JSON_OBJECT('a' VALUE 1, KEY 'b' VALUE CAST(NULL AS INT))": '{"a":1,"b":null}',
    "JSON_OBJECT('a' VALUE 1, 'b' VALUE CAST(NULL AS INT) ABSENT ON NULL)": '{"a":1}',
    # collections
    "ARRAY[1, 2][1]": 1,
    "ARRAY[1, 2][3]": None,
    "MAP['a', 1, 'b', 2]['b']": 2,
    "ROW(1, 2)": (1, 2),
    "CARDINALITY(ARRAY[1, 2])": 2,
    "ELEMENT(ARRAY[5])": 5,
    "ARRAY_CONCAT(ARRAY[1], ARRAY[2])": [1, 2],
    "ARRAY_REVERSE(ARRAY[1, 2])": [2, 1],
    "ARRAY_SORT(ARRAY[2, 1])": [1, 2],
    "ARRAY_SORT(ARRAY[1, 2], FALSE)": [2, 1],
    "ARRAY_SLICE(ARRAY[1, 2, 3], 2)": [2, 3],
    "ARRAY_SLICE(ARRAY[1, 2, 3], 1, 2)": [1, 2],
    "ARRAY_CONTAINS(ARRAY[1, 2], 2)": True,
    "MAP_UNION(MAP['a', 1], MAP['b', 2])": {"a": 1, "b": 2},
    "MAP_KEYS(MAP['a', 1])": ["a"],
}

AGGREGATES = {
    "COUNT(DISTINCT x)": 2,
    "COUNT(DISTINCT x) FILTER (WHERE x > 1)": 1,
    "COUNT(DISTINCT x, y)": 3,
    "SUM(x)": 5,
    "AVG(x)": 1,
    "AVG(x) FILTER (WHERE x > 1)": 2,
    "MAX(DISTINCT x)": 2,
    "FIRST_VALUE(y) FILTER (WHERE x > 1)": "b",
    "LAST_VALUE(z)": "p",
    "LISTAGG(y)": "a,b,c",
    "LISTAGG(y, '-') FILTER (WHERE x < 2)": "a-c",
    "STRING_AGG(y)": "a,b,c",
    "STRING_AGG(y, ';')": "a;b;c",
    "CHAR_LENGTH(LISTAGG(DISTINCT y, ';'))": 5,
    "COUNT(*) / 3": 1,
}
ROWS = "(VALUES (1, 'a', 'p'), (2, 'b', NULL), (1, 'c', NULL), (1, NULL, NULL)) AS t(x, y, z)"


def evaluate(spark, expressions, source, table=None):
    """All in one query, or one by one when a mistake makes that impossible."""

    def run(some):
        listed = ", ".join(f"{each} AS c{n}" for n, each in enumerate(some))
        query = parse(f"SELECT {listed}{source}")[0].query
        return list(spark.sql(rewrite(query, lookup=lambda name: table).sql).collect()[0])

    try:
        return dict(zip(expressions, run(expressions), strict=True))
    except Exception:
        results = {}
        for each in expressions:
            try:
                results[each] = run([each])[0]
            except Exception as error:
                results[each] = error
        return results


@pytest.fixture(scope="module")
def values(spark):
    return evaluate(spark, list(CASES), "")


@pytest.fixture(scope="module")
def aggregates(spark):
    spark.sql(rewrite(SqlText(f"SELECT * FROM {ROWS}")).sql).createOrReplaceTempView("agg_rows")
    whole = parse("CREATE TABLE agg_rows (x INT, y STRING, z STRING)")[0]
    return evaluate(spark, list(AGGREGATES), " FROM agg_rows", whole)


def plain(value):
    return tuple(value) if type(value).__name__ == "Row" else value


@pytest.mark.parametrize("expression", CASES)
def test_a_function_answers_what_flink_answers(values, expression):
    assert plain(values[expression]) == CASES[expression]


def test_points_in_time_do_not_depend_on_the_zone_of_the_session(spark):
    cases = {
        "CAST(TO_TIMESTAMP('2024-03-31 02:30:00') AS STRING)": "2024-03-31 02:30:00",
        "CAST(TO_TIMESTAMP_LTZ('5.3.24 10:20', 'd.M.yy HH:mm', 'Asia/Tokyo') AS STRING)": (
            "2024-03-05 02:20:00"
        ),
    }
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        assert evaluate(spark, list(cases), "") == cases
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize("expression", AGGREGATES)
def test_an_aggregate_answers_what_flink_answers(aggregates, expression):
    assert aggregates[expression] == AGGREGATES[expression]


def test_every_function_of_the_table_is_tried():
    tried = " ".join([*CASES, *AGGREGATES]).upper()
    windows = ("TUMBLE", "HOP", "SESSION")
    names = {key.split("/")[0] for key in TEMPLATES} | set(SPECIAL)
    names = {name for name in names if not name.startswith(windows)}
    missing = [name for name in names if not re.search(rf"\b{name}\(", tried)]
    assert sorted(missing) == [
        "ARRAY",
        "GROUPING_ID",
        "LOCALTIME",
        "LOCALTIMESTAMP",
        "MAP",
    ]  # they have no parentheses, or need a GROUP BY
