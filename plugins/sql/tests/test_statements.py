import pytest
from streamcore_sql import parse
from streamcore_sql.cursor import SqlText
from streamcore_sql.statements import (
    AlterTable,
    ComputedColumn,
    CreateFunction,
    CreateTable,
    CreateView,
    Describe,
    Distribution,
    Drop,
    DropParts,
    Explain,
    Insert,
    Like,
    LikeRule,
    MetadataColumn,
    Name,
    Option,
    PartitionValue,
    PhysicalColumn,
    Placement,
    PrimaryKey,
    PutColumns,
    RenameColumn,
    RenameTable,
    Reset,
    ResetOptions,
    Select,
    Set,
    SetOptions,
    Show,
    StatementSet,
    StopJob,
    Use,
    Watermark,
)
from streamcore_sql.typename import TypeName

INT, STRING = TypeName("INT"), TypeName("STRING")
T, U, V, F = Name(("t",)), Name(("u",)), Name(("v",)), Name(("f",))
A, B = Name(("a",)), Name(("b",))
ID = PhysicalColumn("a", INT)
ONE = SqlText("SELECT 1")
KEY = Option("k", "v")


def insert(table, text="SELECT 1", **more):
    return Insert(table, SqlText(text), **more)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE t (a INT)", CreateTable(T, (ID,))),
        ("create table if not exists t (a int)", CreateTable(T, (ID,), if_not_exists=True)),
        ("CREATE TEMPORARY TABLE t (a INT)", CreateTable(T, (ID,), temporary=True)),
        ("CREATE OR REPLACE TABLE t (a INT)", CreateTable(T, (ID,), or_replace=True)),
        ("CREATE TABLE c.`d 1`.t (a INT)", CreateTable(Name(("c", "d 1", "t")), (ID,))),
        (
            "CREATE TABLE t (a INT NOT NULL COMMENT 'it''s')",
            CreateTable(T, (PhysicalColumn("a", TypeName("INT", nullable=False), "it's"),)),
        ),
        (
            "CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED)",
            CreateTable(T, (ID,), primary_key=PrimaryKey((A,))),
        ),
        (
            "CREATE TABLE t (a INT CONSTRAINT p PRIMARY KEY NOT ENFORCED COMMENT 'c')",
            CreateTable(T, (PhysicalColumn("a", INT, "c"),), primary_key=PrimaryKey((A,), "p")),
        ),
        (
            "CREATE TABLE t (a INT, b STRING, PRIMARY KEY (a, b) NOT ENFORCED)",
            CreateTable(T, (ID, PhysicalColumn("b", STRING)), primary_key=PrimaryKey((A, B))),
        ),
        (
            "CREATE TABLE t (CONSTRAINT p PRIMARY KEY (a) NOT ENFORCED, a INT)",
            CreateTable(T, (ID,), primary_key=PrimaryKey((A,), "p")),
        ),
        (
            "CREATE TABLE t (a INT NOT NULL METADATA)",
            CreateTable(T, (MetadataColumn("a", TypeName("INT", nullable=False), "a"),)),
        ),
        (
            "CREATE TABLE t (a INT METADATA FROM 'k' VIRTUAL COMMENT 'c')",
            CreateTable(T, (MetadataColumn("a", INT, "k", virtual=True, comment="c"),)),
        ),
        (
            "CREATE TABLE t (a INT, b AS CONCAT(a, ', ', ')') COMMENT 'c', d AS PROCTIME())",
            CreateTable(
                T,
                (
                    ID,
                    ComputedColumn("b", SqlText("CONCAT(a, ', ', ')')"), "c"),
                    ComputedColumn("d", SqlText("PROCTIME()")),
                ),
            ),
        ),
        (
            "CREATE TABLE t (a INT, WATERMARK FOR a AS a - INTERVAL '5' SECOND)",
            CreateTable(T, (ID,), Watermark(A, SqlText("a - INTERVAL '5' SECOND"))),
        ),
        (
            "CREATE TABLE t (a ROW<ts TIMESTAMP(3)>, WATERMARK FOR a.ts AS a.ts)",
            CreateTable(
                T,
                (parse("CREATE TABLE t (a ROW<ts TIMESTAMP(3)>)")[0].columns[0],),
                Watermark(Name(("a", "ts")), SqlText("a.ts")),
            ),
        ),
        ("CREATE TABLE t (a INT) COMMENT 'c'", CreateTable(T, (ID,), comment="c")),
        (
            "CREATE TABLE t (a INT) DISTRIBUTED BY HASH(a) INTO 4 BUCKETS WITH ('k'='v')",
            CreateTable(T, (ID,), distribution=Distribution((A,), "HASH", 4), options=(KEY,)),
        ),
        (
            "CREATE TABLE t (a INT) DISTRIBUTED BY (a)",
            CreateTable(T, (ID,), distribution=Distribution((A,))),
        ),
        (
            "CREATE TABLE t (a INT) DISTRIBUTED INTO 2 BUCKETS",
            CreateTable(T, (ID,), distribution=Distribution(buckets=2)),
        ),
        (
            "CREATE TABLE t (a INT) PARTITIONED BY (a) WITH ('k' = 'v')",
            CreateTable(T, (ID,), partitioned_by=(A,), options=(KEY,)),
        ),
        ("CREATE TABLE t (a INT) WITH ()", CreateTable(T, (ID,))),
        ("CREATE TABLE t LIKE u", CreateTable(T, like=Like(U))),
        (
            "CREATE TABLE t (WATERMARK FOR x AS x) WITH ('k' = 'v') "
            "LIKE u (INCLUDING ALL EXCLUDING OPTIONS OVERWRITING WATERMARKS)",
            CreateTable(
                T,
                (),
                Watermark(Name(("x",)), SqlText("x")),
                options=(KEY,),
                like=Like(
                    U,
                    (
                        LikeRule("INCLUDING", "ALL"),
                        LikeRule("EXCLUDING", "OPTIONS"),
                        LikeRule("OVERWRITING", "WATERMARKS"),
                    ),
                ),
            ),
        ),
        (
            "CREATE TABLE t WITH ('k' = 'v') AS SELECT 1;",
            CreateTable(T, options=(KEY,), query=ONE),
        ),
        ("CREATE VIEW v AS SELECT 1", CreateView(V, ONE)),
        (
            "CREATE TEMPORARY VIEW IF NOT EXISTS v (a, b) COMMENT 'c' AS SELECT 1, 2",
            CreateView(V, SqlText("SELECT 1, 2"), (A, B), "c", temporary=True, if_not_exists=True),
        ),
        ("CREATE FUNCTION f AS 'm.fn' LANGUAGE PYTHON", CreateFunction(F, "m.fn")),
        (
            "CREATE TEMPORARY SYSTEM FUNCTION IF NOT EXISTS f AS 'm.fn' LANGUAGE PYTHON",
            CreateFunction(F, "m.fn", temporary=True, system=True, if_not_exists=True),
        ),
        ("DROP TABLE t", Drop("TABLE", T)),
        ("DROP TEMPORARY VIEW IF EXISTS v", Drop("VIEW", V, if_exists=True, temporary=True)),
        ("DROP TEMPORARY SYSTEM FUNCTION f", Drop("FUNCTION", F, temporary=True)),
        ("ALTER TABLE t SET ('k' = 'v')", AlterTable(T, SetOptions((KEY,)))),
        ("ALTER TABLE IF EXISTS t RESET ('k', 'l')", AlterTable(T, ResetOptions(("k", "l")), True)),
        ("ALTER TABLE t RENAME TO u", AlterTable(T, RenameTable(U))),
        ("ALTER TABLE t RENAME a TO b", AlterTable(T, RenameColumn(A, "b"))),
        ("ALTER TABLE t ADD a INT", AlterTable(T, PutColumns(False, (Placement(ID),)))),
        (
            "ALTER TABLE t ADD (a INT FIRST, b AS a + 1 AFTER a, PRIMARY KEY (a) NOT ENFORCED)",
            AlterTable(
                T,
                PutColumns(
                    False,
                    (
                        Placement(ID, first=True),
                        Placement(ComputedColumn("b", SqlText("a + 1")), after="a"),
                    ),
                    primary_key=PrimaryKey((A,)),
                ),
            ),
        ),
        (
            "ALTER TABLE t MODIFY WATERMARK FOR a AS a",
            AlterTable(T, PutColumns(True, watermark=Watermark(A, SqlText("a")))),
        ),
        ("ALTER TABLE t DROP (a, b)", AlterTable(T, DropParts((A, B)))),
        ("ALTER TABLE t DROP a", AlterTable(T, DropParts((A,)))),
        ("ALTER TABLE t DROP PRIMARY KEY", AlterTable(T, DropParts(primary_key=True))),
        ("ALTER TABLE t DROP CONSTRAINT p", AlterTable(T, DropParts(constraint="p"))),
        ("ALTER TABLE t DROP WATERMARK", AlterTable(T, DropParts(watermark=True))),
        ("SHOW TABLES", Show("TABLES")),
        ("SHOW TABLES FROM u NOT LIKE 'p%'", Show("TABLES", U, "p%", not_like=True)),
        ("SHOW VIEWS LIKE 'p'", Show("VIEWS", like="p")),
        ("SHOW COLUMNS FROM t LIKE 'p'", Show("COLUMNS", T, "p")),
        ("SHOW CREATE TABLE t", Show("CREATE TABLE", T)),
        ("SHOW CREATE VIEW v", Show("CREATE VIEW", V)),
        ("SHOW FUNCTIONS", Show("FUNCTIONS")),
        ("SHOW USER FUNCTIONS", Show("USER FUNCTIONS")),
        ("SHOW JOBS", Show("JOBS")),
        ("SHOW CATALOGS", Show("CATALOGS")),
        ("SHOW DATABASES", Show("DATABASES")),
        ("SHOW CURRENT DATABASE", Show("CURRENT DATABASE")),
        ("DESCRIBE t", Describe(T)),
        ("DESC EXTENDED t", Describe(T, extended=True)),
        ("INSERT INTO t SELECT 1", insert(T)),
        ("EXECUTE INSERT INTO t SELECT 1", insert(T)),
        ("INSERT OVERWRITE t SELECT 1", insert(T, overwrite=True)),
        ("INSERT INTO t (b, a) SELECT 1, 2", insert(T, "SELECT 1, 2", columns=(B, A))),
        ("INSERT INTO t (SELECT 1)", insert(T, "(SELECT 1)")),
        ("INSERT INTO t WITH x AS (SELECT 1) TABLE x", insert(T, "WITH x AS (SELECT 1) TABLE x")),
        (
            "INSERT INTO t PARTITION (d = '2024', h = 1) (a) SELECT 1",
            insert(
                T,
                columns=(A,),
                partition=(
                    PartitionValue("d", SqlText("'2024'")),
                    PartitionValue("h", SqlText("1")),
                ),
            ),
        ),
        ("INSERT INTO t VALUES (1, 'a;b'), (2, ')')", insert(T, "VALUES (1, 'a;b'), (2, ')')")),
        (
            "INSERT INTO t SELECT 1 FROM u JOIN v ON u.a = v.a ON CONFLICT DO NOTHING",
            insert(T, "SELECT 1 FROM u JOIN v ON u.a = v.a", on_conflict="NOTHING"),
        ),
        ("INSERT INTO t /*+ OPTIONS('k'='v') */ SELECT 1", insert(T, options=(KEY,))),
        (
            "INSERT INTO t SELECT a FROM u /*+ OPTIONS('k'='v') */",
            insert(T, "SELECT a FROM u /*+ OPTIONS('k'='v') */"),
        ),
        (
            "EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1; INSERT INTO u SELECT 1; END;",
            StatementSet((insert(T), insert(U))),
        ),
        (
            "BEGIN STATEMENT SET; INSERT INTO t SELECT 1; INSERT INTO u SELECT 1; END",
            StatementSet((insert(T), insert(U))),
        ),
        ("SET 'k' = 'v'", Set(KEY)),
        ("SET table.exec-x.ttl = 10s", Set(Option("table.exec-x.ttl", "10s"))),
        ("SET k = 'v'", Set(KEY)),
        ("SET path = s3://bucket/a, b", Set(Option("path", "s3://bucket/a, b"))),
        ("SET", Set()),
        ("RESET 'k'", Reset("k")),
        ("RESET a.b", Reset("a.b")),
        ("RESET", Reset()),
        ("USE u", Use(U)),
        ("USE CATALOG u", Use(U, catalog=True)),
        ("EXPLAIN SELECT 1", Explain(Select(ONE))),
        ("EXPLAIN PLAN FOR INSERT INTO t SELECT 1", Explain(insert(T))),
        (
            "EXPLAIN CHANGELOG_MODE, PLAN_ADVICE SELECT 1",
            Explain(Select(ONE), ("CHANGELOG_MODE", "PLAN_ADVICE")),
        ),
        (
            "EXPLAIN STATEMENT SET BEGIN INSERT INTO t SELECT 1; END",
            Explain(StatementSet((insert(T),))),
        ),
        ("SELECT 1", Select(ONE)),
        (
            "WITH x AS (SELECT 1) SELECT * FROM x",
            Select(SqlText("WITH x AS (SELECT 1) SELECT * FROM x")),
        ),
        ("(SELECT 1) UNION ALL (SELECT 2)", Select(SqlText("(SELECT 1) UNION ALL (SELECT 2)"))),
        ("VALUES (1), (2)", Select(SqlText("VALUES (1), (2)"))),
        ("STOP JOB '1f'", StopJob("1f")),
        ("STOP JOB '1f' WITH SAVEPOINT WITH DRAIN", StopJob("1f", savepoint=True, drain=True)),
    ],
)
def test_the_grammar(text, expected):
    assert parse(text) == [expected]


def test_a_script_is_read_statement_by_statement():
    text = ";; SET 'a' = 'b;c' ; -- one;\n SELECT ';' /* ; */ ;\nSELECT 2"
    found = parse(text)
    assert found == [
        Set(Option("a", "b;c")),
        Select(SqlText("SELECT ';'")),
        Select(SqlText("SELECT 2")),
    ]
    assert [s.place.line for s in found] == [1, 2, 3]
    assert [s.place.text for s in found] == ["SET 'a' = 'b;c'", "SELECT ';'", "SELECT 2"]


def test_an_empty_script_says_nothing():
    assert parse("") == []
    assert parse(" -- nothing\n ; ") == []


def test_columns_options_and_names_know_their_places():
    table = parse("CREATE TABLE t (\n  a INT,\n  b ROW<x BIGINT>\n) WITH (\n 'k' = 'v')")[0]
    assert [(c.place.line, c.place.column) for c in table.columns] == [(2, 3), (3, 3)]
    assert table.columns[1].type.fields[0].place.text == "x BIGINT"
    assert (table.options[0].place.line, table.options[0].place.column) == (5, 2)
    assert (table.name.place.line, table.name.place.column) == (1, 14)


def test_options_in_a_hint_know_their_places():
    text = "INSERT INTO t\n /*+ OPTIONS('k'='v') */ SELECT 1"
    assert (parse(text)[0].options[0].place.line, parse(text)[0].options[0].place.column) == (2, 14)


def test_what_follows_a_long_query_is_read():
    [insert, select] = parse("INSERT INTO t SELECT a FROM u ON CONFLICT DO ERROR; SELECT 1")
    assert insert.on_conflict == "ERROR"
    assert select.query.text == "SELECT 1"


def test_repr_never_shows_an_option_value():
    assert "hunter2" not in repr(parse("CREATE TABLE t WITH ('password' = 'hunter2')"))
