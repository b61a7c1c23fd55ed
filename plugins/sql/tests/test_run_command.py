"""`streamcore run`: what it says, what it starts, and how it ends."""

import json
import re

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
    assert "reads ticks (datagen, stream): id (of 3 columns)" in out
    assert "'properties.sasl.password' = '***'" in out
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


WRONG = """
CREATE TABLE slow (x BIGINT) WITH ('connector' = 'datagen', 'rows-per-secnd' = '1');
CREATE TABLE unused (x BIGINT) WITH ('connector' = 'kafak');
CREATE VIEW halves AS SELECT x / 2 AS x FROM nowhere;
CREATE VIEW quarters AS SELECT x / 2 AS x FROM halves;
CREATE TABLE kept WITH ('connector' = 'blackhol') AS SELECT id FROM few;
INSERT INTO sink SELECT x, x FROM quarters;
INSERT INTO sink SELECT x, x FROM slow;
INSERT INTO shown SELECT x FROM slow;
INSERT INTO shown SELECT id FROM kept;
INSERT INTO snk SELECT id, 1 FROM tick;
SET 'execution.runtime-mode' = 'batch';
INSERT INTO sink SELECT id, id FROM ticks;
"""


def test_all_that_is_wrong_is_told_at_once_before_spark_is_there(run, tmp_path, monkeypatch):
    monkeypatch.setattr("streamcore_sql.commands.options.Given.start_spark", None)
    catalog = tmp_path / "catalog"
    status, out, err = run(WRONG, "--catalog", str(catalog))
    assert status == 2
    told = re.findall(r"job\.sql, line (\d+), column (\d+): (.*)", err)
    first = GENERATED.count("\n") + 1
    assert [(int(line) - first, int(column)) for line, column, _ in told] == [
        (1, 61),
        (3, 46),
        (5, 25),
        (10, 13),
        (10, 35),
        (12, 18),
    ]
    assert "did you mean 'rows-per-second'?" in err
    assert "no table called 'nowhere'" in err
    assert "Did you mean 'blackhole'?" in err
    assert "Did you mean 'sink'?" in err
    assert "Did you mean 'ticks'?" in err
    assert "never ends" in told[-1][2]
    assert out == ""
    assert not catalog.exists()


def test_what_only_spark_finds_is_told_at_once_and_leaves_nothing(run, tmp_path):
    catalog = tmp_path / "catalog"
    wrong = """
    CREATE TABLE doubled WITH ('connector' = 'print') AS SELECT id * 2 AS twice FROM few;
    INSERT INTO sink SELECT idd, 1 FROM ticks;
    INSERT INTO sink SELECT id, nmae FROM ticks;
    """
    status, out, err = run(wrong, "--catalog", str(catalog))
    assert status == 2
    assert "Did you mean 'id'?" in err
    assert "Did you mean 'name'?" in err
    assert "created" not in err
    assert out == ""
    assert not catalog.exists()
    assert not (tmp_path / "state" / "jobs").exists()


def test_a_table_made_from_a_query_is_filled_with_the_rest_and_not_by_a_dry_run(run, tmp_path):
    catalog = tmp_path / "catalog"
    made = """
    CREATE TABLE doubled WITH ('connector' = 'print') AS SELECT id * 2 AS twice FROM few;
    INSERT INTO doubled SELECT id + 10 FROM few;
    CREATE TABLE unused (x BIGINT) WITH ('connector' = 'kafak');
    """
    status, out, err = run(made, "--catalog", str(catalog), "--dry-run")
    assert status == 0, err
    assert "+I" not in out
    assert "(nothing here uses the table)" in err
    assert not catalog.exists()
    status, out, err = run(made, "--catalog", str(catalog))
    assert status == 0, err
    assert sorted(out.split()) == ["+I[11]", "+I[12]", "+I[13]", "+I[2]", "+I[4]", "+I[6]"]
    assert list(catalog.rglob("doubled.sql"))


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
