"""`streamcore run`: what it says, what it starts, and how it ends."""

import json

import pytest
from streamcore.cli import main

GENERATED = """
CREATE TABLE ticks (id BIGINT, name STRING, ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
WITH ('connector' = 'datagen', 'rows-per-second' = '50', 'fields.id.min' = '1',
      'fields.id.max' = '3');
CREATE TABLE few (id BIGINT) WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence',
      'fields.id.start' = '1', 'fields.id.end' = '3');
CREATE TABLE sink (id BIGINT, n BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE shown (id BIGINT) WITH ('connector' = 'print', 'print-identifier' = 'p');
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capfd, spark):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path / "state"))

    def start(statements, *options, name="job.sql"):
        script = tmp_path / name
        script.write_text(GENERATED + statements)
        status = main(["run", str(script), *options])
        printed = capfd.readouterr()
        return status, printed.out, printed.err

    return start


def test_a_bounded_script_runs_to_its_end(run):
    status, out, err = run("INSERT INTO shown SELECT id FROM few; SELECT COUNT(*) AS n FROM few;")
    assert status == 0
    assert "p> +I[3]" in out
    assert "n\n-\n3\n(1 row)" in out
    assert "table 'ticks' created" in err


def test_once_reads_what_is_there_and_a_second_run_goes_on(run, tmp_path):
    insert = "INSERT INTO sink SELECT id, CHAR_LENGTH(name) FROM ticks;"
    status, _, err = run(insert, "--once")
    assert status == 0, err
    assert "job.sink: finished" in err
    folder = tmp_path / "state" / "jobs" / "job" / "sink"
    assert (folder / "commits" / "0").exists()
    status, _, err = run(insert, "--once")
    assert status == 0, err
    assert f"job 'job.sink' goes on from '{folder}'" in err
    assert (folder / "commits" / "1").exists()


def test_a_changed_aggregate_is_refused_before_anything_starts(run, tmp_path):
    query = "INSERT INTO sink SELECT id, {} FROM ticks GROUP BY id;"
    assert run(query.format("COUNT(*)"), "--once")[0] == 0
    folder = tmp_path / "state" / "jobs" / "job" / "sink"
    before = sorted(folder.rglob("*"))
    status, _, err = run(query.format("SUM(id)"), "--once")
    assert status == 2
    assert "cannot go on from its checkpoint" in err
    assert "COUNT(*) by id" in err
    assert sorted(folder.rglob("*")) == before
    status, _, err = run(query.format("SUM(id)"), "--once", "--fresh")
    assert status == 0, err
    assert list(folder.parent.glob("sink.old-*"))


def test_a_dry_run_shows_the_plan_and_leaves_nothing_behind(run, tmp_path):
    catalog = tmp_path / "catalog"
    statements = """
    CREATE TABLE secret (id BIGINT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json',
      'properties.bootstrap.servers' = 'h:1', 'properties.security.protocol' = 'SASL_SSL',
      'properties.sasl.mechanism' = 'PLAIN', 'properties.sasl.username' = 'me',
      'properties.sasl.password' = 'hunter2');
    INSERT INTO secret SELECT id FROM ticks WHERE id > 1;
    """
    status, out, err = run(statements, "--dry-run", "--catalog", str(catalog))
    assert status == 0, err
    assert "reads ticks (datagen, stream): id (of 3 columns)" in err
    assert "'properties.sasl.password' = '***'" in err
    assert "hunter2" not in out + err
    assert not catalog.exists()
    assert not (tmp_path / "state" / "jobs").exists()


def test_json_lines_tell_of_every_event(run):
    status, out, _ = run("INSERT INTO sink SELECT id, id FROM few; SHOW TABLES;", "--json")
    assert status == 0
    events = [json.loads(text) for text in out.splitlines()]
    assert {event["event"] for event in events} == {"done", "message", "progress", "row"}
    last = [event for event in events if event["event"] == "progress"][-1]
    assert (last["job"], last["status"]) == ("job.sink", "finished")


def test_a_job_that_fails_ends_with_1_and_its_cause(run):
    status, _, err = run("INSERT INTO sink SELECT id, 1 / (id - 2) FROM few;")
    assert status == 1
    assert "job 'job.sink' failed: Division by zero" in err
    assert "\tat " not in err
    assert "Traceback" not in err


def test_bad_input_ends_with_2_and_starts_nothing(run, tmp_path):
    status, out, err = run("INSERT INTO shown SELECT id FROM few; INSERT INTO sink SELECT 1;")
    assert status == 2
    assert "the query gives 1 column" in err
    assert "p>" not in out
    assert run("SELEC 1;")[0] == 2
    assert main(["run", str(tmp_path / "missing.sql")]) == 2
    assert run("", "--set", "nonsense")[0] == 2


def test_settings_and_variables_come_from_the_command_line(run):
    status, out, err = run(
        "SET 'pipeline.name' = '${NAME}'; SET;",
        "--var",
        "NAME=other",
        "--set",
        "table.dml-sync=true",
    )
    assert status == 0, err
    assert "pipeline.name  | other" in out
    assert "table.dml-sync | true" in out
