"""A job in a process of its own: scraped, listed, and stopped by its name after its batch."""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from streamcore.cli import main
from streamcore_sql.monitoring import jobfiles

SCRIPT = """
CREATE TABLE ticks (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '50');
CREATE TABLE hole (id BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO hole SELECT id FROM ticks;
"""
OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path / "state"))
    (tmp_path / "ticks.sql").write_text(SCRIPT)
    command = [sys.executable, "-m", "streamcore.cli", "run", str(tmp_path / "ticks.sql")]
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(
            [*command, "--json", "--metrics-port", "0", "--web", "0"], stdout=out, stderr=err
        )
        yield process
        if process.poll() is None:
            process.kill()
        process.wait(30)


def has_worked():
    run = jobfiles.find("ticks")
    return run is not None and any(query.get("numBatches", 0) > 1 for query in run.queries)


def test_it_is_scraped_listed_and_stopped_between_batches(job, tmp_path, capfd):
    deadline = time.monotonic() + 240
    while not has_worked() and time.monotonic() < deadline and job.poll() is None:
        time.sleep(0.5)
    run = jobfiles.find("ticks")
    assert has_worked(), (tmp_path / "err").read_text()
    assert (run.pid, run.state) == (job.pid, "running")
    assert run.path == str((tmp_path / "ticks.sql").resolve())
    with urllib.request.urlopen(urllib.request.Request(run.metrics, headers=OPENMETRICS)) as found:
        families = {f.name: f for f in text_string_to_metric_families(found.read().decode())}
    (read,) = families["streamcore_numRecordsIn"].samples
    assert (read.labels["job"], read.labels["table"]) == ("ticks.hole", "ticks")
    assert read.value > 0
    with urllib.request.urlopen(f"{run.web}/") as page:
        assert b"<title>streamcore</title>" in page.read()

    waiting = subprocess.Popen(
        [sys.executable, "-m", "streamcore.cli", "stop", "ticks"], stdout=subprocess.PIPE, text=True
    )
    assert job.wait(120) == 130
    assert waiting.communicate(timeout=60)[0] == "job 'ticks' stopped\n"
    assert waiting.returncode == 0
    assert jobfiles.find("ticks").state == "stopped"
    folder = tmp_path / "state" / "jobs" / "ticks" / "hole"
    planned, done = (
        {int(path.name) for path in (folder / part).glob("[0-9]*")}
        for part in ("offsets", "commits")
    )
    assert done <= planned
    assert len(planned - done) <= 1, "the next batch may have been planned at that very moment"

    lines = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    told = [line for line in lines if line["event"] == "progress" and "batch" in line]
    assert told
    assert len({line["query"] for line in told}) == 1
    assert {"phases", "rate_in"} <= set(told[-1])
    numbers = [line["batch"] for line in told]
    assert numbers == list(range(len(numbers)))
    assert max(done) - len(numbers) < 1, "the last may have ended before Spark could tell of it"
    assert told[-1]["status"] == "stopped"
    events = [json.loads(line) for line in Path(run.log).read_text().splitlines()]
    assert [line["batch"] for line in events if line["event"] == "batch"] == numbers
    assert events[0]["event"] == "started"
    assert events[-1]["event"] == "stopped"
    assert {line["query"] for line in events} == {told[0]["query"]}
    assert main(["jobs"]) == 0
    assert "ticks  stopped" in capfd.readouterr().out
