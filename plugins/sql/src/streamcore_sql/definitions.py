"""CREATE, ALTER and DROP: each changes the catalog whole or not at all."""

from __future__ import annotations

from .catalog import Catalog
from .errors import SqlError
from .statements import CreateFunction, CreateTable, CreateView, Drop, Statement

_DROPPED: dict[str, type[CreateTable] | type[CreateView] | type[CreateFunction]] = {
    "TABLE": CreateTable,
    "VIEW": CreateView,
    "FUNCTION": CreateFunction,
}


class Definitions:
    """Runs the statements that change a catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def run(self, statement: Statement) -> str:
        """Change the catalog, and say what was done."""
        if isinstance(statement, (CreateTable, CreateView, CreateFunction)):
            return self._create(statement)
        if isinstance(statement, Drop):
            return self._drop(statement)
        raise SqlError(f"{type(statement).__name__} cannot be run yet", statement.place)

    def _create(self, entry: CreateTable | CreateView | CreateFunction) -> str:
        made = self._catalog.add(entry)
        return f"'{entry.name}' {'created' if made else 'exists'}"

    def _drop(self, statement: Drop) -> str:
        gone = self._catalog.drop(
            statement.name,
            _DROPPED[statement.kind],
            if_exists=statement.if_exists,
            temporary=statement.temporary,
        )
        return f"'{statement.name}' {'dropped' if gone else 'does not exist'}"
