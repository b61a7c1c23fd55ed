"""`streamcore check`: what scripts would do, without doing it."""

from __future__ import annotations

import json

import click
from streamcore.cli.status import FAILED, OK

from .options import Given, read_script, session_options

_COLOURS = {"same": "green", "differs": "yellow", "unsupported": "red", "wrong": "red"}


@click.command()
@click.argument("scripts", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--online", is_flag=True, help="Also ask brokers and streams whether tables exist.")
@session_options
def check(scripts: tuple[str, ...], online: bool, output: str, given: Given) -> int:
    """Check SCRIPTS: syntax, tables, columns, options, plugins, and how they compare with Flink.

    Each statement is the same as in Flink, differs, is unsupported, or is wrong. Nothing is
    started, kept or written.
    """
    from ..checking import Checker
    from ..monitoring.scrubbing import SECRETS

    for path in scripts:
        if path.lower().endswith((".yaml", ".yml")):
            told = f"'{path}' is a YAML job; check it with 'streamcore run {path} --dry-run'"
            raise click.UsageError(told)
    session = given.session(dry=True)
    checker = Checker(session, online, lambda: given.start_spark(session, "check"))
    counts = dict.fromkeys(_COLOURS, 0)
    for path in scripts:
        text, name = read_script(path)
        for found in checker.check(text, name):
            counts[found.verdict] += 1
            if output == "json":
                plain = {"file": name, **vars(found)}
                click.echo(json.dumps(SECRETS.clean(plain)))
                continue
            verdict = click.style(found.verdict.ljust(11), fg=_COLOURS[found.verdict])
            click.echo(f"{verdict} {name}:{found.line}  {SECRETS.scrub(found.statement)}")
            for detail in map(SECRETS.scrub, (*found.details, *found.online)):
                click.echo("\n".join(f"            {line}" for line in detail.splitlines()))
    if output != "json":
        told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        click.echo(told or "nothing to check")
    return FAILED if counts["unsupported"] or counts["wrong"] else OK
