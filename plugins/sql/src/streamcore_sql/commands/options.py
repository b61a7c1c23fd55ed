"""Options that several commands share, and the session they ask for."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click
from streamcore.cli.output import State, formats

if TYPE_CHECKING:
    from ..session import Session


@dataclass(frozen=True)
class Given:
    """What the options of a command said."""

    catalog: Path | None
    checkpoint: str | None
    settings: Sequence[tuple[str, str]]
    variables: Sequence[tuple[str, str]]
    env_files: Sequence[Path]
    secret_files: Sequence[Path]
    master: str | None
    verbose: bool

    def session(self, **more: Any) -> Session:
        """A session as asked for; Spark is not started yet."""
        from ..session import Session
        from ..statements import Option
        from ..variables import read_env_file

        variables: dict[str, str] = {}
        secrets: dict[str, str] = {}
        for path in self.env_files:
            variables |= read_env_file(path)
        for path in self.secret_files:
            secrets |= read_env_file(path)
        session = Session(
            catalog=self.catalog,
            checkpoint=self.checkpoint,
            variables=variables | dict(self.variables),
            secrets=secrets,
            **more,
        )
        for key, value in self.settings:
            session.settings.put(Option(key, value))
        if self.master:
            session.settings.put(Option("spark.master", self.master))
        return session

    def start_spark(
        self, session: Session, name: str, say: Callable[[str], None] = lambda text: None
    ) -> None:
        """Start Spark, quietly unless --verbose; `say` is told first, and where its log is."""
        from ..quiet import quiet_start
        from ..settings import state_folder

        log = None if self.verbose else state_folder() / "logs" / f"{quote(name, safe='')}.log"
        say("starting Spark" + (f"; its log is {log}" if log else ""))
        with quiet_start(log):
            session.spark  # noqa: B018 - asking for it starts it


def session_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a session, received as `given`, and those of `formats`."""

    @click.option(
        "--catalog",
        type=click.Path(file_okay=False, path_type=Path),
        help="Keep tables in this folder, one SQL file each.",
    )
    @click.option("--checkpoint", metavar="DIR", help="Keep checkpoints in this folder.")
    @click.option(
        "--set", "settings", metavar="KEY=VALUE", multiple=True, callback=pairs, help="SET a key."
    )
    @click.option(
        "--var",
        "variables",
        metavar="NAME=VALUE",
        multiple=True,
        callback=pairs,
        help="Fill in ${NAME}; the environment does too.",
    )
    @click.option(
        "--env-file",
        "env_files",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A file of NAME=VALUE lines that fill in ${NAME}.",
    )
    @click.option(
        "--secrets",
        "secret_files",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A file of NAME=VALUE lines that fill in ${secret_values.NAME}.",
    )
    @click.option("--master", metavar="URL", help="Where Spark runs, such as spark://host:7077.")
    @click.pass_context
    @functools.wraps(function)
    def command(ctx: click.Context, /, *args: Any, **options: Any) -> Any:
        names = [name for name in Given.__dataclass_fields__ if name != "verbose"]
        verbose = ctx.ensure_object(State).verbose
        given = Given(**{name: options.pop(name) for name in names}, verbose=verbose)
        return function(*args, given=given, **options)

    return formats()(command)


def pairs(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> Any:
    """Read `KEY=VALUE` options."""
    found = []
    for value in values:
        key, equals, rest = value.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"'{value}' is not KEY=VALUE", ctx, parameter)
        found.append((key.strip(), rest))
    return found


WEB_PORT = 8490


def place(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check `[HOST:]PORT`."""
    from ..monitoring.serving import address

    try:
        if value is not None:
            address(value)
    except ValueError as error:
        hint = " Write the script before '--web'." if parameter.name == "web" else ""
        raise click.BadParameter(f"{error}.{hint}", ctx, parameter) from None
    return value


def read_script(path: str) -> tuple[str, str]:
    """The text of a script and its name; `-` is standard input."""
    if path == "-":
        return sys.stdin.read(), "stdin"
    try:
        return Path(path).read_text(encoding="utf-8"), Path(path).name
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise click.UsageError(f"cannot read '{path}': {reason}") from None
