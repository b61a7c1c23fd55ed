"""`streamcore completion`: the script that completes commands, kinds and identifiers."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .output import formats, print_json
from .status import OK

_HOW = {
    "bash": 'eval "$(streamcore completion bash)"  in ~/.bashrc',
    "zsh": 'eval "$(streamcore completion zsh)"  in ~/.zshrc',
    "fish": "streamcore completion fish | source  in ~/.config/fish/config.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(sorted(_HOW)))
@formats()
@click.pass_context
def command(ctx: click.Context, shell: str, output: str) -> int:
    """Print the completion script of a shell.

    Put this into the shell's start-up file: eval "$(streamcore completion bash)", or for fish:
    streamcore completion fish | source
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "streamcore", "_STREAMCORE_COMPLETE").source()
    if output == "json":
        print_json({"shell": shell, "script": script, "install": _HOW[shell]})
    else:
        click.echo(script)
    return OK
