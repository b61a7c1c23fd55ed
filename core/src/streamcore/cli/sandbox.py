"""`streamcore sandbox`: real services on this machine, to try things out with."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import click

from .output import formats, print_json, print_table
from .status import FAILED, OK

if TYPE_CHECKING:
    from ..testing.services.sandbox import Sandbox

NAMES = ("kafka", "schema-registry", "kinesis")
_service = click.Choice(NAMES)


@click.group("sandbox")
def command() -> None:
    """Start and stop a real broker, schema registry and Kinesis emulator on loopback."""


@command.command("up")
@click.argument("services", nargs=-1, type=_service)
@formats()
def up(services: tuple[str, ...], output: str) -> int:
    """Start SERVICES, or all of them; what already runs is left running."""
    from ..testing.services import sandbox

    running = sandbox.up(services or NAMES, lambda line: click.echo(f"{line} ...", err=True))
    _show(running, output)
    return OK


@command.command("down")
@formats()
def down(output: str) -> int:
    """Stop everything the sandbox runs, and remove its data."""
    from ..testing.services import sandbox

    ended = [each.name for each in sandbox.down().services]
    if output == "json":
        print_json({"stopped": ended})
    else:
        click.echo(f"Stopped {', '.join(ended)}." if ended else "Nothing was running.")
    return OK


@command.command("status")
@formats()
def status(output: str) -> int:
    """Show what runs and where; ends with status 1 if a service has died."""
    from ..testing.services import sandbox

    found = sandbox.status()
    _show(found, output)
    return FAILED if any(not each.alive for each in found.services) else OK


@command.command("logs")
@click.argument("service", type=_service)
@click.option("--lines", default=50, show_default=True, help="How many of the last lines to show.")
@click.option("--follow", is_flag=True, help="Keep showing what is added, until interrupted.")
@formats()
def logs(service: str, lines: int, follow: bool, output: str) -> int:
    """Show the end of a service's log."""
    from ..testing.services import sandbox

    path = sandbox.logs(service)
    with open(path, encoding="utf-8", errors="replace") as log:
        last = [line.rstrip("\n") for line in deque(log, maxlen=lines)]
        if output == "json":
            print_json({"service": service, "path": os.fspath(path), "lines": last})
            return OK
        for line in last:
            click.echo(line)
        while follow:
            if line := log.readline():
                click.echo(line, nl=False)
            else:
                time.sleep(0.2)
    return OK


def addresses() -> dict[str, str]:
    """Where the services of the sandbox are; empty if none was started."""
    from ..testing.services import sandbox

    return {each.name: each.address for each in sandbox.status().services}


def _show(found: Sandbox, output: str) -> None:
    if output == "json":
        services: list[dict[str, Any]] = [
            {"name": each.name, "address": each.address, "alive": each.alive, "log": each.log}
            for each in found.services
        ]
        print_json({"services": services, "environment": found.environment})
        return
    if not found.services:
        click.echo("Nothing is running. Start it: streamcore sandbox up")
        return
    rows = [
        (each.name, each.address, "running" if each.alive else "died", each.log)
        for each in found.services
    ]
    print_table(("SERVICE", "ADDRESS", "STATUS", "LOG"), rows)
    click.echo("\nTests and examples use it once this is set:")
    for name, address in found.environment.items():
        click.echo(f"  export {name}={address}")
