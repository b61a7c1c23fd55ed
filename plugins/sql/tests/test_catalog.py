"""Tables, views and functions: what names mean, and nothing half-created after a mistake."""

import pytest
from streamcore_sql import Session, SqlError

BASE = """
CREATE TABLE base (
  id BIGINT, name STRING, ts TIMESTAMP(3), n INT, twice AS id * 2, more AS N + 1,
  part INT METADATA FROM 'partition' VIRTUAL,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
  PRIMARY KEY (id) NOT ENFORCED
) COMMENT 'the base' WITH ('connector' = 'kafka', 'topic' = 'a', 'format' = 'json');
"""


@pytest.fixture
def session():
    session = Session()
    session.execute(BASE)
    return session


def shown(session, name):
    return str(session.execute(f"SHOW CREATE TABLE {name}"))


def refused(session, statement):
    before = session.execute("SHOW TABLES").rows, shown(session, "base")
    with pytest.raises(SqlError) as caught:
        session.execute(statement)
    assert (session.execute("SHOW TABLES").rows, shown(session, "base")) == before
    return str(caught.value)


# --- names ---------------------------------------------------------------------------------


def test_a_table_exists_once_unless_told_otherwise(session):
    again = "TABLE {} base (x INT) WITH ('connector' = 'print')"
    assert "table 'base' exists" in refused(session, "CREATE " + again.format(""))
    session.execute("CREATE " + again.format("IF NOT EXISTS"))
    assert "BIGINT" in shown(session, "base")
    session.execute("CREATE OR REPLACE " + again.format(""))
    assert "`x` INT" in shown(session, "base")


def test_a_temporary_table_stands_before_the_kept_one_until_it_is_dropped(session):
    session.execute("CREATE TEMPORARY TABLE base (x INT) WITH ('connector' = 'print')")
    assert "TEMPORARY TABLE `base`" in shown(session, "base")
    session.execute("DROP TEMPORARY TABLE base")
    assert "`id` BIGINT" in shown(session, "base")
    assert "no temporary table" in refused(session, "DROP TEMPORARY TABLE base")


def test_databases_keep_names_apart(session):
    session.execute("CREATE TABLE sales.orders (x INT) WITH ('connector' = 'print')")
    assert session.execute("SHOW TABLES").rows == [("base",)]
    session.execute("USE sales")
    assert session.execute("SHOW TABLES").rows == [("orders",)]
    assert session.execute("SHOW CURRENT DATABASE").rows == [("sales",)]
    assert session.execute("SHOW DATABASES").rows == [("default_database",), ("sales",)]
    assert "`id` BIGINT" in shown(session, "default_catalog.default_database.base")
    with pytest.raises(SqlError, match="There is"):
        session.execute("DESCRIBE base")
    with pytest.raises(SqlError, match="no catalog called 'hive'"):
        session.execute("USE CATALOG hive")


def test_drop_says_what_a_name_is(session):
    session.execute("CREATE VIEW v AS SELECT id FROM base")
    assert "'v' is a view, not a table" in refused(session, "DROP TABLE v")
    assert "Did you mean 'base'?" in refused(session, "DROP TABLE bsae")
    session.execute("DROP TABLE IF EXISTS bsae; DROP VIEW v")
    assert session.execute("SHOW TABLES").rows == [("base",)]


# --- LIKE ----------------------------------------------------------------------------------


def test_like_takes_everything_over_and_options_win(session):
    session.execute("CREATE TABLE t (extra INT) WITH ('topic' = 'b') LIKE base")
    text = shown(session, "t")
    assert text.index("`part`") < text.index("`extra` INT") < text.index("WATERMARK")
    assert "'topic' = 'b'" in text
    assert "'format' = 'json'" in text
    assert "PRIMARY KEY (`id`)" in text
    assert "the base" not in text


def test_like_leaves_out_and_overwrites_what_it_is_told(session):
    session.execute(
        """
        CREATE TABLE t (twice AS id * 3, WATERMARK FOR ts AS ts) WITH ('connector' = 'print')
        LIKE base (EXCLUDING ALL OVERWRITING GENERATED EXCLUDING CONSTRAINTS)
        """
    )
    text = shown(session, "t")
    assert "`twice` AS id * 3" in text
    assert "METADATA" not in text
    assert "PRIMARY KEY" not in text
    assert "'topic'" not in text


def test_like_tells_of_every_conflict(session):
    text = refused(
        session,
        """
        CREATE TABLE t (id INT, twice AS 1, WATERMARK FOR ts AS ts) WITH ('topic' = 'b')
        LIKE base (INCLUDING OPTIONS)
        """,
    )
    assert "column 'id' is also a column of 'base'" in text
    assert "column 'twice' is also a column of 'base'" in text
    assert "'base' already has a watermark" in text
    assert "option 'topic' is also set by 'base'" in text


# --- ALTER ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "now", "gone"),
    [
        ("SET ('topic' = 'b', 'x' = 'y')", "'topic' = 'b'", "'topic' = 'a'"),
        ("RESET ('format')", "'topic' = 'a'", "'format'"),
        ("ADD extra INT FIRST", "(\n  `extra` INT", "TEMPORARY"),
        ("ADD (a INT, b INT AFTER id)", "`id` BIGINT,\n  `b` INT", "TEMPORARY"),
        ("MODIFY name INT", "`name` INT", "`name` STRING"),
        ("MODIFY WATERMARK FOR ts AS ts", "WATERMARK FOR `ts` AS ts", "SECOND"),
        ("RENAME name TO label", "`label` STRING", "`name`"),
        ("DROP twice", "`id` BIGINT", "twice"),
        ("DROP (n, more)", "`id` BIGINT", "more"),
        ("DROP WATERMARK", "`id` BIGINT", "WATERMARK"),
        ("DROP PRIMARY KEY", "`id` BIGINT", "PRIMARY"),
    ],
)
def test_alter_changes_what_it_names(session, change, now, gone):
    session.execute(f"ALTER TABLE base {change}")
    assert now in shown(session, "base")
    assert gone not in shown(session, "base")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("ADD id INT", "already has a column 'id'"),
        ("MODIFY nmae INT", "Did you mean 'name'?"),
        ("ADD WATERMARK FOR ts AS ts", "already has a watermark"),
        ("ADD x INT AFTER y", "has no column 'y'"),
        ("DROP ts", "column 'ts' is part of the watermark"),
        ("DROP id", "column 'id' is part of the primary key"),
        ("RENAME id TO di", "column 'id' is part of the primary key"),
        ("DROP n", "column 'n' is part of the computed column 'more'"),
        ("RENAME n TO m", "Drop the computed column 'more' first."),
        ("RESET ('topics')", "Did you mean 'topic'?"),
        ("RESET ('connector')", "'connector' cannot be reset"),
        ("RENAME TO base", "table 'base' exists"),
    ],
)
def test_alter_refuses_what_makes_no_table(session, change, reason):
    assert reason in refused(session, f"ALTER TABLE base {change}")


def test_a_renamed_table_has_its_new_name_only(session):
    session.execute("ALTER TABLE base RENAME TO other")
    assert session.execute("SHOW TABLES").rows == [("other",)]
    assert "CREATE TABLE `other`" in shown(session, "other")


# --- views and functions -------------------------------------------------------------------


def test_a_view_is_checked_when_it_is_made(session):
    assert "no table called 'nowhere'" in refused(session, "CREATE VIEW v AS SELECT * FROM nowhere")
    session.execute("CREATE VIEW v AS SELECT id FROM base; CREATE VIEW w AS SELECT id FROM v")
    assert session.execute("SHOW VIEWS").rows == [("v",), ("w",)]
    text = refused(session, "CREATE OR REPLACE VIEW v AS SELECT id FROM w")
    assert "w -> v -> w" in text
    assert "SELECT id FROM base" in str(session.execute("SHOW CREATE VIEW v"))


@pytest.mark.parametrize(
    ("view", "columns"),
    [
        ("v AS SELECT * FROM base", "id name ts n twice more part"),
        ("v (a, b) AS SELECT id, UPPER(name) FROM base", "a b"),
        (
            "v AS WITH x AS (SELECT id AS k FROM base) SELECT x.*, COUNT(*) AS c FROM x GROUP BY k",
            "k c",
        ),
        ("v AS SELECT b.name FROM base AS b UNION ALL SELECT 'x'", "name"),
        ("v AS SELECT * FROM (SELECT id FROM base) AS t (x)", "x"),
    ],
)
def test_a_view_has_the_columns_it_selects(session, view, columns):
    session.execute(f"CREATE VIEW {view}")
    assert [row[0] for row in session.execute("DESCRIBE v").rows] == columns.split()
    listed = session.execute("SHOW COLUMNS FROM v")
    assert all(len(row) == len(listed.columns) for row in listed.rows)
    likely = session.execute(f"SHOW COLUMNS FROM v LIKE '{columns[0]}%'")
    assert likely.rows[0][0] == columns.split()[0]


def test_a_column_a_view_takes_as_it_is_keeps_its_type(session):
    session.execute("CREATE VIEW v AS SELECT id, UPPER(name) AS u FROM base")
    assert [row[:2] for row in session.execute("DESCRIBE v").rows] == [("id", "BIGINT"), ("u", "")]


def test_a_view_means_the_same_in_every_database(session):
    session.execute(
        """
        USE sales;
        CREATE TABLE orders (id BIGINT, ts TIMESTAMP(3)) WITH ('connector' = 'print');
        CREATE VIEW v AS WITH c AS (SELECT id FROM sales.orders) SELECT o.id
          FROM orders AS o JOIN orders AS p ON o.id = p.id JOIN c ON c.id = o.id
          JOIN TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR)) ON TRUE;
        USE default_database
        """
    )
    text = str(session.execute("SHOW CREATE VIEW sales.v"))
    assert text.count("`default_catalog`.`sales`.orders") == 3
    assert "FROM `default_catalog`.sales.orders" in text
    assert "JOIN c ON" in text
    session.execute("CREATE VIEW w AS SELECT id FROM sales.v")


def test_a_function_must_be_there_and_say_its_type(session, tmp_path, monkeypatch):
    (tmp_path / "given.py").write_text(
        "def known(x: int) -> str: return 'a'\ndef silent(x): return x\nvalue = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    session.execute("CREATE FUNCTION f AS 'given.known' LANGUAGE PYTHON")
    assert session.execute("SHOW USER FUNCTIONS").rows == [("f",)]
    create = "CREATE FUNCTION g AS '{}' LANGUAGE PYTHON"
    assert "does not say which type" in refused(session, create.format("given.silent"))
    assert "is not a function" in refused(session, create.format("given.value"))
    assert "cannot be loaded" in refused(session, create.format("gone.known"))
    session.execute("DROP FUNCTION f")
    assert session.execute("SHOW USER FUNCTIONS").rows == []


# --- on disk -------------------------------------------------------------------------------


def test_a_folder_keeps_tables_as_they_were_written(tmp_path):
    secrets = {"password": "hunter2"}
    first = Session(catalog=tmp_path, variables={"TOPIC": "orders"}, secrets=secrets)
    first.execute(
        """
        CREATE TABLE orders ( -- one row per order
          id BIGINT
        ) WITH ('connector' = 'kafka', 'topic' = '${TOPIC}',
          'properties.sasl.password' = '${secret_values.password}');
        CREATE TABLE copies (n INT) WITH ('topic' = 'copies') LIKE orders;
        ALTER TABLE copies ADD m INT;
        CREATE VIEW ids AS SELECT id FROM orders;
        CREATE TEMPORARY TABLE gone (x INT) WITH ('connector' = 'print')
        """
    )
    texts = {file.name: file.read_text() for file in tmp_path.glob("*/*")}
    assert sorted(texts) == ["copies.sql", "ids.sql", "orders.sql"]
    assert "-- one row per order" in texts["orders.sql"]
    assert all("hunter2" not in text for text in texts.values())
    assert "'${secret_values.password}'" in texts["copies.sql"]
    assert "`m` INT" in texts["copies.sql"]

    second = Session(catalog=tmp_path, variables={"TOPIC": "later"}, secrets=secrets)
    assert second.execute("SHOW TABLES").rows == [("copies",), ("ids",), ("orders",)]
    assert "'topic' = 'later'" in shown(second, "orders")
    assert "***" in shown(second, "copies")
    second.execute("DROP TABLE orders")
    assert not (tmp_path / "default_database" / "orders.sql").exists()


def test_one_broken_file_hides_no_other_table(tmp_path):
    folder = tmp_path / "default_database"
    folder.mkdir()
    (folder / "bad.sql").write_text("CREATE TABEL bad (x INT)")
    (folder / "good.sql").write_text("CREATE TABLE good (x INT) WITH ('connector' = 'print');")
    session = Session(catalog=tmp_path)
    assert session.execute("SHOW TABLES").rows == [("bad",), ("good",)]
    assert "`x` INT" in shown(session, "good")
    assert session.catalog.functions() == [], "which every query looks for"
    with pytest.raises(SqlError, match=r"default_database/bad\.sql, line 1"):
        session.execute("DESCRIBE bad")


def test_names_never_leave_the_folder(tmp_path):
    session = Session(catalog=tmp_path / "catalog")
    session.execute("CREATE TABLE `../../evil` (x INT) WITH ('connector' = 'print')")
    session.execute("CREATE TABLE `..`.`..` (x INT) WITH ('connector' = 'print')")
    inside = sorted((tmp_path / "catalog").glob("*/*.sql"))
    assert len(inside) == 2
    assert session.execute("SHOW TABLES").rows == [("../../evil",)]
