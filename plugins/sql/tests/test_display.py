"""What commands say: one JSON object per line, and never a secret."""

import io
import json
import os
import re
import signal

import pytest
from streamcore.cli import main
from streamcore_sql import Session, SqlError
from streamcore_sql.display import JsonDisplay, LineDisplay, LiveDisplay
from streamcore_sql.explain import _options
from streamcore_sql.progress import Progress
from streamcore_sql.results import Listing

SECRET = "hunter2xyz"
TABLE = """CREATE TABLE t (id BIGINT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json',
  'properties.bootstrap.servers' = 'h:1', 'scan.startup.mode' = '${secret_values.p}');
"""


def test_a_row_is_one_field_of_its_event_whatever_its_columns_are_called(capsys):
    JsonDisplay().result(Listing(("event", "time", "id", "id"), [("click", "noon", 1, 2)]))
    said = json.loads(capsys.readouterr().out)
    assert said.pop("time") != "noon"
    row = {"event": "click", "time": "noon", "id": 1, "id_2": 2}
    assert said == {"event": "row", "row": row}


@pytest.mark.parametrize(
    ("ids", "line"),
    [
        ({"job": "a.copies", "query": "q", "batch": 0}, "note: a.copies, batch 0: careful\n"),
        ({"job": "a.copies", "query": "q", "batch": None}, "note: a.copies: careful\n"),
        ({"job": None, "query": None, "batch": None}, "note: careful\n"),
    ],
)
def test_a_word_of_a_query_is_noted_with_its_job_and_batch(ids, line, capsys):
    LineDisplay().note("careful", ids)
    assert capsys.readouterr().err == line
    JsonDisplay().note("careful", ids)
    said = json.loads(capsys.readouterr().out)
    assert said.pop("time")
    assert said == {"event": "note", "text": "careful", **ids}


def test_a_view_that_is_opened_again_leaves_what_was_said_since(monkeypatch):
    from rich.console import Console

    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=80, height=30)
    monkeypatch.setattr("rich.console.Console", lambda **_: terminal)
    display = LiveDisplay()
    for status in ("running", "stopped"):
        display.progress([Progress("job", status, 3, 10, rate_in=5.0)])
        display.close()
    shown = screen.getvalue()
    assert "\x1b[1A" not in shown.partition("stopped")[0]
    assert re.sub(r"\x1b\[[?\d;]*\w", "", shown).count("job  ") == 2


def test_a_secret_value_is_not_shown_whatever_it_was_given_to():
    session = Session(secrets={"p": SECRET, "short": "abc"})
    assert str(session.execute("SET 'a.b' = '${secret_values.p}'")).startswith("'a.b' set to '***'")
    assert session.execute("SET").rows == [("a.b", "***")]
    assert _options({"topic": SECRET}) == ["    'topic' = '***'"]
    for name in ("p", "short"):
        with pytest.raises(SqlError) as caught:
            session.execute(f"SET 'parallelism.default' = '${{secret_values.{name}}}'")
        trouble, written, _ = str(caught.value).splitlines()
        assert trouble.endswith("parallelism.default: '***' is not a whole number above 0")
        assert f"${{secret_values.{name}}}" in written


@pytest.mark.parametrize(
    "command", [["check"], ["check", "--json"], ["run"], ["run", "--dry-run"], ["run", "--json"]]
)
def test_a_wrong_option_is_told_without_the_secret_it_holds(command, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path))
    script, secrets = tmp_path / "job.sql", tmp_path / "secrets.env"
    script.write_text(f"{TABLE}SELECT id FROM t;" if command[0] == "run" else TABLE)
    secrets.write_text(f"p={SECRET}\n")
    assert main([*command, str(script), "--secrets", str(secrets)]) != 0
    printed = capsys.readouterr()
    assert "scan.startup.mode: '***' is not one of" in printed.out + printed.err
    assert SECRET not in printed.out + printed.err


def test_an_interrupted_run_ends_with_its_own_status(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path))
    script = tmp_path / "job.sql"
    script.write_text("SET 'pipeline.name' = 'x';")

    def interrupted(*_):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("streamcore_sql.preflight.check", interrupted)
    assert main(["run", str(script)]) == 130
    assert capsys.readouterr().err == "stopped\n"
