"""`streamcore sql`: statements typed at a prompt, given with -e, or piped in."""

from __future__ import annotations

import sys

import click
from streamcore.cli.status import OK

from .options import Given, session_options


@click.command()
@click.option("-e", "--execute", "texts", multiple=True, help="Run this and end.")
@click.option("--once", is_flag=True, help="Streams read what is there now, then end.")
@click.option("--name", default="", help="A name, under which jobs keep their checkpoints.")
@session_options
def sql(texts: tuple[str, ...], once: bool, name: str, output: str, given: Given) -> int:
    """Talk SQL: at a prompt, with -e, or from a pipe; the prompt knows no JSON."""
    if texts or not sys.stdin.isatty():
        text = _together(texts) if texts else sys.stdin.read()
        return _batch(text, once, name, output == "json", given)
    from rich.console import Console

    from ..repl.loop import Repl
    from ..repl.prompt import prompt_session
    from ..settings import state_folder

    session = given.session(name=name, once=once)
    console = Console()
    repl = Repl(session, console, lambda: given.start_spark(session, "sql"), verbose=given.verbose)
    repl.warm_up()
    prompt = prompt_session(session.catalog, state_folder() / "history")
    console.print("Flink SQL on Spark. \\help tells more, Ctrl-D leaves.", style="dim")
    try:
        repl.run(prompt.prompt)
    finally:
        if any(job.status == "running" for job in session.jobs):
            console.print("stopping jobs ...", style="dim")
        session.stop()
    return OK


def _together(texts: tuple[str, ...]) -> str:
    """Several texts as one: each ends its last statement, whether it says so or not."""
    from ..repl.backslash import command, is_open

    def closed(text: str) -> str:
        last = text.rstrip().rpartition("\n")[2]
        if command(last) or not is_open(text):
            return text
        return f"{text}\n;" if "--" in last else f"{text};"

    return "\n".join(map(closed, texts))


def _batch(text: str, once: bool, name: str, as_json: bool, given: Given) -> int:
    """Run statements one after another and stop at the first that fails."""
    from ..display import display_for
    from ..repl.backslash import HELP, spelled_out
    from ..results import Text
    from .run import run_script

    text, wants_help = spelled_out(text)
    if wants_help:
        display_for(as_json=as_json, terminal=False).result(Text(HELP.rstrip("\n")))
        if not text.strip():
            return OK
    return run_script(text, "sql", name, given, as_json=as_json, once=once)
