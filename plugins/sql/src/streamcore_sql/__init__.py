"""Flink SQL statements in, Spark streaming queries out."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from streamcore import Connector, Format, hookimpl

if TYPE_CHECKING:
    import click

    from .errors import SqlError
    from .jobs import Job
    from .parser import parse
    from .session import Session
    from .source import Source

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


_HOMES = {
    "Job": "jobs",
    "Session": "session",
    "Source": "source",
    "SqlError": "errors",
    "parse": "parser",
}


def __getattr__(name: str) -> Any:
    """Import it when asked for: commands and workers that run no SQL start without it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'streamcore_sql' has no attribute '{name}'")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
