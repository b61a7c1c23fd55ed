"""The `streamcore` command: its own commands, those that plugins add, and how it ends.

Commands end with 0 when all is well, 1 when they found something wrong or a job failed, 2 when the
input was at fault, and 130 when they were interrupted. Stacks are shown only with --verbose.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import click

from ..errors import ClashWarning, OptionWarning, StreamcoreError
from .commands import Commands
from .output import State
from .status import BAD_INPUT, FAILED, INTERRUPTED, OK

EXIT_CODES = (
    "Exit status: 0 all is well, 1 something was found or a job failed, "
    "2 the input is at fault, 130 interrupted."
)

_NO_ARGUMENTS: type[click.UsageError] = click.exceptions.NoArgsIsHelpError


@click.command(
    cls=Commands,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="streamcore", message="%(prog)s %(version)s")
@click.option("--verbose", is_flag=True, help="Show stacks of errors, and what libraries log.")
@click.pass_obj
def cli(state: State, verbose: bool) -> None:
    """Tables in the style of Flink SQL on Spark, one plugin at a time."""
    state.verbose |= verbose


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status; never raises what a user may cause."""
    state = State()
    with warnings.catch_warnings():
        warnings.simplefilter("always", ClashWarning)
        warnings.simplefilter("always", OptionWarning)
        warnings.showwarning = _warner()
        try:
            status = cli.main(
                args=None if arguments is None else list(arguments),
                prog_name="streamcore",
                standalone_mode=False,
                obj=state,
            )
            sys.stdout.flush()
        except (KeyboardInterrupt, click.Abort):
            click.echo("Interrupted.", err=True)
            return INTERRUPTED
        except BrokenPipeError:  # whoever read our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        except _NO_ARGUMENTS as error:
            click.echo(error.format_message(), err=True)
            return BAD_INPUT
        except click.ClickException as error:
            click.echo(f"streamcore: {error.format_message()}", err=True)
            if isinstance(error, click.UsageError) and error.ctx is not None:
                click.echo(f"Run '{error.ctx.command_path} --help' to see what it takes.", err=True)
            return BAD_INPUT
        except Exception as error:
            _report(error, state.verbose)
            return error.exit_code if isinstance(error, StreamcoreError) else FAILED
    return status if isinstance(status, int) else OK


def _report(error: Exception, verbose: bool) -> None:
    if verbose:
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    elif isinstance(error, StreamcoreError):
        click.echo(f"streamcore: {error}", err=True)
    else:
        click.echo(f"streamcore: {type(error).__name__}: {error}", err=True)
        click.echo("Run the same with --verbose to see where it comes from.", err=True)


def _warner() -> Callable[..., None]:
    """Show our own warnings as sentences, each once, without a place in the code."""
    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *place: Any, **_: Any) -> None:
        text = f"streamcore: {message}\n"
        if not issubclass(category, (ClashWarning, OptionWarning)):
            text = warnings.formatwarning(message, category, *place[:2])
        if text not in shown:
            click.echo(text, err=True, nl=False)
        shown.add(text)

    return show
