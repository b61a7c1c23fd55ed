"""`streamcore list-plugins`: what is installed, what it provides, and what is wrong with it."""

from __future__ import annotations

import click

from ..registry import KINDS, load
from .output import formats, print_columns, print_json
from .status import FAILED, OK

COLUMNS = ("kind", "identifier", "status", "distribution", "version", "reason")
WRONG = {"shadowed", "broken", "incompatible"}
_COLOURS = {
    "active": "green",
    "shadowed": "yellow",
    "blocked": "cyan",
    "broken": "red",
    "incompatible": "red",
}
_UNKNOWN = {"kind": "?", "reason": ""}


@click.command("list-plugins")
@click.option("--kind", type=click.Choice([*sorted(KINDS), "command"]), help="Show one kind only.")
@formats()
def command(kind: str | None, output: str) -> int:
    """List plugins, clashes and broken installs.

    Ends with status 1 if anything is shadowed, broken or incompatible, so that a deployment can
    refuse to go on.
    """
    registry = load(strict=False)
    every = registry.claims + registry.commands
    claims = [claim for claim in every if kind in (None, claim.kind) or not claim.kind]
    if output == "json":
        print_json([{name: getattr(claim, name) for name in COLUMNS} for claim in claims])
    else:
        rows = [
            [str(getattr(claim, name)) or _UNKNOWN[name] for name in COLUMNS] for claim in claims
        ]
        print_columns([name.upper() for name in COLUMNS], rows, _COLOURS)
    return FAILED if any(claim.status in WRONG for claim in claims) else OK
