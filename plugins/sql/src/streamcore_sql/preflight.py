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
from .errors import SqlError
from .planner.binding import bind
from .planner.sources import Scan
from .reading import inserts_of, will_be_filled
from .session import Session
from .statements import CreateTable, CreateView, Name, Statement, needs_spark


def check(statements: Iterable[Statement], session: Session) -> list[str]:
    """Raise one error with every problem; return what is wrong with tables that nothing uses."""
    look = _Look(session)
    for statement in statements:
        look.at(statement)
    if look.problems:
        raise SqlError.together(sorted(look.problems, key=lambda each: each.place.start))
    return look.unused()


def reads(statements: Iterable[Statement], session: Session) -> list[Scan]:
    """How the tables of a script are read, as far as its statements can be understood."""
    look = _Look(session)
    for statement in statements:
        look.at(statement)
    return look.reads


class _Look:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._doubtful: set[str] = set()
        self._declared: dict[Path, None] = {}
        self._used: set[Path] = set()
        self.reads: list[Scan] = []
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
        catalog = self._session.catalog
        self._used.update(catalog.path(insert.table) for insert in inserts_of(statement))
        for read in self._session.look_at(statement):
            self._used.add(catalog.path(read.bound.statement.name))
            self.reads.append(read)
        if isinstance(statement, CreateTable) and will_be_filled(statement, catalog):
            self._session.run_statement(replace(statement, query=None))
        elif not needs_spark(statement):
            self._session.run_statement(statement)


def _names(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
