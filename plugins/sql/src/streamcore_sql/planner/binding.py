"""A declared table and the plugin that moves its rows, checked against each other."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from streamcore import Connector, OptionError, OptionWarning, PluginError, StreamcoreError, Table
from streamcore.checks import check_table
from streamcore.registry import installed

from ..errors import SqlError
from ..schema import options_of, table_of
from ..source import NOWHERE, Place
from ..statements import CreateTable, Option


@dataclass(frozen=True)
class Bound:
    """A table with its connector."""

    statement: CreateTable
    connector: Connector
    notes: tuple[str, ...] = ()

    @cached_property
    def table(self) -> Table:
        return table_of(self.statement)

    @property
    def name(self) -> str:
        return self.statement.name.last

    @property
    def options(self) -> dict[str, str]:
        return options_of(self.statement)

    def check(self, *, writing: bool, place: Place = NOWHERE) -> None:
        """Raise one error with every column and key the connector cannot serve."""
        try:
            check_table(self.connector, self.table, writing=writing)
        except StreamcoreError as error:
            raise _located(error, self.statement, place) from error


def bind(statement: CreateTable, hinted: tuple[Option, ...] = (), place: Place = NOWHERE) -> Bound:
    """Build the connector; `place` is where the table is used, for errors about the use."""
    statement = with_options(statement, hinted)
    options: Mapping[str, str] = options_of(statement)
    identifier = options.get("connector")
    if identifier is None:
        hint = "Add 'connector' = '...'; 'streamcore list-plugins' shows which are installed."
        trouble = f"table '{statement.name}' has no 'connector' option"
        raise SqlError(trouble, _shown(place, statement), hint)
    rest = {key: value for key, value in options.items() if key != "connector"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OptionWarning)
        try:
            connector = installed().build("connector", identifier, rest)
        except StreamcoreError as error:
            raise _located(error, statement, place) from error
    notes = [f"table '{statement.name}': {warning.message}" for warning in caught]
    return Bound(statement, connector, tuple(dict.fromkeys(notes)))


def with_options(statement: CreateTable, changed: tuple[Option, ...]) -> CreateTable:
    """The table with options added or overridden, as an OPTIONS hint does for one use."""
    if not changed:
        return statement
    merged = {option.key: option for option in (*statement.options, *changed)}
    return replace(statement, options=tuple(merged.values()))


def _located(error: StreamcoreError, statement: CreateTable, place: Place) -> SqlError:
    """Point at the option the first problem is about, or at the use of the table."""
    by_key = {option.key.lower(): option for option in statement.options}
    told = str(error)  # core names the table itself when its columns are at fault
    trouble = told if told.startswith("table '") else f"table '{statement.name}': {told}"
    if isinstance(error, OptionError):
        known = [by_key.get(problem.key.lower()) for problem in error.problems]
        first = next((option.place for option in known if option is not None), None)
        first = first or _column_place(error, statement)
        return SqlError(trouble, first or _shown(place, statement))
    if isinstance(error, PluginError) and "connector" in by_key:
        return SqlError(trouble, by_key["connector"].place)
    return SqlError(trouble, _shown(place, statement))


def _column_place(error: OptionError, statement: CreateTable) -> Place | None:
    columns = {column.name: column.place for column in statement.columns}
    return next((columns[p.key] for p in error.problems if p.key in columns), None)


def _shown(place: Place, statement: CreateTable) -> Place:
    return statement.name.place if place is NOWHERE else place
