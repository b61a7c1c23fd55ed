"""The prompt: when Enter runs a text, what Tab offers, what is shown and what is remembered."""

import io
import json
import logging
import os
import pty
import select
import subprocess
import sys
import threading
import time

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from py4j.java_gateway import GatewayClient
from rich.console import Console
from streamcore.cli import main
from streamcore_sql import Session
from streamcore_sql.live import Change
from streamcore_sql.quiet import quiet_start
from streamcore_sql.repl.backslash import HELP, spelled_out
from streamcore_sql.repl.completion import SqlCompleter
from streamcore_sql.repl.history import DiscreetHistory
from streamcore_sql.repl.live_view import View
from streamcore_sql.repl.loop import Repl
from streamcore_sql.repl.prompt import is_complete

TABLE = """CREATE TABLE orders (id BIGINT, amount DOUBLE)
WITH ('connector' = 'datagen', 'number-of-rows' = '3');"""


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("\\help", True),
        ("-- why", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT ';", False),
        ("SELECT 1; -- why", True),
        ("SELECT 1 /* ;", False),
        ("BEGIN STATEMENT SET; INSERT INTO a SELECT 1;", False),
        ("BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END;", True),
        ("SELECT CASE x WHEN 1 THEN 2 END;", True),
    ],
)
def test_enter_runs_only_what_is_finished(text, complete):
    assert is_complete(text) is complete


@pytest.fixture
def offered():
    session = Session()
    session.execute(TABLE)
    completer = SqlCompleter(session.catalog)

    def complete(text):
        found = completer.get_completions(Document(text), CompleteEvent(completion_requested=True))
        return [each.text for each in found]

    return complete


def test_tab_completes_keywords_tables_and_their_columns(offered):
    assert offered("SEL") == ["SELECT"]
    assert offered("SELECT * FROM or") == ["orders"]
    assert "ORDER" in offered("SELECT * FROM orders or")
    assert "amount" in offered("SELECT * FROM orders WHERE am")
    assert "amount" not in offered("SELECT am")
    assert offered("\\he") == ["\\help"]


def test_tab_completes_options_of_the_connector_at_hand(offered):
    assert offered("CREATE TABLE t (x INT) WITH ('con") == ["connector"]
    assert offered("CREATE TABLE t (x INT) WITH ('connector' = 'data") == ["datagen"]
    given = "CREATE TABLE t (x INT) WITH ('connector' = 'datagen', '"
    assert "rows-per-second" in offered(given + "rows")
    assert offered(given + "rows-per-second' = '1', 'rows-per") == []
    kafka = "CREATE TABLE t (x INT) WITH ('connector' = 'kafka', 'format' = 'json', '"
    assert "json.ignore-parse-errors" in offered(kafka + "json.")
    assert "value.format" in offered(kafka + "value.f")
    assert offered(kafka + "scan.startup.mode' = 'ear") == ["earliest-offset"]
    assert offered(kafka + "json.ignore-parse-errors' = 't") == ["true"]
    assert offered(kafka + "key.format' = 'max") == ["maxwell-json"]
    assert "round-robin" in offered(kafka + "sink.partitioner' = 'r")
    assert offered("SELECT 'sel") == []
    assert "pipeline.name" in offered("SET 'pipe")


def talk(session, *texts):
    console = Console(file=io.StringIO(), width=120)
    answers = iter(texts)

    def ask():
        try:
            return next(answers)
        except StopIteration:
            raise EOFError from None

    Repl(session, console, lambda: None).run(ask)
    return console.file.getvalue()


def test_a_mistake_does_not_end_the_conversation():
    said = talk(Session(), "SELEC 1;", TABLE, "SHOW TABELS;", "\\tables", "\\nonsense")
    assert "Did you mean 'SELECT'?" in said
    assert "Did you mean 'TABLES'?" in said
    assert "orders" in said
    assert "no command '\\nonsense'" in said


def test_a_typo_is_told_while_spark_still_starts():
    session, console = Session(), Console(file=io.StringIO(), width=120)
    session.execute(TABLE)
    ready = threading.Event()
    repl = Repl(session, console, ready.wait)
    repl.warm_up()
    assert not repl.answer("SELECT amuont FROM orders;")
    ready.set()
    assert console.file.getvalue() == (
        "line 1, column 8: no column called 'amuont'\n"
        "    SELECT amuont FROM orders;\n"
        "           ^^^^^^\n"
        "Did you mean 'amount'?\n"
    )


def test_help_and_quit():
    said = talk(Session(), "\\help", "\\quit", "SHOW TABLES;")
    assert "Tab completes" in said
    assert "table name" not in said


def test_words_of_flinks_own_client_do_what_they_do_there():
    assert "Tab completes" in talk(Session(), "help;", "clear;", "Exit;")
    assert "table name" not in talk(Session(), "QUIT;", "SHOW TABLES;")


def test_results_are_tables_with_nulls_set_apart(spark):
    session = Session(spark)
    said = talk(session, "SELECT 1 AS a, CAST(NULL AS STRING) AS b;")
    assert "NULL" in said
    assert "1 row" in said
    session.settings._values["sql-client.execution.max-table-result.rows"] = "2"
    assert "the first 2 rows; there are more" in talk(session, "VALUES (1), (2), (3);")


def test_secrets_are_not_remembered(tmp_path):
    file = tmp_path / "history"
    history = DiscreetHistory(file)
    history.append_string("SELECT 1;")
    history.append_string("CREATE TABLE t (x INT) WITH ('properties.sasl.password' = 'hunter2');")
    history.append_string("CREATE TABLE t (x INT) WITH ('ssl.keystore.key' = 'BEGIN\nhunter2');")
    history.append_string("CREATE TABLE t (x INT) WITH ('url' = 'http://me:hunter2@host');")
    assert "SELECT 1" in file.read_text()
    assert "hunter2" not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


class FakeRows:
    def __init__(self, columns, key, mode):
        self.columns, self.key = columns, key
        self.plan = type("Plan", (), {"mode": mode})


def shown(view):
    console = Console(file=io.StringIO(), width=80)
    console.print(view.table())
    return console.file.getvalue()


def test_an_updating_result_shows_the_latest_row_of_each_key():
    view = View(FakeRows(("region", "n"), (0,), "update"), 20)
    view.add([Change("+U", ("eu", 1)), Change("+U", ("us", 5)), Change("+U", ("eu", 2))])
    view.add([Change("-D", ("us", 5))])
    text = shown(view)
    assert "eu" in text
    assert "us" not in text
    assert "1 row after 4 changes" in text


def test_a_changelog_shows_every_change_with_its_kind():
    view = View(FakeRows(("region", "n"), (0,), "update"), 20, changes=True)
    view.add([Change("+U", ("eu", 1)), Change("+U", ("eu", 2))])
    assert shown(view).count("+U") == 2


def test_pipes_and_execute_need_no_terminal(spark, capfd, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path))
    assert main(["sql", "-e", TABLE, "-e", "SELECT COUNT(*) AS n FROM orders;"]) == 0
    assert "n\n-\n3\n(1 row)" in capfd.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO("SHOW TABELS;"))
    assert main(["sql"]) == 2
    assert "Did you mean 'TABLES'?" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "spelled", "wants_help"),
    [
        ("\\help", "", True),
        ("help;\nSHOW JOBS;", "\nSHOW JOBS;", True),
        (
            "SHOW JOBS;\n  \\tables;\n\\describe a.b",
            "SHOW JOBS;\nSHOW TABLES;\nDESCRIBE a.b;",
            False,
        ),
        ("-- first\n\\jobs\n\\clear\n", "-- first\nSHOW JOBS;\n\n", False),
        ("SHOW JOBS;\n\\q\nnonsense", "SHOW JOBS;", False),
        ("SELECT '\n\\help\n';", "SELECT '\n\\help\n';", False),
        ("SELECT 1 AS\nhelp\n;", "SELECT 1 AS\nhelp\n;", False),
        ("/*\n\\help\n*/", "/*\n\\help\n*/", False),
    ],
)
def test_commands_in_a_text_become_statements_where_one_may_begin(text, spelled, wants_help):
    assert spelled_out(text) == (spelled, wants_help)


def test_commands_need_no_terminal_either(capfd, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO("\\help\n"))
    assert main(["sql"]) == 0
    assert capfd.readouterr() == (HELP, "")
    assert main(["sql", "-e", "\\help", "--json"]) == 0
    said = json.loads(capfd.readouterr().out)
    assert (said["event"], said["text"] + "\n") == ("text", HELP)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TABLE}\n\\tables\n\\quit\nSELEC 1;"))
    assert main(["sql"]) == 0
    assert "table name\n----------\norders\n" in capfd.readouterr().out


def test_each_text_to_execute_ends_its_own_statement(capfd, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path))
    texts = (TABLE.rstrip(";"), "SHOW TABLES -- all", "\\jobs", "DESCRIBE orders;")
    assert main(["sql", *(part for text in texts for part in ("-e", text))]) == 0
    heads = ("table name", "job id", "name")
    said = capfd.readouterr().out
    assert [head for head in heads if f"{head} " in said or f"{head}\n" in said] == list(heads)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("\\nonsense", "no command '\\nonsense'; \\help lists them"),
        ("\\describe", "\\describe needs the name of a table"),
    ],
)
def test_a_command_that_is_none_is_the_users_mistake(typed, told, capfd):
    assert main(["sql", "-e", typed]) == 2
    assert capfd.readouterr() == ("", f"streamcore: {told}\n")
    assert told in talk(Session(), typed)


class Interrupted:
    socket = None

    def send_command(self, command):
        raise KeyboardInterrupt

    def close(self, reset=False):
        """Nothing is open."""


def test_a_ctrl_c_while_spark_works_shows_no_stack(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(GatewayClient, "_get_connection", lambda client: Interrupted())
    with quiet_start(tmp_path / "spark.log"), pytest.raises(KeyboardInterrupt):
        GatewayClient().send_command("work")
    logging.getLogger().error("ours")
    assert [record.getMessage() for record in caplog.records] == ["ours"]


class Terminal:
    """A prompt on a terminal of its own, typed at and read like a person does."""

    def __init__(self, *arguments, env):
        self._ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "streamcore.cli", *arguments]
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True
        )
        os.close(theirs)
        self._read = ""

    def type(self, text):
        os.write(self._ours, text.encode())

    def see(self, text, seconds=300):
        """Wait until a text is on the screen; what came before it is read."""
        deadline = time.monotonic() + seconds
        while text not in self._read:
            ready, _, _ = select.select([self._ours], [], [], 1)
            if ready:
                self._read += os.read(self._ours, 4096).decode(errors="replace")
            assert time.monotonic() < deadline, self._read[-2000:]
        self._read = self._read.partition(text)[2]

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        os.close(self._ours)


@pytest.fixture
def terminal(tmp_path):
    env = {**os.environ, "STREAMCORE_STATE": str(tmp_path), "TERM": "xterm", "COLUMNS": "80"}
    terminal = Terminal("sql", "--master", "local[1]", env=env)
    yield terminal
    terminal.end()


def test_a_key_leaves_the_live_result_of_a_stream(terminal):
    terminal.see("\\help tells more")
    terminal.type("CREATE TABLE ticks (id BIGINT) WITH ('connector' = 'datagen');\r")
    terminal.see("table 'ticks' created")
    terminal.type("SELECT id FROM ticks;\r")
    terminal.see("working ...")
    terminal.see("q to leave")
    terminal.type("q")
    terminal.see("; left")
    terminal.type("SHOW JOBS;\r")
    terminal.see("stopped")
    terminal.type("\\quit\r")
    assert terminal.process.wait(120) == 0
