"""What a statement that moves data reads, found without Spark; all mistakes are told at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from .catalog import Catalog
from .errors import SqlError
from .planner.binding import bind
from .planner.inserts import sink_of
from .planner.queries import QueryReader
from .planner.sources import Scan
from .statements import CreateTable, Explain, Insert, Select, Statement, StatementSet


def reads_of(statement: Statement, reader: QueryReader, catalog: Catalog) -> list[Scan]:
    """How the tables of a statement are read; none for one that only changes the session."""
    found: list[Scan] = []
    problems: list[SqlError] = []
    for look in _looks(statement, reader, catalog, found):
        try:
            look()
        except SqlError as problem:
            problems.append(problem)
    if problems:
        raise SqlError.together(problems)
    return found


def inserts_of(statement: Statement) -> tuple[Insert, ...]:
    """The INSERTs that a statement is or explains."""
    if isinstance(statement, Explain):
        return inserts_of(statement.statement)
    if isinstance(statement, StatementSet):
        return statement.inserts
    return (statement,) if isinstance(statement, Insert) else ()


def will_be_filled(statement: CreateTable, catalog: Catalog) -> bool:
    """Whether a CREATE TABLE has a query, and makes a table to run it for."""
    is_there = statement.if_not_exists and catalog.get(catalog.path(statement.name)) is not None
    return statement.query is not None and not is_there


def _looks(
    statement: Statement, reader: QueryReader, catalog: Catalog, found: list[Scan]
) -> Iterator[Callable[[], object]]:
    def read(query: Select | Insert | CreateTable) -> None:
        assert query.query is not None
        found.extend(reader.read(query.query).scans)

    if isinstance(statement, Explain) and isinstance(statement.statement, Select):
        statement = statement.statement
    for insert in inserts_of(statement):
        yield partial(sink_of, insert, catalog)
        yield partial(read, insert)
    if isinstance(statement, Select):
        yield partial(read, statement)
    if isinstance(statement, CreateTable) and will_be_filled(statement, catalog):
        yield partial(bind, statement)
        yield partial(read, statement)
