"""Statement sets, live queries, tables made from queries, and functions, on a real Spark."""

import pytest
from streamcore_sql import Session, SqlError
from streamcore_sql.launching import PlannedSet, PlannedShared

TABLES = """
CREATE TABLE ticks (id BIGINT, name STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'datagen', 'rows-per-second' = '100', 'fields.id.min' = '1',
      'fields.id.max' = '3', 'fields.name.length' = '4');
CREATE TABLE few (id BIGINT, name STRING) WITH ('connector' = 'datagen',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '4');
CREATE TABLE ids (id BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE names (name STRING) WITH ('connector' = 'blackhole');
CREATE TABLE counts (id BIGINT, n BIGINT) WITH ('connector' = 'blackhole');
"""


@pytest.fixture
def session(spark, tmp_path):
    session = Session(spark, checkpoint=str(tmp_path), once=True)
    session.execute(TABLES)
    yield session
    session.stop()


def prepared(session, text):
    (statement,) = session.parse(text)
    return session.prepare(statement)


def test_inserts_that_only_filter_one_source_share_a_read_of_it(session, tmp_path):
    text = """BEGIN STATEMENT SET;
      INSERT INTO ids SELECT id FROM ticks WHERE id > 1;
      INSERT INTO names SELECT UPPER(name) FROM ticks;
    END;"""
    planned = prepared(session, text)
    assert isinstance(planned, PlannedShared)
    assert planned.shared.scan.projection == ("id", "name")
    job = session.start(planned)
    assert job.wait(120)
    assert (tmp_path / "statement-set" / "commits" / "0").exists()


def test_an_aggregate_in_a_set_keeps_a_query_of_its_own(session, tmp_path):
    text = """EXECUTE STATEMENT SET BEGIN
      INSERT INTO counts SELECT id, COUNT(*) FROM ticks GROUP BY id;
      INSERT INTO ids SELECT id FROM ticks;
    END;"""
    assert isinstance(prepared(session, text), PlannedSet)
    session._targets.clear()
    assert session.execute(text).wait(120)
    assert (tmp_path / "counts" / "commits" / "0").exists()
    assert (tmp_path / "ids" / "commits" / "0").exists()


def test_every_insert_of_a_set_is_checked_before_any_starts(session):
    with pytest.raises(SqlError) as caught:
        session.execute(
            """BEGIN STATEMENT SET;
            INSERT INTO ids SELECT name FROM ticks;
            INSERT INTO names SELECT nmae FROM ticks;
            END;"""
        )
    assert len(caught.value.problems) == 2
    assert session.jobs == []


def test_a_select_on_a_stream_gives_changes_as_they_come(session):
    changes = list(session.execute("SELECT id, COUNT(*) AS n FROM ticks GROUP BY id"))
    assert {change.kind for change in changes} == {"+U"}
    assert sum(change.row[1] for change in changes) == 100
    distinct = list(session.execute("SELECT DISTINCT id FROM ticks"))
    assert sorted(change.row for change in distinct) == [(1,), (2,), (3,)]
    assert {change.kind for change in distinct} == {"+I"}


def test_a_session_without_a_name_runs_and_leaves_nothing_behind(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    session = Session(spark, once=True)
    session.execute(TABLES)
    assert session.execute("INSERT INTO ids SELECT id FROM ticks").wait(60)
    assert list(tmp_path.iterdir()) == []


def test_a_live_select_can_be_left(session):
    session.settings.once = False
    rows = session.execute("SELECT id FROM ticks")
    assert len(rows.take(5)) == 5
    assert rows.status == "stopped"


def test_a_table_made_from_a_query_has_its_columns_and_rows(session, capsys):
    job = session.execute(
        "CREATE TABLE made WITH ('connector' = 'print') AS SELECT id, id * 0.5 AS half FROM few"
    )
    assert job.wait(60)
    assert "+I[4, 2.0]" in capsys.readouterr().out
    described = session.execute("DESCRIBE made").rows
    assert [row[:2] for row in described] == [("id", "BIGINT"), ("half", "DECIMAL(22, 1)")]


def test_a_table_whose_query_is_wrong_is_not_made(session):
    for query in ("SELECT nope FROM few", "SELECT id, id FROM few"):
        with pytest.raises(SqlError):
            session.execute(f"CREATE TABLE made WITH ('connector' = 'print') AS {query}")
    with pytest.raises(SqlError, match="only reads"):
        session.execute("CREATE TABLE made WITH ('connector' = 'datagen') AS SELECT id FROM few")
    with pytest.raises(SqlError, match="no table called 'made'"):
        session.execute("DESCRIBE made")


def test_a_python_function_runs_in_queries(session, tmp_path, monkeypatch):
    (tmp_path / "greetings.py").write_text(
        "def greet(n: int) -> str | None:\n    return None if n is None else f'hello {n}'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    session.execute("CREATE FUNCTION greet AS 'greetings.greet' LANGUAGE PYTHON")
    rows = session.execute("SELECT greet(id) FROM few ORDER BY id LIMIT 2").collect()
    assert [row[0] for row in rows] == ["hello 1", "hello 2"]


def test_explain_says_what_is_read_and_how(session):
    text = str(session.execute("EXPLAIN INSERT INTO ids SELECT id FROM ticks WHERE id > 1"))
    assert "mode append" in text
    assert "reads ticks (datagen, stream): id (of 3 columns)" in text
    assert "writes ids (blackhole): id BIGINT" in text
    assert "== Physical Plan ==" in text
    assert session.jobs == []
    update = str(session.execute("EXPLAIN SELECT id, COUNT(*) FROM ticks GROUP BY id"))
    assert "mode update" in update


def test_an_endless_table_is_refused_in_batch_mode(session):
    session.execute("SET 'execution.runtime-mode' = 'batch'")
    with pytest.raises(SqlError, match="table 'ticks' never ends"):
        session.execute("INSERT INTO ids SELECT id FROM ticks")
    assert session.execute("INSERT INTO ids SELECT id FROM few").wait(60)


def test_values_and_partial_columns_are_inserted(session, capsys):
    session.execute(
        "CREATE TABLE shown (a BIGINT, b STRING, c INT) PARTITIONED BY (b) "
        "WITH ('connector' = 'print')"
    )
    assert session.execute("INSERT INTO shown (b, a) VALUES ('x', 1), ('y', 2)").wait(60)
    assert capsys.readouterr().out.splitlines() == ["+I[1, x, null]", "+I[2, y, null]"]
    insert = "INSERT INTO shown PARTITION (b = 'day') SELECT id, 7 FROM few WHERE id = 3"
    assert session.execute(insert).wait(60)
    assert capsys.readouterr().out.splitlines() == ["+I[3, day, 7]"]
