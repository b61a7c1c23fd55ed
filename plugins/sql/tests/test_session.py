"""A session runs statements end to end, on a real Spark."""

import pytest
from streamcore_sql import Session, SqlError
from streamcore_sql.results import Listing

NUMBERS = """
CREATE TABLE numbers (id BIGINT, twice AS id * 2, word STRING) WITH (
  'connector' = 'datagen',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '5',
  'fields.word.length' = '3'
);
"""


@pytest.fixture
def session(spark, tmp_path):
    session = Session(spark, checkpoint=str(tmp_path))
    yield session
    session.stop()


def test_a_bounded_table_is_queried_at_once(session):
    session.execute(NUMBERS)
    result = session.execute("SELECT id, twice FROM numbers WHERE id > 3 ORDER BY id")
    assert [tuple(row) for row in result.collect()] == [(4, 8), (5, 10)]


def test_a_broken_function_is_in_the_way_of_queries_that_call_it_alone(spark, tmp_path):
    folder = tmp_path / "catalog" / "default_database"
    folder.mkdir(parents=True)
    (folder / "typo.function.sql").write_text("CREATE FUNKTION typo")
    (folder / "gone.function.sql").write_text(
        "CREATE FUNCTION gone AS 'nowhere.gone' LANGUAGE PYTHON;"
    )
    session = Session(spark, catalog=tmp_path / "catalog")
    session.execute(NUMBERS)
    assert session.execute("SELECT COUNT(*) FROM numbers").collect()[0][0] == 5
    with pytest.raises(SqlError, match=r"typo\.function\.sql, line 1"):
        session.execute("SELECT Typo(id) FROM numbers")
    with pytest.raises(SqlError, match="cannot be loaded from 'nowhere.gone'"):
        session.execute("SELECT gone(id) FROM numbers")


def test_only_the_columns_a_query_uses_are_read(session):
    session.execute(NUMBERS)
    plan = session.execute("SELECT twice FROM numbers").plan
    assert [read.projection for read in plan.scans] == [("id",)]
    assert session.execute("SELECT COUNT(*) FROM numbers").collect()[0][0] == 5


def test_a_bounded_insert_ends_by_itself_and_prints_on_the_terminal(session, capsys):
    session.execute(NUMBERS)
    session.execute("CREATE TABLE out (a BIGINT, b STRING) WITH ('connector' = 'print')")
    job = session.execute("INSERT INTO out SELECT id, CAST(twice AS STRING) FROM numbers")
    assert job.wait(60)
    assert job.status == "finished"
    assert capsys.readouterr().out.splitlines() == [f"+I[{n}, {2 * n}]" for n in range(1, 6)]


def test_a_stream_runs_as_a_job_until_it_is_stopped(session):
    session.execute(
        """
        CREATE TABLE ticks (id BIGINT, ts TIMESTAMP(3)) WITH ('connector' = 'datagen');
        CREATE TABLE nowhere (id BIGINT) WITH ('connector' = 'blackhole');
        """
    )
    job = session.execute("INSERT INTO nowhere SELECT id FROM ticks")
    assert not job.wait(1)
    assert job.status == "running"
    listed = session.execute("SHOW JOBS")
    assert listed.rows == [(job.id, "nowhere", "running")]
    session.execute(f"STOP JOB '{job.id}'")
    assert job.status == "stopped"
    assert job.error is None


def test_tables_can_be_listed_described_and_dropped(session):
    session.execute(NUMBERS)
    assert session.execute("SHOW TABLES").rows == [("numbers",)]
    described = session.execute("DESCRIBE numbers")
    assert isinstance(described, Listing)
    assert [row[:2] for row in described.rows] == [
        ("id", "BIGINT"),
        ("twice", ""),
        ("word", "STRING"),
    ]
    session.execute("DROP TABLE numbers")
    assert session.execute("SHOW TABLES").rows == []
    with pytest.raises(SqlError, match="no table called 'numbers'"):
        session.execute("SELECT * FROM numbers")


def test_a_table_is_a_dataframe(session):
    session.execute(NUMBERS)
    frame = session.table("numbers")
    assert frame.columns == ["id", "twice", "word"]
    assert frame.where("id = 2").count() == 1
    assert not frame.isStreaming


def test_a_column_typo_names_the_place_and_the_nearest_column(session):
    session.execute(NUMBERS)
    with pytest.raises(SqlError) as caught:
        session.execute("SELECT id,\n       wrod FROM numbers")
    assert (caught.value.line, caught.value.column) == (2, 8)
    assert caught.value.trouble == "no column called 'wrod'"
    assert caught.value.hint == "Did you mean 'word'?"


def test_every_unknown_table_is_named(session):
    session.execute(NUMBERS)
    with pytest.raises(SqlError) as caught:
        session.execute("SELECT * FROM nubmers JOIN letters ON true")
    first, second = caught.value.problems
    assert first.hint == "Did you mean 'numbers'?"
    assert "letters" in second.trouble


def test_an_unknown_function_or_window_is_named_at_its_place(session):
    session.execute(NUMBERS)
    with pytest.raises(SqlError) as caught:
        session.execute("SELECT id, NOSUCH(id) FROM numbers")
    assert (caught.value.trouble, caught.value.column) == ("no function called 'NOSUCH'", 12)
    with pytest.raises(SqlError) as caught:
        session.execute(
            "SELECT * FROM TABLE(TUMBEL(TABLE numbers, DESCRIPTOR(id), INTERVAL '1' DAY))"
        )
    assert (caught.value.trouble, caught.value.column) == (
        "no window function called 'TUMBEL'",
        21,
    )
    assert caught.value.hint == "Did you mean 'TUMBLE'?"


def test_a_join_that_would_wait_for_ever_says_what_to_add(session):
    session.execute(
        """CREATE TABLE ticks (id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
        WITH ('connector' = 'datagen')"""
    )
    with pytest.raises(SqlError) as caught:
        session.execute("SELECT a.id FROM ticks AS a FULL JOIN ticks AS b ON a.id = b.id")
    assert "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' HOUR" in caught.value.hint
