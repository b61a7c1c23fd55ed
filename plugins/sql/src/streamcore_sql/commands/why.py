"""`streamcore why`: what a table makes of one message, and why it may not be able to."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import click
from streamcore import DataLossError
from streamcore.cli.status import FAILED, OK

from .options import Given, read_script, session_options

if TYPE_CHECKING:
    from ..inference.reasons import Reading
    from ..inference.sampling import Message

_POSITION = re.compile(r"(?P<topic>[\w.-]+)@(?P<partition>\d+):(?P<offset>\d+)")
_SHOWN = 400


@click.command()
@click.argument("table")
@click.argument("position")
@click.option("--script", "scripts", multiple=True, help="A script that creates the table.")
@session_options
def why(table: str, position: str, scripts: tuple[str, ...], output: str, given: Given) -> int:
    """Show the message at POSITION, TOPIC@PARTITION:OFFSET, and what TABLE makes of it."""
    from ..inference.reasons import readings
    from ..inference.sampling import address, sample
    from ..planner.binding import bind
    from ..statements import CreateTable, CreateView, Name

    match = _POSITION.fullmatch(position)
    if match is None:
        raise click.UsageError(f"'{position}' is not TOPIC@PARTITION:OFFSET")
    session = given.session(dry=True)
    for path in scripts:
        for statement in session.parse(*read_script(path)):
            if isinstance(statement, (CreateTable, CreateView)):
                session.run_statement(statement)
    entry = session.catalog.find(Name(tuple(table.split("."))))
    if not isinstance(entry, CreateTable):
        raise click.UsageError(f"'{table}' is a view; name the table it reads")
    bound = bind(entry)
    at, after = int(match["offset"]), int(match["offset"]) + 1
    start = {
        **address(bound.options),
        "topic": match["topic"],
        "scan.partitions": match["partition"],
        "scan.startup.mode": "specific-offsets",
        "scan.startup.specific-offsets": f"partition:{match['partition']},offset:{at}",
        "scan.bounded.mode": "specific-offsets",
        "scan.bounded.specific-offsets": f"partition:{match['partition']},offset:{after}",
    }
    try:
        messages = [m for m in sample("kafka", start, 1) if m.position == position]
    except DataLossError as error:
        reason = str(error).partition(" Set '")[0]  # advice for a table that is read on and on
        raise DataLossError(f"there is no message at {position}: {reason}") from error
    if not messages:
        raise DataLossError(f"there is no message at {position}: it was compacted or rolled back.")
    found = list(readings(bound.options, bound.table, messages[0]))
    if output == "json":
        told = {"message": _plain(messages[0]), "read": [vars(each) for each in found]}
        click.echo(json.dumps(told, indent=2, default=str))
        return FAILED if any(reading.reason for reading in found) else OK
    _show(messages[0])
    for reading in found:
        _tell(reading)
    return FAILED if any(reading.reason for reading in found) else OK


def _plain(message: Message) -> dict[str, Any]:
    return {
        "position": message.position,
        "time": message.time,
        "headers": {name: _readable(value) for name, value in message.headers.items()},
        "key": _readable(message.key),
        "value": _readable(message.value),
    }


def _show(message: Message) -> None:
    click.echo(f"message  {message.position}, written {message.time}")
    for name, value in message.headers.items():
        click.echo(f"header   {name} = {_readable(value)}")
    click.echo(f"key      {_readable(message.key)}")
    click.echo(f"value    {_readable(message.value)}")
    if message.value and message.value[:1] == b"\0" and len(message.value) > 5:
        number = int.from_bytes(message.value[1:5], "big")
        click.echo(f"schema   id {number}, in the framing of a schema registry")


def _tell(reading: Reading) -> None:
    click.echo()
    if not reading.reason:
        click.echo(f"{reading.part} as {reading.format}: {reading.rows or 'no row'}")
        return
    click.echo(f"{reading.part} as {reading.format} cannot be read: {reading.reason}")
    for option in reading.accepted_by:
        click.echo(f"  {option}")


def _readable(payload: bytes | None) -> str:
    if payload is None:
        return "null"
    size = f"{len(payload)} bytes"
    try:
        text = payload.decode()
        shown = text if all(c.isprintable() or c in "\t\n" for c in text) else ""
    except UnicodeDecodeError:
        shown = ""
    shown = shown or payload.hex(" ")
    clipped = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]} ..."
    return f"({size}) {clipped}"
