"""What is wrong with a script as far as can be told without Spark: all of it, and at once.

Statements run in a session that keeps nothing, so that each sees the tables, views and settings of
those before it. A definition that failed, or whose columns only Spark can tell, is not held
against what uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from streamcore import StreamcoreError

from .catalog import Path
from .cursor import SqlText
from .errors import SqlError
from .planner.binding import bind
from .planner.inserts import sink_of
from .planner.queries import QueryReader
from .session import Session
from .statements import (
    CreateTable,
    CreateView,
    Explain,
    Insert,
    Name,
    Select,
    Statement,
    StatementSet,
)


def check(statements: Iterable[Statement], session: Session) -> list[str]:
    """Raise one error with every problem; return what is wrong with tables that nothing uses."""
    look = _Look(session)
    for statement in statements:
        look.at(statement)
    if look.problems:
        raise SqlError.together(sorted(look.problems, key=lambda each: each.place.start))
    return look.unused()


class _Look:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._doubtful: set[str] = set()
        self._declared: dict[Path, None] = {}
        self._used: set[Path] = set()
        self._problems: dict[str, SqlError] = {}

    @property
    def problems(self) -> list[SqlError]:
        return list(self._problems.values())

    def at(self, statement: Statement) -> None:
        excused = any(_names(name, statement.place.text) for name in self._doubtful)
        found: list[SqlError] = []
        try:
            self._try(statement)
        except SqlError as error:
            found.extend(error.problems)
        except StreamcoreError as error:
            found.append(SqlError(str(error), statement.place))
        if isinstance(statement, (CreateTable, CreateView)):
            unknown = isinstance(statement, CreateTable) and statement.query is not None
            if found or excused or unknown:
                self._doubt(statement.name)
            else:
                self._declared[self._session.catalog.path(statement.name)] = None
        if not excused:
            for each in found:  # a table is as wrong the second time it is used
                about_table = each.trouble.startswith("table '")
                self._problems.setdefault(each.trouble if about_table else str(each), each)

    def unused(self) -> list[str]:
        """Options are checked where a table is used, as Flink does; of the others it is said."""
        notes = []
        for path in self._declared:
            table = self._session.catalog.get(path)
            if path in self._used or not isinstance(table, CreateTable):
                continue
            try:
                if any(option.key == "connector" for option in table.options):
                    bind(table)
            except SqlError as error:
                notes.append(f"{error.trouble} (nothing here uses the table)")
        return notes

    def _doubt(self, name: Name) -> None:
        """Let the name be known from here on, whatever became of its definition."""
        self._doubtful.add(name.last)
        path = self._session.catalog.path(name)
        if self._session.catalog.get(path) is None:
            self._session.catalog.put(path, CreateTable(Name((name.last,))))

    # --- statements ---------------------------------------------------------------------

    def _try(self, statement: Statement) -> None:
        if isinstance(statement, Explain) and isinstance(
            statement.statement, (Select, Insert, StatementSet)
        ):
            statement = statement.statement
        if isinstance(statement, Select):
            self._read(statement.query)
        elif isinstance(statement, (Insert, StatementSet)):
            self._inserts([statement] if isinstance(statement, Insert) else statement.inserts)
        elif isinstance(statement, CreateTable) and statement.query is not None:
            self._create_as(statement, statement.query)
        else:
            self._session.run_statement(statement)

    def _inserts(self, inserts: Iterable[Insert]) -> None:
        problems: list[SqlError] = []
        for insert in inserts:
            try:
                self._used.add(self._session.catalog.path(insert.table))
                sink_of(insert, self._session.catalog)
            except SqlError as problem:
                problems.append(problem)
            try:
                self._read(insert.query)
            except SqlError as problem:
                problems.append(problem)
        if problems:
            raise SqlError.together(problems)

    def _read(self, query: SqlText) -> None:
        settings = self._session.settings
        reader = QueryReader(
            self._session.catalog, batch_only=settings.get("execution.runtime-mode") == "batch"
        )
        for read in reader.read(query).scans:
            self._used.add(self._session.catalog.path(read.bound.statement.name))

    def _create_as(self, statement: CreateTable, query: SqlText) -> None:
        catalog = self._session.catalog
        if statement.if_not_exists and catalog.get(catalog.path(statement.name)):
            return
        problems: list[SqlError] = []
        for attempt in (lambda: bind(statement), lambda: self._read(query)):
            try:
                attempt()
            except SqlError as problem:
                problems.append(problem)
        if problems:
            raise SqlError.together(problems)
        self._session.run_statement(replace(statement, query=None))


def _names(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
