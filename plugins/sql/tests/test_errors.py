import pickle

import pytest
from streamcore.errors import StreamcoreError
from streamcore_sql import SqlError, parse
from streamcore_sql.source import Place, Source


def complaint(text):
    with pytest.raises(SqlError) as caught:
        parse(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "CRAETE TABLE t (a INT)",
            "line 1, column 1: 'CRAETE' does not start a statement\n"
            "    CRAETE TABLE t (a INT)\n"
            "    ^^^^^^\n"
            "Did you mean 'CREATE'?",
        ),
        (
            "SELECT 1;\n\n  CREATE TABEL t (a INT)",
            "line 3, column 10: expected 'TABLE', 'VIEW' or 'FUNCTION', but found 'TABEL'\n"
            "      CREATE TABEL t (a INT)\n"
            "             ^^^^^\n"
            "Did you mean 'TABLE'?",
        ),
        (
            "CREATE TABLE t (a INT",
            "line 1, column 22: expected ',' or ')', but the statement ends\n"
            "    CREATE TABLE t (a INT\n"
            "                         ^",
        ),
        (
            "CREATE TABLE t (a INT) WTIH ('a' = 'b')",
            "line 1, column 24: expected 'WITH (...)', another clause or ';', but found 'WTIH'\n"
            "    CREATE TABLE t (a INT) WTIH ('a' = 'b')\n"
            "                           ^^^^\n"
            "Did you mean 'WITH'?",
        ),
        (
            "CREATE TABLE t (a INT) WITH (\n  'connector' = 'kafka',\n  ...\n)",
            "line 3, column 3: expected an option key in single quotes, but found '.'\n"
            "      ...\n"
            "      ^",
        ),
        (
            "CREATE TABLE t (a INT, PRIMARY KEY (a))",
            "line 1, column 39: expected 'NOT ENFORCED', but found ')'\n"
            "    CREATE TABLE t (a INT, PRIMARY KEY (a))\n"
            "                                          ^\n"
            "A stream cannot enforce a key: write PRIMARY KEY (...) NOT ENFORCED.",
        ),
        (
            "INSERT INTO t",
            "line 1, column 14: expected a query, but the statement ends\n"
            "    INSERT INTO t\n"
            "                 ^",
        ),
        (
            "INSERT INTO t SELECT (1",
            "line 1, column 22: '(' is never closed\n"
            "    INSERT INTO t SELECT (1\n"
            "                         ^\n"
            "Close it with ')'.",
        ),
        (
            "CREATE FUNCTION f AS 'com.acme.F'",
            "line 1, column 34: expected 'LANGUAGE PYTHON', but the statement ends\n"
            "    CREATE FUNCTION f AS 'com.acme.F'\n"
            "                                     ^\n"
            "Write it in Python: CREATE FUNCTION f AS 'module.function' LANGUAGE PYTHON.",
        ),
        (
            "ADD JAR 'x.jar'",
            "line 1, column 1: ADD is not supported\n"
            "    ADD JAR 'x.jar'\n"
            "    ^^^\n"
            "streamcore needs no jars: install a plugin with pip.",
        ),
        (
            "SELECT 1 SELECT 2)",
            "line 1, column 18: expected ';', but found ')'\n"
            "    SELECT 1 SELECT 2)\n"
            "                     ^",
        ),
        (
            "EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1;",
            "line 1, column 52: expected 'END', but the statement ends\n"
            "    EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1;\n"
            "                                                       ^\n"
            "A statement set closes with END;",
        ),
        (
            "CREATE TABLE t (a INT) WITH ('k' = '1', 'k' = '2')",
            "line 1, column 41: option 'k' is given twice\n"
            "    CREATE TABLE t (a INT) WITH ('k' = '1', 'k' = '2')\n"
            "                                            ^^^^^^^^^\n"
            "Keep one of them.",
        ),
    ],
)
def test_a_mistake_is_shown_where_it_is(text, message):
    assert complaint(text) == message


def test_all_problems_of_a_table_are_told_at_once():
    text = (
        "CREATE TABLE t (\n  user_id INT, user_id INT, `A` INT, `a` INT, p AS PROCTIME(),\n"
        "  WATERMARK FOR tss AS ts,\n  PRIMARY KEY (user_di, p) NOT ENFORCED\n)"
    )
    assert complaint(text) == (
        "line 2, column 16: column 'user_id' is declared twice\n"
        "      user_id INT, user_id INT, `A` INT, `a` INT, p AS PROCTIME(),\n"
        "                   ^^^^^^^^^^^\n"
        "\n"
        "line 2, column 38: columns 'A' and 'a' differ only in case\n"
        "      user_id INT, user_id INT, `A` INT, `a` INT, p AS PROCTIME(),\n"
        "                                         ^^^^^^^\n"
        "Rename one: Spark cannot tell them apart.\n"
        "\n"
        "line 3, column 17: WATERMARK: no column called 'tss'\n"
        "      WATERMARK FOR tss AS ts,\n"
        "                    ^^^\n"
        "\n"
        "line 4, column 16: PRIMARY KEY: no column called 'user_di'\n"
        "      PRIMARY KEY (user_di, p) NOT ENFORCED\n"
        "                   ^^^^^^^\n"
        "Did you mean 'user_id'?\n"
        "\n"
        "line 4, column 25: PRIMARY KEY: 'p' is not a physical column\n"
        "      PRIMARY KEY (user_di, p) NOT ENFORCED\n"
        "                            ^\n"
        "A key is made of columns of the data: neither metadata nor computed."
    )


def test_mistakes_in_several_statements_are_told_at_once():
    with pytest.raises(SqlError) as caught:
        parse("FOO;\nSELECT 1;\nCREATE TABLE (a INT);\nSELECT 'abc")
    assert [(p.line, p.column) for p in caught.value.problems] == [(1, 1), (3, 14), (4, 8)]
    assert (caught.value.line, caught.value.column) == (1, 1)


def test_mistakes_in_a_statement_set_do_not_hide_each_other():
    with pytest.raises(SqlError) as caught:
        parse("BEGIN STATEMENT SET;\nINSERT t SELECT 1;\nINSERT INTO u;\nEND;\nSELECT 1")
    assert [p.line for p in caught.value.problems] == [2, 3]


def test_the_name_of_the_script_is_told():
    with pytest.raises(SqlError, match=r"^job\.sql, line 1, column 1: "):
        parse(Source("FOO", "job.sql"))


def test_a_password_is_never_shown():
    for text in (
        "CREATE TABLE t WITH ('properties.ssl.key.password' = 'hunter2' 'x' = 'y')",
        "CREATE TABLE t WITH ('x' 'y', 'sasl.jaas.config' = 'hunter2')",
        "CREATE TABLE t WITH ('my.secret' 'hunter2')",
        "CREATE TABLE t WITH ('password' = 'hunter2', 'password' = 'hunter2')",
        "CREATE TABLE t WITH ('password' = 'hunter2",
    ):
        assert "hunter2" not in complaint(text)
    assert complaint("CREATE TABLE t WITH ('password' = 'hunter2' 'x' = 'y')").endswith(
        "    CREATE TABLE t WITH ('password' = '***' 'x' = 'y')\n"
        "                                            ^^^"
    )


@pytest.mark.parametrize(
    "options",
    [
        "'properties.ssl.keystore.key' = 'hunter2' 'x'",
        "'avro-confluent.http-headers' = 'hunter2' 'x'",
        "'auth-params' = 'hunter2' 'x'",
        "'x' 'password' = 'hunter2'",
        "'x = 'y', 'password' = 'hunter2'",
        "'x' 'y' -- 'password' = 'hunter2'",
        "'password' -- mine\n = 'hunter2' 'x'",
        "'password' = U&'hunter2' 'x'",
        "'password' = hunter2",
        "password = 'hunter2'",
        '"password" = "hunter2"',
        "'url' = 'http://me:hunter2@host' 'x'",
        "'url' = 'http://me:it''s-hunter2@host' 'x'",
    ],
)
def test_no_spelling_of_an_option_shows_its_secret(options):
    assert "hunter2" not in complaint(f"CREATE TABLE t (a INT) WITH ({options})")


KEY = "'-----BEGIN PRIVATE KEY-----\nhunter2\nhunter3\n-----END PRIVATE KEY-----'"


@pytest.mark.parametrize("value", [f"{KEY} 'x'", f"{KEY}, 'a' = 'b'", KEY[:-1], f"{KEY} x"])
def test_a_key_of_many_lines_is_masked_in_each_of_them(value):
    text = f"CREATE TABLE t (a INT) WITH ('a' = 'b',\n'properties.ssl.keystore.key' = {value})"
    assert "hunter" not in complaint(text)
    for at in range(len(text)):
        shown = Place(Source(text), at, at + 1).excerpt()
        assert not [word for word in ("BEGIN", "hunter", "END") if word in shown]


def test_the_caret_stands_under_what_is_wrong_behind_a_masked_login():
    assert complaint("CREATE TABLE t WITH ('url' = 'http://me:hunter2@host' 'x' = 'y')").endswith(
        "    CREATE TABLE t WITH ('url' = 'http://***@host' 'x' = 'y')\n" + " " * 51 + "^^^"
    )


def test_carets_stand_right_behind_wide_characters_and_tabs():
    assert complaint("SELECT '顧客';\tFOO").splitlines()[1:] == [
        "    SELECT '顧客'; FOO",
        "                   ^^^",
    ]


def test_a_very_long_line_is_clipped_around_the_place():
    shown = complaint("SELECT " + "1, " * 50_000 + "2) FOO" + " , 3" * 1000).splitlines()
    assert max(map(len, shown)) < 120
    assert shown[1][shown[2].index("^")] == ")"


def test_an_error_survives_pickling():
    with pytest.raises(SqlError) as caught:
        parse("FOO; BAR")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert isinstance(copy, StreamcoreError)
    assert len(copy.problems) == 2


def test_every_mistake_of_a_table_is_told_at_once():
    with pytest.raises(SqlError) as caught:
        parse(
            "CREATE TABLE t (id BIGNT NOT NULL, name VARCAR(10) COMMENT 'x', id INT,\n"
            "  PRIMARY KEY (nope)) WITH ('topic' = 'a', 'topic' = 'b');\n"
            "ALTER TABLE t ADD (a STRNG, b INTT);\n"
            "SELEC 1"
        )
    assert [problem.trouble for problem in caught.value.problems] == [
        "no type called 'BIGNT'",
        "no type called 'VARCAR'",
        "expected 'NOT ENFORCED', but found ')'",
        "option 'topic' is given twice",
        "no type called 'STRNG'",
        "no type called 'INTT'",
        "'SELEC' does not start a statement",
    ]


def test_a_type_inside_a_type_ends_the_reading_of_its_table():
    with pytest.raises(SqlError) as caught:
        parse("CREATE TABLE t (id BIGNT, tags ARRAY<STRNG>, m MAP<A, B>) WITH ('a' = 'b'); DROP x")
    assert [problem.trouble for problem in caught.value.problems][:2] == [
        "no type called 'BIGNT'",
        "no type called 'STRNG'",
    ]
    assert len(caught.value.problems) == 3
