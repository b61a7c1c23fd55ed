"""SET and RESET: every key does something, or says that it does nothing."""

from pathlib import Path

import pytest
from streamcore_sql import Session, SqlError
from streamcore_sql.settings import KEYS, Settings

GUIDE = Path(__file__).parents[3] / "docs" / "sql-jobs.md"


def test_every_key_is_documented():
    text = GUIDE.read_text()
    assert [key for key in KEYS if f"`{key}`" not in text] == []


def test_a_wrong_value_says_what_is_right():
    session = Session()
    for statement, reason in {
        "SET 'table.dml-sync' = 'yes'": "'yes' is not one of true, false",
        "SET 'parallelism.default' = '0'": "is not a whole number above 0",
        "SET 'execution.checkpointing.interval' = 'often'": "is not a duration such as '10 s'",
    }.items():
        with pytest.raises(SqlError, match=reason):
            session.execute(statement)
    assert session.execute("SET").rows == []


def test_keys_without_effect_are_named():
    session = Session()
    done = session.execute("SET 'table.exec.mini-batch.enabled' = 'true'")
    assert "every query runs in micro-batches already" in done.notes[0]
    done = session.execute("SET 'pipeline.nam' = 'x'")
    assert "Did you mean 'pipeline.name'?" in done.notes[0]
    assert session.execute("SET 'spark.sql.ansi.enabled' = 'true'").notes == ()


@pytest.mark.parametrize("name", ["..", "../../x", "."])
def test_no_name_of_a_job_leads_out_of_the_folder_of_jobs(tmp_path, monkeypatch, name):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path))
    folder = Path(Session(name=name).settings.launch(name).checkpoint).resolve()
    assert folder.parent.parent == tmp_path / "jobs"


def test_settings_shape_how_jobs_start(tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path))
    session = Session(name="job")
    assert session.settings.launch("t").checkpoint == str(tmp_path / "jobs" / "job" / "t")
    session.execute(
        """
        SET 'pipeline.name' = 'other';
        SET 'state.checkpoints.dir' = '/kept';
        SET 'execution.checkpointing.interval' = '10 s';
        SET 'parallelism.default' = '7';
        """
    )
    launch = session.settings.launch("a/b")
    assert (launch.name, launch.checkpoint) == ("other.a/b", "/kept/a%2Fb")
    assert launch.interval == "10000 milliseconds"
    assert session.settings.spark == {"spark.sql.shuffle.partitions": "7"}
    session.execute("RESET 'state.checkpoints.dir'; RESET")
    assert session.settings.launch("t").name == "job.t"


def test_a_session_without_a_name_keeps_no_checkpoint():
    assert Settings().launch("t").checkpoint is None


def test_secrets_are_not_listed():
    session = Session()
    done = session.execute("SET 'spark.hadoop.fs.s3a.secret.key' = 'hunter2'")
    assert "hunter2" not in str(done)
    assert "hunter2" not in str(session.execute("SET"))


def test_a_running_spark_gets_its_settings_at_once(spark):
    session = Session(spark)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    session.execute("SET 'parallelism.default' = '3'; SET 'spark.sql.shuffle.partitions' = '5'")
    assert spark.conf.get("spark.sql.shuffle.partitions") == "5"
    session.execute("RESET")
    assert spark.conf.get("spark.sql.shuffle.partitions") == before
    with pytest.raises(SqlError, match="is fixed once Spark runs"):
        session.execute("SET 'spark.executor.memory' = '1g'")
