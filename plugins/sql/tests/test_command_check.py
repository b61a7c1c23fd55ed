"""`streamcore check` judges every statement and changes nothing."""

import json
import time

import pytest
from streamcore.cli import main

SCRIPT = """
CREATE TABLE ticks (id BIGINT, name VARCHAR(3), ts TIMESTAMP(3), p AS PROCTIME(),
  WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');
CREATE TABLE sink (id BIGINT, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO sink SELECT id, CHAR_LENGTH(name) FROM ticks;
SELECT id FROM ticks ORDER BY id;
INSERT INTO sink SELECT idd, 1 FROM ticks;
SET 'table.exec.state.ttl' = '1 d';
CREATE TABLE bad (x INT) WITH ('connector' = 'datagen', 'rows-per-secnd' = '1');
SELECT p FROM ticks;
SELECT a.id FROM ticks AS a JOIN ticks AS b ON a.id = b.id;
SELECT a.id FROM ticks AS a JOIN ticks FOR SYSTEM_TIME AS OF a.ts AS b ON UPPER(a.name) = b.name;
"""


@pytest.fixture
def checked(tmp_path, monkeypatch, capfd, spark):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path / "state"))

    def check(text, *options):
        script = tmp_path / "job.sql"
        script.write_text(text)
        status = main(["check", str(script), *options])
        return status, capfd.readouterr().out

    return check


def test_each_statement_gets_its_verdict(checked):
    status, out = checked(SCRIPT, "--json")
    findings = [json.loads(line) for line in out.splitlines()]
    assert status == 1
    assert [(found["line"], found["verdict"]) for found in findings] == [
        (2, "differs"),
        (4, "same"),
        (5, "same"),
        (6, "unsupported"),
        (7, "wrong"),
        (8, "differs"),
        (9, "wrong"),
        (10, "same"),
        (11, "differs"),
        (12, "unsupported"),
    ]
    details = ["\n".join(found["details"]) for found in findings]
    assert "the length of VARCHAR(3) is not enforced" in details[0]
    assert "PROCTIME() is the time the micro-batch started" in details[0]
    assert "Did you mean 'id'?" in details[4]
    assert "did you mean 'rows-per-second'?" in details[6]
    assert "keeps the rows of both sides for good" in details[8]
    assert "a temporal join takes equal columns only" in details[9]


def test_what_is_wrong_with_a_table_is_told_in_full_once(checked):
    status, out = checked(
        "CREATE TABLE t (x INT) WITH ('connector' = 'datagen', 'rows-per-secnd' = '1');\n"
        "SELECT x FROM t;\nSELECT a.x FROM t AS a JOIN t AS b ON a.x = b.x;"
    )
    assert status == 1
    assert out.count("did you mean 'rows-per-second'?") == 1
    assert out.count("what was told of line 1 is in its way") == 2


def test_people_read_lines_with_places(checked):
    status, out = checked("CREATE TABLE t (x INT) WITH ('connector' = 'print'); SELEC 1;")
    assert status == 1
    assert "wrong       job.sql:1" in out
    assert "Did you mean 'SELECT'?" in out
    status, out = checked("CREATE TABLE t (x INT) WITH ('connector' = 'print');")
    assert status == 0
    assert "1 same" in out


def test_systems_are_asked_whether_tables_are_there_for_us(checked, kafka, kafka_topic):
    servers, views, counts = kafka.bootstrap_servers, kafka_topic(), kafka_topic()
    at = f"'properties.bootstrap.servers' = '{servers}', 'scan.startup.mode' = 'earliest-offset'"
    status, out = checked(
        f"""
        CREATE TABLE views (id BIGINT) WITH (
          'connector' = 'kafka', 'topic' = '{views}', 'format' = 'json', {at});
        CREATE TABLE counts (id BIGINT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (
          'connector' = 'upsert-kafka', 'topic' = '{counts}', 'key.format' = 'json',
          'value.format' = 'json', 'properties.bootstrap.servers' = '{servers}');
        CREATE TABLE gone (id BIGINT) WITH (
          'connector' = 'kafka', 'topic' = '{views}-gone', 'format' = 'avro-confluent',
          'avro-confluent.url' = 'http://127.0.0.1:1', {at});
        INSERT INTO counts SELECT id, COUNT(*) FROM views GROUP BY id;
        """,
        "--online",
        "--json",
    )
    findings = [json.loads(line) for line in out.splitlines()]
    assert status == 1
    assert [found["verdict"] for found in findings] == ["same", "same", "wrong", "same"]
    assert [found["online"] for found in findings] == [
        ["'views' is there to be read"],
        ["'counts' is there to be written"],
        [],
        [],
    ]
    (told,) = findings[2]["details"]
    assert "registry 'http://127.0.0.1:1' did not answer (" in told
    assert f"topic '{views}-gone' does not exist at {servers}" in told


def test_systems_that_are_away_are_waited_for_once(checked):
    """Each would be waited for as long as its connections may take."""
    away = """'connector' = 'kafka', 'topic' = 't', 'format' = 'json',
      'properties.bootstrap.servers' = '127.0.0.1:1',
      'properties.socket.connection.setup.timeout.ms' = '4000'"""
    tables = [f"CREATE TABLE t{number} (id BIGINT) WITH ({away});" for number in range(5)]
    began = time.monotonic()
    status, out = checked("\n".join(tables), "--online")
    assert time.monotonic() - began < 16
    assert status == 1
    assert out.count("Kafka broker 127.0.0.1:1 does not answer") == 5


def test_a_yaml_job_is_checked_by_a_dry_run(capsys):
    assert main(["check", "orders.yaml"]) == 2
    told = capsys.readouterr().err
    assert told == (
        "streamcore: 'orders.yaml' is a YAML job; check it with "
        "'streamcore run orders.yaml --dry-run'\n"
        "Run 'streamcore check --help' to see what it takes.\n"
    )


def test_a_script_without_statements_is_told_to_be_empty(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path))
    (tmp_path / "empty.sql").write_text("-- later\n")
    assert main(["check", str(tmp_path / "empty.sql")]) == 0
    assert capsys.readouterr() == ("nothing to check\n", "")
    assert main(["run", str(tmp_path / "empty.sql")]) == 0
    assert capsys.readouterr() == ("", "nothing to run\n")
