"""Where a statement that runs still behaves otherwise than in Flink, and how."""

from __future__ import annotations

from collections.abc import Iterator

from .statements import (
    Column,
    ComputedColumn,
    CreateTable,
    Insert,
    Set,
    Statement,
    StatementSet,
    StopJob,
)
from .typename import LONGEST, TypeName

_PRECISE = 6


def differences(statement: Statement) -> Iterator[str]:
    """What anybody who knows Flink should be told about a statement."""
    if isinstance(statement, CreateTable):
        for column in statement.columns:
            if not isinstance(column, ComputedColumn):
                yield from _of_type(column, column.type)
            elif "PROCTIME" in column.expression.text.upper():
                yield f"'{column.name}': PROCTIME() is the time the micro-batch started"
        if statement.distribution is not None:
            yield "DISTRIBUTED is kept, and changes nothing"
    elif isinstance(statement, Insert):
        if statement.on_conflict is not None:
            yield f"ON CONFLICT DO {statement.on_conflict} does nothing: a key's last row wins"
    elif isinstance(statement, StatementSet):
        for insert in statement.inserts:
            yield from differences(insert)
    elif isinstance(statement, StopJob):
        if statement.savepoint:
            yield "there are no savepoints: a job goes on from its checkpoint"
    elif isinstance(statement, Set) and statement.option is not None:
        from .settings import Settings

        yield from Settings().put(statement.option).notes


def _of_type(column: Column, kind: TypeName) -> Iterator[str]:
    if kind.name in ("CHAR", "VARCHAR", "BINARY", "VARBINARY") and kind.args[0] < LONGEST:
        yield f"'{column.name}': the length of {kind.sql()} is not enforced"
    if kind.name in ("TIMESTAMP", "TIMESTAMP_LTZ", "TIME") and kind.args[0] > _PRECISE:
        yield f"'{column.name}': {kind.sql()} keeps microseconds, nothing finer"
    for inner in (*kind.items, *(part.type for part in kind.fields)):
        yield from _of_type(column, inner)
