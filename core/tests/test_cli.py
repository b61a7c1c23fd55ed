"""The command line as a new user tries it: what it prints, and how it ends."""

import json
import os
import socket
import subprocess
import sys
import types

import click
import pytest
from streamcore import Connector, Format, MetadataKey, Secret, hookimpl, option
from streamcore import registry as registry_module
from streamcore.cli import main

KEYS = ["kind", "identifier", "status", "distribution", "version", "reason"]


class Json(Format):
    """JSON objects."""

    identifier = "json"

    strict: bool = option("strict", "Whether holes are errors.", default=False)


class OtherJson(Json):
    """Other JSON objects."""

    identifier = "json"


class Changes(Format):
    """Changes."""

    identifier = "changes"
    changelog = True


class Pipe(Connector):
    """Moves bytes through a pipe.

    And more about it.
    """

    identifier = "pipe"

    path: str = option("path", "Where the pipe is.", example="it's here")
    token: Secret | None = option("token", "Who we are.", default=None, was=("pass",))
    format: Format = option("format", "How values are encoded.", also=("value.format",))

    def metadata(self):
        return {"at": MetadataKey("TIMESTAMP(3) NOT NULL", "When it came.", writable=True)}

    def produces(self):
        return frozenset({"+I", "-D"}) if self.format.changelog else frozenset({"+I"})

    def reader(self, table):
        return None


class Distribution:
    def __init__(self, name, version="1.0", requires=None):
        self.name, self.version, self.requires = name, version, requires


class EntryPoint:
    def __init__(self, distribution, load, requires=None):
        self.dist = Distribution(distribution, requires=requires)
        self.name, self.value, self.load = distribution.rpartition("-")[2], distribution, load


def plugin(**hooks):
    made = types.ModuleType("made")
    for name, offers in hooks.items():
        setattr(made, name, hookimpl(lambda offers=offers: offers))
    return lambda: made


@pytest.fixture
def install(monkeypatch):
    def installed(*points):
        monkeypatch.setattr(registry_module, "entry_points", lambda group: list(points))

    installed(
        EntryPoint("streamcore-formats", plugin(register_formats=[Json, Changes])),
        EntryPoint("acme-pipe", plugin(register_connectors=[Pipe])),
    )
    return installed


@pytest.fixture
def run(capsys, install):
    def called(*arguments):
        status = main(arguments)
        out, err = capsys.readouterr()
        return status, out, err

    return called


# --- list-plugins ----------------------------------------------------------------------


def test_list_plugins_shows_what_is_installed(run):
    status, out, err = run("list-plugins")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "KIND       IDENTIFIER  STATUS  DISTRIBUTION        VERSION  REASON",
        "connector  pipe        active  acme-pipe           1.0      ",
        "format     changes     active  streamcore-formats  1.0      ",
        "format     json        active  streamcore-formats  1.0      ",
    ]


def test_list_plugins_as_json_has_exactly_the_promised_keys(run):
    for flag in (["--json"], ["--format", "json"]):
        status, out, _ = run("list-plugins", *flag)
        rows = json.loads(out)
        assert status == 0
        assert [list(row) for row in rows] == [KEYS] * 3
        assert rows[0] == dict(
            zip(KEYS, ["connector", "pipe", "active", "acme-pipe", "1.0", ""], strict=True)
        )


def test_list_plugins_of_one_kind(run):
    _, out, _ = run("list-plugins", "--kind", "format", "--json")
    assert [row["identifier"] for row in json.loads(out)] == ["changes", "json"]


def test_a_clash_is_told_and_ends_with_one(run, install):
    install(
        EntryPoint("streamcore-formats", plugin(register_formats=[Json])),
        EntryPoint("acme-json", plugin(register_formats=[OtherJson])),
    )
    status, out, err = run("list-plugins")
    assert status == 1
    assert (
        "format  json        shadowed  acme-json           1.0      streamcore-formats 1.0" in out
    )
    assert err == (
        "streamcore: format 'json' is claimed by streamcore-formats 1.0 (active) and acme-json 1.0 "
        "(shadowed). Uninstall one, or set STREAMCORE_PREFER=acme-json to switch.\n"
    )


def test_list_plugins_still_lists_when_clashes_are_errors(run, install, monkeypatch):
    monkeypatch.setenv("STREAMCORE_STRICT", "1")
    install(
        EntryPoint("streamcore-formats", plugin(register_formats=[Json])),
        EntryPoint("acme-json", plugin(register_formats=[OtherJson])),
    )
    status, out, _ = run("list-plugins", "--json")
    assert status == 1
    assert [row["status"] for row in json.loads(out)] == ["active", "shadowed"]


def broken():
    raise ImportError("no such library")


@pytest.mark.parametrize(
    ("point", "status", "reason"),
    [
        (EntryPoint("acme-x", broken), "broken", "ImportError: no such library"),
        (
            EntryPoint("acme-x", broken, requires=["streamcore>=99"]),
            "incompatible",
            "needs streamcore>=99, this is streamcore ",
        ),
    ],
)
def test_what_cannot_work_ends_with_one(run, install, point, status, reason):
    install(point, EntryPoint("streamcore-formats", plugin(register_formats=[Json])))
    code, out, _ = run("list-plugins", "--json")
    row = next(row for row in json.loads(out) if row["distribution"] == "acme-x")
    assert code == 1
    assert (row["kind"], row["identifier"], row["status"]) == ("", "x", status)
    assert row["reason"].startswith(reason)


def test_what_is_blocked_on_purpose_is_no_finding(run, monkeypatch):
    monkeypatch.setenv("STREAMCORE_ALLOW", "streamcore-formats")
    status, out, _ = run("list-plugins", "--json")
    assert status == 0
    assert {row["status"] for row in json.loads(out)} == {"active", "blocked"}


# --- describe ----------------------------------------------------------------------------


def test_describe_as_json_says_everything(run):
    status, out, _ = run("describe", "connector", "pipe", "--json")
    facts = json.loads(out)
    assert status == 0
    assert facts["distribution"] == "acme-pipe"
    assert facts["description"] == "Moves bytes through a pipe.\n\nAnd more about it."
    assert facts["capabilities"] == {
        "batch reads": True,
        "streaming reads": False,
        "batch writes": False,
        "streaming writes": False,
        "rows read": "insert-only, or changelog if the format is one",
    }
    assert facts["metadata"] == [
        {
            "key": "at",
            "type": "TIMESTAMP(3) NOT NULL",
            "writable": True,
            "description": "When it came.",
        }
    ]
    token = facts["options"][1]
    assert token == {
        "key": "token",
        "type": "secret",
        "required": False,
        "default": "",
        "description": "Who we are.",
        "expects": "text, kept secret",
        "values": [],
        "synonyms": [],
        "fallback": [],
        "deprecated": ["pass"],
        "secret": True,
    }
    assert facts["options"][2]["synonyms"] == ["value.format"]
    assert facts["example"] == (
        "CREATE TABLE pipe_table (\n  id BIGINT,\n  name STRING\n) WITH (\n"
        "  'connector' = 'pipe',\n  'path' = 'it''s here',\n  'format' = 'json'\n);"
    )


def test_describe_in_the_terminal_and_as_markdown(run):
    _, text, _ = run("describe", "connector", "pipe")
    for word in (
        "connector pipe  (acme-pipe 1.0)",
        "Example",
        "Options",
        "Metadata columns",
        "R/W",
    ):
        assert word in text
    _, page, _ = run("describe", "connector", "pipe", "--format", "markdown")
    assert "| `path` | string | *required* | Where the pipe is. |" in page
    assert "| `token` | secret |  | Who we are. Was `pass`. |" in page
    assert "```sql\nCREATE TABLE pipe_table" in page
    assert "| `at` | `TIMESTAMP(3) NOT NULL` | R/W | When it came. |" in page


def test_a_format_is_shown_inside_a_table_that_can_hold_it(run):
    _, out, _ = run("describe", "format", "json", "--json")
    facts = json.loads(out)
    assert [each["key"] for each in facts["options"]] == ["json.strict"]
    assert "'connector' = 'pipe'" in facts["example"]
    assert "'format' = 'json'" in facts["example"]


def test_describe_lists_what_there_is(run):
    _, out, _ = run("describe")
    assert "Moves bytes through a pipe." in out
    assert "JSON objects." in out
    _, out, _ = run("describe", "format", "--json")
    assert [each["identifier"] for each in json.loads(out)] == ["changes", "json"]


def test_describe_of_something_missing_says_what_to_do(run):
    status, out, err = run("describe", "connector", "kafka")
    assert (status, out) == (2, "")
    assert err == (
        "streamcore: no connector called 'kafka'.\n"
        "Install it: pip install streamcore-kafka\n"
        "Installed: pipe\n"
    )


# --- commands of plugins -------------------------------------------------------------------


@click.command("hello")
def hello():
    """Say hello."""
    click.echo("hello")


@click.command("crash")
def crash():
    """Crash."""
    raise ZeroDivisionError("by zero")


@click.command("interrupted")
def interrupted():
    """Be interrupted."""
    raise KeyboardInterrupt


@click.command("doctor")
def impostor():
    """Pretend to be another command."""
    click.echo("give me your password")


def bad_commands():
    raise RuntimeError("no terminal")


def test_plugins_add_commands_and_a_broken_one_breaks_no_other(run, install):
    bad = types.ModuleType("bad")
    bad.register_commands = hookimpl(bad_commands)
    install(
        EntryPoint("acme-hello", plugin(register_commands=[hello, impostor])),
        EntryPoint("acme-bad", lambda: bad),
    )
    assert run("hello") == (0, "hello\n", "")
    status, out, _ = run("--help")
    assert status == 0
    assert "Say hello." in out
    assert "Check Python" in out
    assert "Commands of acme-bad 1.0 are missing; see 'list-plugins'." in out
    status, out, _ = run("list-plugins", "--kind", "command", "--json")
    assert status == 1
    assert {(row["identifier"], row["status"]) for row in json.loads(out)} >= {
        ("hello", "active"),
        ("bad", "broken"),
    }


def test_a_plugin_cannot_replace_a_command_of_core(run, install):
    install(EntryPoint("acme-doctor", plugin(register_commands=[impostor])))
    _, out, _ = run("doctor")
    assert "password" not in out


def test_an_unknown_command_gets_a_suggestion_or_the_package_to_install(run):
    status, _, err = run("list-plugin")
    assert status == 2
    assert err.startswith(
        "streamcore: no command called 'list-plugin'. Did you mean 'list-plugins'?"
    )
    status, _, err = run("run", "job.sql")
    assert status == 2
    assert "no command called 'run'. Install it: pip install streamcore-sql" in err


# --- how it ends -------------------------------------------------------------------------------


def test_no_stack_without_verbose(run, install):
    install(EntryPoint("acme-crash", plugin(register_commands=[crash])))
    status, _, err = run("crash")
    assert status == 1
    assert err == (
        "streamcore: ZeroDivisionError: by zero\n"
        "Run the same with --verbose to see where it comes from.\n"
    )
    status, _, err = run("--verbose", "crash")
    assert status == 1
    assert "Traceback" in err
    status, _, err = run("describe", "connector", "nope", "--verbose")
    assert status == 2
    assert "Traceback" in err


def test_an_interruption_ends_with_130(run, install):
    install(EntryPoint("acme-i", plugin(register_commands=[interrupted])))
    status, _, err = run("interrupted")
    assert (status, err.strip()) == (130, "Interrupted.")


@pytest.mark.parametrize(
    "arguments",
    [
        ["list-plugins", "--kind", "nonsense"],
        ["describe", "nonsense"],
        ["list-plugins", "--format", "xml"],
        ["new-plugin", "x"],
        ["completion", "tcsh"],
        ["sandbox", "up", "oracle"],
    ],
)
def test_bad_input_ends_with_two_and_one_sentence(run, arguments):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("streamcore: ")
    assert "Traceback" not in err
    assert err.rstrip().endswith("--help' to see what it takes.")


def test_every_command_takes_format_and_verbose(run):
    from streamcore.cli import cli

    def leaves(command):
        if isinstance(command, click.Group):
            return [leaf for each in command.commands.values() for leaf in leaves(each)]
        return [command]

    root = click.Context(cli)
    found = [
        leaf for name in cli.list_commands(root) for leaf in leaves(cli.get_command(root, name))
    ]
    assert len(found) >= 9, "core's own; packages may add more"
    for command in found:
        taken = {flag for parameter in command.params for flag in parameter.opts}
        assert {"--format", "--json", "--verbose"} <= taken, command.name


def test_help_documents_the_exit_status(run):
    _, out, _ = run("--help")
    assert "Exit status: 0 all is well, 1 something was found or a job failed" in out


def test_completion_scripts_complete(run):
    for shell in ("bash", "zsh", "fish"):
        status, out, _ = run("completion", shell)
        assert status == 0
        assert "_STREAMCORE_COMPLETE" in out
    _, out, _ = run("completion", "bash", "--json")
    assert json.loads(out)["shell"] == "bash"


def test_identifiers_are_completed():
    environment = {
        **os.environ,
        "_STREAMCORE_COMPLETE": "bash_complete",
        "COMP_WORDS": "streamcore describe partitioner fi",
        "COMP_CWORD": "3",
    }
    done = subprocess.run(
        [sys.executable, "-m", "streamcore.cli"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["plain,fixed"]


# --- doctor -------------------------------------------------------------------------------------


@pytest.fixture
def healthy(monkeypatch, tmp_path):
    for variable in ("STREAMCORE_KAFKA", "STREAMCORE_SCHEMA_REGISTRY", "STREAMCORE_KINESIS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path))


@pytest.mark.usefixtures("healthy")
def test_doctor_finds_nothing_wrong_here(run):
    status, out, _ = run("doctor", "--json")
    findings = json.loads(out)
    assert status == 0, findings
    assert [f["what"] for f in findings if f["status"] == "ok"] == [
        "python",
        "java",
        "spark",
        "plugins",
    ]
    assert findings[-1]["advice"] == "'streamcore sandbox up' starts them here"


@pytest.mark.usefixtures("healthy")
def test_doctor_reaches_for_the_services_of_the_environment(run, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setenv("STREAMCORE_KAFKA", f"127.0.0.1:{port}")
        status, out, _ = run("doctor")
        assert status == 0
        assert f"127.0.0.1:{port} answers" in out
    status, out, _ = run("doctor", "--json")
    assert status == 1
    finding = json.loads(out)[-1]
    assert (finding["what"], finding["status"]) == ("kafka", "problem")
    assert finding["detail"] == f"127.0.0.1:{port}: Connection refused"


@pytest.mark.usefixtures("healthy")
def test_doctor_names_what_is_missing(run, install, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("STREAMCORE_PREFER", "acme-gone")
    install(EntryPoint("acme-x", broken))
    status, out, _ = run("doctor", "--json")
    assert status == 1
    details = {f["detail"]: f["advice"] for f in json.loads(out)}
    assert details["JAVA_HOME is /nowhere, which has no bin/java"].startswith("install a JDK 17")
    assert details["x of acme-x 1.0 is broken: ImportError: no such library"]
    assert "STREAMCORE_PREFER names 'acme-gone', which is not installed" in details


# --- sandbox ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("healthy")
def test_an_empty_sandbox(run):
    assert run("sandbox", "status") == (
        0,
        "Nothing is running. Start it: streamcore sandbox up\n",
        "",
    )
    assert json.loads(run("sandbox", "status", "--json")[1]) == {"services": [], "environment": {}}
    assert run("sandbox", "down") == (0, "Nothing was running.\n", "")
    status, _, err = run("sandbox", "logs", "kafka")
    assert status == 1
    assert err == (
        "streamcore: 'kafka' is not in the sandbox. Run 'streamcore sandbox up' first.\n"
    )


# --- cost ---------------------------------------------------------------------------------------


def test_the_command_line_of_core_imports_nothing_heavy():
    code = (
        "import sys; from streamcore.cli import main\n"
        "main(['list-plugins', '--kind', 'partitioner'])\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    environment = {**os.environ, "STREAMCORE_ALLOW": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert not loaded & {"pyspark", "pyarrow", "rich", "numpy", "packaging", "hypothesis"}
    assert "fixed" in done.stdout


def test_the_bare_command_shows_its_help_and_nothing_else(capsys):
    assert main([]) == 2
    said = capsys.readouterr().err
    assert said.startswith("Usage: streamcore [OPTIONS] COMMAND [ARGS]...")
    assert "to see what it takes" not in said
