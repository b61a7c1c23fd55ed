"""How commands show results: text for people, JSON for programs."""

from __future__ import annotations

import functools
import json
import logging
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from ..claims import Claim

_WIDE = 200  # where no terminal limits it
_COLOURS = {"ok": "green", "running": "green", "note": "cyan", "problem": "red", "died": "red"}


@dataclass
class State:
    """What all commands share while one of them runs."""

    verbose: bool = False
    commands: list[Claim] | None = None
    """What plugins add; loaded when it is first asked for."""


_NOWHERE = logging.NullHandler()


def formats(*more: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command `--format`, `--json` and `--verbose`; it receives the format as `output`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--format",
            "output",
            type=click.Choice(["text", "json", *more]),
            default="text",
            help="How to show the result.",
            show_default=True,
        )
        @click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
        @click.option(
            "--verbose", is_flag=True, help="Show stacks of errors, and what libraries log."
        )
        @click.pass_context
        @functools.wraps(function)
        def command(
            ctx: click.Context, /, *args: Any, as_json: bool, verbose: bool, **kwargs: Any
        ) -> Any:
            ctx.ensure_object(State).verbose |= verbose
            if not verbose:  # a command tells its failure itself; logs go where they were sent
                logging.getLogger("streamcore").addHandler(_NOWHERE)
            if as_json:
                kwargs["output"] = "json"
            return function(*args, **kwargs)

        return command

    return decorate


def print_json(value: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_columns(head: Sequence[str], rows: Sequence[Sequence[str]], colours: Any = ()) -> None:
    """Print aligned columns, each line as long as it must be; words in `colours` get theirs.

    For output that is often read by grep, and that should not wait for a library to load.
    """
    widths = [max(len(row[n]) for row in [head, *rows]) for n in range(len(head) - 1)] + [0]
    for row in [head, *rows]:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        styled = [
            click.style(cell, fg=dict(colours).get(text), bold=row is head)
            for cell, text in zip(cells, row, strict=True)
        ]
        click.echo("  ".join(styled))


def print_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], styles: Sequence[str] = ()
) -> None:
    """Print a table that wraps its texts to fit this terminal; columns get the styles in order."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name, style in zip(head, [*styles, *[""] * len(head)], strict=False):
        table.add_column(name, style=style, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, _COLOURS.get(cell, "")) for cell in row))
    Console(width=width, highlight=False).print(table)
