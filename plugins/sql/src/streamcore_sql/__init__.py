"""Flink SQL statements in, Spark streaming queries out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from streamcore import Connector, Format, hookimpl

from .errors import SqlError
from .parser import parse
from .source import Source

if TYPE_CHECKING:
    import click

    from .jobs import Job
    from .session import Session

__all__ = ["Job", "Session", "Source", "SqlError", "parse"]


@hookimpl
def register_connectors() -> Iterable[type[Connector]]:
    from .connectors.blackhole import Blackhole
    from .connectors.datagen import Datagen
    from .connectors.print import Print

    return Datagen, Print, Blackhole


@hookimpl
def register_formats() -> Iterable[type[Format]]:
    from .ingestion.table_changes import TableChanges

    return (TableChanges,)


@hookimpl
def register_commands() -> Iterable[click.Command]:
    from .commands.check import check
    from .commands.infer import infer
    from .commands.jobs import jobs, stop
    from .commands.lag import lag
    from .commands.run import run
    from .commands.schema import schema
    from .commands.sql import sql
    from .commands.why import why

    return run, sql, check, infer, why, schema, jobs, stop, lag


def __getattr__(name: str) -> Any:
    if name == "Session":  # imported when asked for, so that commands which run no SQL stay quick
        from .session import Session

        return Session
    if name == "Job":
        from .jobs import Job

        return Job
    raise AttributeError(f"module 'streamcore_sql' has no attribute '{name}'")
