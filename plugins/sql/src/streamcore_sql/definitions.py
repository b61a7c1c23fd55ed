"""CREATE, ALTER and DROP: each changes the catalog whole or not at all."""

from __future__ import annotations

from dataclasses import replace

from .alterations import altered
from .catalog import DEFAULT_DATABASE, Catalog, Entry, kind_of
from .checks import problems_of
from .errors import SqlError
from .likeness import resolve_like
from .source import NOWHERE
from .statements import (
    AlterTable,
    CreateFunction,
    CreateTable,
    CreateView,
    Drop,
    Name,
    RenameTable,
)
from .user_functions import find

_DROPPED: dict[str, type[Entry]] = {
    "TABLE": CreateTable,
    "VIEW": CreateView,
    "FUNCTION": CreateFunction,
}


class Definitions:
    """Runs the statements that change a catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def create(self, entry: Entry) -> str:
        """Check an entry and keep it."""
        if isinstance(entry, CreateTable) and entry.like is not None:
            entry = self._resolved(entry)
        elif isinstance(entry, CreateView):
            self._check_view(entry)
            if self._catalog.current[1] != DEFAULT_DATABASE:
                from .full_names import spelt_out

                entry = spelt_out(entry, self._catalog)
        elif isinstance(entry, CreateFunction):
            find(entry)
        made = self._catalog.add(entry)
        return f"{kind_of(entry)} '{entry.name}' {'created' if made else 'already exists'}"

    def drop(self, statement: Drop) -> str:
        gone = self._catalog.drop(
            statement.name,
            _DROPPED[statement.kind],
            if_exists=statement.if_exists,
            temporary=statement.temporary,
        )
        word = statement.kind.lower()
        return f"{word} '{statement.name}' {'dropped' if gone else 'does not exist'}"

    def alter(self, statement: AlterTable) -> str:
        path = self._catalog.path(statement.name)
        if statement.if_exists and self._catalog.get(path) is None:
            return f"table '{statement.name}' does not exist"
        table = self._catalog.find(statement.name)
        if not isinstance(table, CreateTable):
            hint = "Create it again with CREATE OR REPLACE VIEW."
            raise SqlError(f"'{statement.name}' is a view", statement.name.place, hint)
        if isinstance(statement.action, RenameTable):
            new = statement.action.name
            renamed = replace(table, name=Name((new.last,), place=new.place), place=NOWHERE)
            self._catalog.rename(path, new, renamed)
            return f"table '{statement.name}' renamed to '{new}'"
        self._catalog.put(path, altered(table, statement.action))
        return f"table '{statement.name}' altered"

    def _resolved(self, table: CreateTable) -> CreateTable:
        assert table.like is not None
        base = self._catalog.find(table.like.table)
        if not isinstance(base, CreateTable):
            raise SqlError(f"'{base.name}' is a view, not a table", table.like.place)
        resolved = resolve_like(table, base)
        if problems := list(problems_of(resolved)):
            raise SqlError.together(problems)
        return resolved

    def _check_view(self, view: CreateView) -> None:
        """Refuse a view that cannot be read, names no table, or would be made of itself."""
        from .rewrite import rewrite

        own = self._catalog.path(view.name)

        def lookup(parts: tuple[str, ...]) -> CreateTable | CreateView | None:
            path = self._catalog.path(Name(parts))
            found = view if path == own and view.or_replace else self._catalog.get(path)
            return found if isinstance(found, (CreateTable, CreateView)) else None

        problems = []
        for ref in rewrite(view.query, lookup=lookup, streaming=False).tables:
            try:
                self._catalog.find(Name(ref.name, place=ref.place))
            except SqlError as problem:
                problems.append(problem)
        if problems:
            raise SqlError.together(problems)
