"""Finds commands when they are asked for: core's own by module, others through their plugins."""

from __future__ import annotations

import difflib
from importlib import import_module

import click

from ..claims import OWNERS, Claim
from ..registry import load
from .output import State

BUILTIN = {
    "completion": "completion",
    "describe": "describe",
    "doctor": "doctor",
    "list-plugins": "list_plugins",
    "new-plugin": "new_plugin",
    "sandbox": "sandbox",
}


class Commands(click.Group):
    """Imports a command's module only when that command, or the list of all, is wanted."""

    def added(self, ctx: click.Context) -> list[Claim]:
        """The commands that plugins add, settled like everything else they claim."""
        state = ctx.ensure_object(State)
        if state.commands is None:
            state.commands = load(strict=False).commands
        return state.commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        active = {claim.identifier for claim in self.added(ctx) if claim.status == "active"}
        return sorted(BUILTIN.keys() | active)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if module := BUILTIN.get(cmd_name):
            found: click.Command = import_module(f".{module}", __package__).command
            return found
        for claim in self.added(ctx):
            if claim.identifier == cmd_name and claim.status == "active":
                added: click.Command = claim.factory
                return added
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise click.UsageError(self._missing(ctx, name), ctx)
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if broken := [claim for claim in self.added(ctx) if claim.status == "broken"]:
            sources = ", ".join(claim.source for claim in broken)
            formatter.write_paragraph()
            formatter.write_text(f"Commands of {sources} are missing; see 'list-plugins'.")

    def _missing(self, ctx: click.Context, name: str) -> str:
        if owner := OWNERS.get(("command", name)):
            return f"no command called '{name}'. Install it: pip install {owner}"
        known = self.list_commands(ctx)
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean '{close[0]}'?" if close else f"Commands: {', '.join(known)}"
        return f"no command called '{name}'. {hint}"
