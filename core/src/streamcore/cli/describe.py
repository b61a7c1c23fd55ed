"""`streamcore describe`: options, capabilities, metadata columns and an example of any plugin."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from .. import markdown
from ..description import Description, describe
from ..registry import KINDS, Registry, load
from .output import formats, print_json, print_table
from .status import OK


def _identifiers(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    names = load(strict=False).names(ctx.params.get("kind") or "")
    return [CompletionItem(name) for name in names if name.startswith(typed)]


@click.command("describe")
@click.argument("kind", required=False, type=click.Choice(sorted(KINDS)))
@click.argument("identifier", required=False, shell_complete=_identifiers)
@formats("markdown")
def command(kind: str | None, identifier: str | None, output: str) -> int:
    """Describe a plugin: everything it can be told, and an example that works.

    Without IDENTIFIER, lists the plugins of a KIND; without KIND, all of them.
    """
    registry = load(strict=False)
    if kind is None or identifier is None:
        _list(_all(registry, kind), output)
    else:
        _show(describe(registry, kind, identifier), output)
    return OK


def _all(registry: Registry, kind: str | None) -> list[Description]:
    wanted = [key for key in sorted(registry.active) if kind in (None, key[0])]
    return [describe(registry, *key) for key in wanted]


def _list(found: list[Description], output: str) -> None:
    if output == "json":
        print_json([each.to_json() for each in found])
    elif output == "markdown":
        click.echo("\n".join(markdown.page(each) for each in found), nl=False)
    else:
        rows = [(each.kind, each.identifier, each.summary) for each in found]
        print_table(("KIND", "IDENTIFIER", "WHAT IT IS"), rows)


def _show(facts: Description, output: str) -> None:
    if output == "json":
        print_json(facts.to_json())
    elif output == "markdown":
        click.echo(markdown.page(facts), nl=False)
    else:
        _print(facts)


def _print(facts: Description) -> None:
    click.secho(f"{facts.kind} {facts.identifier}", bold=True, nl=False)
    click.echo(f"  ({facts.distribution} {facts.version})" if facts.distribution else "")
    click.echo(facts.description)
    if facts.capabilities:
        click.echo("\n" + markdown.capabilities(facts))
    click.secho("\nExample", bold=True)
    click.echo(facts.example)
    if facts.options:
        click.secho("\nOptions", bold=True)
        rows = [
            (
                each.key,
                each.type,
                "required" if each.required else each.default,
                each_doc.replace("`", ""),
            )
            for each in facts.options
            if (each_doc := markdown.explained(each))
        ]
        print_table(("OPTION", "TYPE", "DEFAULT", "MEANING"), rows, ("cyan",))
    if facts.metadata:
        click.secho("\nMetadata columns", bold=True)
        columns = [
            (each.key, each.type, "R/W" if each.writable else "R", each.description)
            for each in facts.metadata
        ]
        print_table(("KEY", "TYPE", "ACCESS", "MEANING"), columns, ("cyan",))
