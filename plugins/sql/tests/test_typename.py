import pytest
from streamcore_sql.cursor import Cursor
from streamcore_sql.errors import SqlError
from streamcore_sql.source import Source
from streamcore_sql.typename import parse_type


def canonical(text):
    cursor = Cursor(Source(text))
    found = parse_type(cursor)
    assert cursor.at_end(), f"'{text}' was not read to its end"
    return found.sql()


@pytest.mark.parametrize(
    ("written", "sql"),
    [
        ("char", "CHAR(1)"),
        ("CHAR(20)", "CHAR(20)"),
        ("VARCHAR", "VARCHAR(2147483647)"),
        ("VARBINARY", "VARBINARY(2147483647)"),
        ("varchar(128)", "VARCHAR(128)"),
        ("string", "STRING"),
        ("BOOLEAN", "BOOLEAN"),
        ("BINARY(4)", "BINARY(4)"),
        ("VARBINARY(4)", "VARBINARY(4)"),
        ("BYTES", "BYTES"),
        ("DECIMAL", "DECIMAL(10, 0)"),
        ("DEC(5)", "DECIMAL(5, 0)"),
        ("NUMERIC(10,2)", "DECIMAL(10, 2)"),
        ("TINYINT", "TINYINT"),
        ("SMALLINT", "SMALLINT"),
        ("INTEGER", "INT"),
        ("INT", "INT"),
        ("BIGINT", "BIGINT"),
        ("FLOAT", "FLOAT"),
        ("DOUBLE", "DOUBLE"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("DATE", "DATE"),
        ("TIME", "TIME(0)"),
        ("TIME(3)", "TIME(3)"),
        ("TIME WITHOUT TIME ZONE", "TIME(0)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("TIMESTAMP(3)", "TIMESTAMP(3)"),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3)"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)"),
        ("TIMESTAMP_LTZ", "TIMESTAMP_LTZ(6)"),
        ("TIMESTAMP_LTZ(9)", "TIMESTAMP_LTZ(9)"),
        ("INTERVAL YEAR", "INTERVAL YEAR"),
        ("INTERVAL YEAR(4) TO MONTH", "INTERVAL YEAR TO MONTH"),
        ("INTERVAL DAY(3) TO SECOND(3)", "INTERVAL DAY TO SECOND"),
        ("INTERVAL SECOND(2, 3)", "INTERVAL SECOND"),
        ("INTERVAL HOUR TO MINUTE", "INTERVAL HOUR TO MINUTE"),
        ("VARIANT", "VARIANT"),
        ("ARRAY<INT>", "ARRAY<INT>"),
        ("INT ARRAY", "ARRAY<INT>"),
        ("INT NOT NULL ARRAY NOT NULL", "ARRAY<INT NOT NULL> NOT NULL"),
        ("STRING MULTISET", "MULTISET<STRING>"),
        ("MULTISET<STRING>", "MULTISET<STRING>"),
        ("map<string,bytes>", "MAP<STRING, BYTES>"),
        ("ROW<a INT, b ARRAY<STRING NOT NULL>>", "ROW<a INT, b ARRAY<STRING NOT NULL>>"),
        ("ROW(a INT 'first', `b c` STRING)", "ROW<a INT 'first', `b c` STRING>"),
        ("ROW<>", "ROW<>"),
        ("ROW()", "ROW<>"),
        ("MAP<INT, MAP<INT, ROW<x INT>>>", "MAP<INT, MAP<INT, ROW<x INT>>>"),
        ("INT NULL", "INT"),
        ("INT NOT NULL", "INT NOT NULL"),
    ],
)
def test_every_type_has_one_canonical_text(written, sql):
    assert canonical(written) == sql
    assert canonical(sql) == sql


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            "BIGNIT",
            "line 1, column 1: no type called 'BIGNIT'\n    BIGNIT\n    ^^^^^^\n"
            "Did you mean 'BIGINT'?",
        ),
        (
            "RAW('a', 'b')",
            "line 1, column 1: type 'RAW' has no counterpart in Spark\n    RAW('a', 'b')\n    ^^^\n"
            "Declare the column as BYTES and decode it in the query.",
        ),
        (
            "TIMESTAMP(3) WITH TIME ZONE",
            "line 1, column 14: type 'TIMESTAMP WITH TIME ZONE' has no counterpart in Spark\n"
            "    TIMESTAMP(3) WITH TIME ZONE\n"
            "                 ^^^^^^^^^^^^^^\n"
            "Write TIMESTAMP_LTZ, a point in time shown in the session's zone.",
        ),
        (
            "DECIMAL(39, 2)",
            "line 1, column 9: DECIMAL: 39 is not between 1 and 38\n"
            "    DECIMAL(39, 2)\n            ^^",
        ),
        (
            "DECIMAL(5, 6)",
            "line 1, column 12: DECIMAL: the scale 6 is more than the precision 5\n"
            "    DECIMAL(5, 6)\n               ^",
        ),
        (
            "MAP<STRING>",
            "line 1, column 11: expected ',', but found '>'\n    MAP<STRING>\n              ^",
        ),
    ],
)
def test_a_wrong_type_is_explained(written, message):
    with pytest.raises(SqlError) as caught:
        canonical(written)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "ARRAY<" * 5000 + "INT" + ">" * 5000,
        "ROW<a " * 5000 + "INT" + ">" * 5000,
        "INT" + " ARRAY" * 5000,
    ],
)
def test_types_nested_without_end_are_refused(text):
    with pytest.raises(SqlError, match="nested deeper than 50 levels"):
        canonical(text)
