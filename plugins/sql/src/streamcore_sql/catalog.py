"""What a name means: tables, views and functions by catalog, database and name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from .errors import SqlError, did_you_mean
from .statements import CreateFunction, CreateTable, CreateView, Name

DEFAULT_CATALOG = "default_catalog"
DEFAULT_DATABASE = "default_database"

Entry = CreateTable | CreateView | CreateFunction


class Path(NamedTuple):
    """A full name, and whether it is a function's: functions have names of their own."""

    catalog: str
    database: str
    name: str
    is_function: bool = False

    def __str__(self) -> str:
        return ".".join(self[:3])


class Store(Protocol):
    """Keeps entries; forgets none when it fails."""

    def get(self, path: Path) -> Entry | None: ...
    def put(self, path: Path, entry: Entry) -> None: ...
    def remove(self, path: Path) -> None: ...
    def paths(self) -> Iterable[Path]: ...


class MemoryStore:
    """Keeps entries until the session ends."""

    def __init__(self) -> None:
        self._entries: dict[Path, Entry] = {}

    def get(self, path: Path) -> Entry | None:
        return self._entries.get(path)

    def put(self, path: Path, entry: Entry) -> None:
        self._entries[path] = entry

    def remove(self, path: Path) -> None:
        self._entries.pop(path, None)

    def paths(self) -> Iterable[Path]:
        return tuple(self._entries)


class OverlayStore(MemoryStore):
    """Reads from another store and keeps changes to itself: for runs that must change nothing."""

    def __init__(self, below: Store) -> None:
        super().__init__()
        self._below = below
        self._removed: set[Path] = set()

    def get(self, path: Path) -> Entry | None:
        return super().get(path) or (None if path in self._removed else self._below.get(path))

    def put(self, path: Path, entry: Entry) -> None:
        self._removed.discard(path)
        super().put(path, entry)

    def remove(self, path: Path) -> None:
        self._removed.add(path)
        super().remove(path)

    def paths(self) -> Iterable[Path]:
        return {*super().paths(), *self._below.paths()} - self._removed

    def settle(self) -> None:
        """Hand all changes to the store below."""
        for path in self._removed:
            self._below.remove(path)
        for path in super().paths():
            self._below.put(path, self._entries[path])


class Catalog:
    """Looks names up, temporary entries first."""

    def __init__(self, store: Store | None = None) -> None:
        self._kept: Store = store or MemoryStore()
        self._temporary: Store = MemoryStore()
        self.current = (DEFAULT_CATALOG, DEFAULT_DATABASE)

    # --- names -----------------------------------------------------------------------

    def path(self, name: Name, *, is_function: bool = False) -> Path:
        """The full name a name stands for."""
        missing = max(3 - len(name.parts), 0)
        catalog, database, last = (*self.current[:missing], *name.parts)
        if catalog != DEFAULT_CATALOG:
            hint = f"There is one catalog, '{DEFAULT_CATALOG}'."
            raise SqlError(f"no catalog called '{catalog}'", name.place, hint)
        return Path(catalog, database, last, is_function)

    def use(self, name: Name, *, catalog: bool) -> None:
        """Make a database the one that names without one belong to."""
        parts = name.parts if catalog or len(name.parts) > 1 else (DEFAULT_CATALOG, *name.parts)
        if parts[0] != DEFAULT_CATALOG:
            hint = f"There is one catalog, '{DEFAULT_CATALOG}'."
            raise SqlError(f"no catalog called '{parts[0]}'", name.place, hint)
        self.current = (parts[0], parts[1] if len(parts) > 1 else DEFAULT_DATABASE)

    def databases(self) -> list[str]:
        return sorted({DEFAULT_DATABASE, self.current[1], *(p.database for p in self._paths())})

    # --- reading -----------------------------------------------------------------------

    def get(self, path: Path) -> Entry | None:
        return self._temporary.get(path) or self._kept.get(path)

    def find(self, name: Name) -> CreateTable | CreateView:
        """The table or view, or an error that names the nearest one."""
        path = self.path(name)
        found = self.get(path)
        if isinstance(found, (CreateTable, CreateView)):
            return found
        raise SqlError(f"no table called '{name}'", name.place, self._nearest(path))

    def list(self, kind: type[Entry] | tuple[type[Entry], ...], database: str = "") -> list[str]:
        """The names of a database, sorted."""
        place = (self.current[0], database or self.current[1])
        paths = [path for path in self._paths() if path[:2] == place]
        return sorted(path.name for path in paths if isinstance(self._readable(path), kind))

    def functions(self) -> Sequence[Path]:
        """Every function of every database, none of them read."""
        return sorted(path for path in self._paths() if path.is_function)

    def _readable(self, path: Path) -> Entry | None:
        """An entry for a list: one that cannot be read is listed, and told of when it is used."""
        try:
            return self.get(path)
        except SqlError:
            name = Name((path.name,))
            return CreateFunction(name, "") if path.is_function else CreateTable(name)

    def _paths(self) -> set[Path]:
        return {*self._kept.paths(), *self._temporary.paths()}

    def _nearest(self, path: Path) -> str:
        here = [p.name for p in self._paths() if p[:2] == path[:2] and not p.is_function]
        if hint := did_you_mean(path.name, here):
            return hint
        elsewhere = [str(p) for p in self._paths() if p.name == path.name and not p.is_function]
        if elsewhere:
            return f"There is '{min(elsewhere)}'."
        return f"Tables here: {', '.join(sorted(here))}." if here else "No table has been created."

    # --- changing ----------------------------------------------------------------------

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep changes back until the block ends well; if it fails, there were none."""
        below, above = self._kept, OverlayStore(self._kept)
        self._kept = above
        try:
            yield
            above.settle()
        finally:
            self._kept = below

    def add(self, entry: Entry) -> bool:
        """Keep an entry; False if IF NOT EXISTS found one. Nothing changes when it fails."""
        is_function = isinstance(entry, CreateFunction)
        path = self.path(entry.name, is_function=is_function)
        store = self._temporary if entry.temporary else self._kept
        existing = store.get(path)
        if existing is not None and not getattr(entry, "or_replace", False):
            if entry.if_not_exists:
                return False
            hint = "Add IF NOT EXISTS, or drop it first."
            raise SqlError(f"{kind_of(existing)} '{path.name}' exists", entry.name.place, hint)
        if existing is not None and type(existing) is not type(entry):
            trouble = f"'{path.name}' is a {kind_of(existing)}, not a {kind_of(entry)}"
            raise SqlError(trouble, entry.name.place, "Drop it first, or choose another name.")
        store.put(path, entry)
        return True

    def put(self, path: Path, entry: Entry) -> None:
        """Keep a changed entry under the path it had."""
        store = self._temporary if self._temporary.get(path) is not None else self._kept
        store.put(path, entry)

    def rename(self, old: Path, new: Name, entry: CreateTable) -> None:
        """Move an entry; its name inside says the new one."""
        target = self.path(new)
        store = self._temporary if self._temporary.get(old) is not None else self._kept
        if store.get(target) is not None:
            raise SqlError(f"table '{target.name}' exists", new.place, "Choose another name.")
        store.put(target, entry)
        store.remove(old)

    def drop(
        self, name: Name, kind: type[Entry], *, if_exists: bool = False, temporary: bool = False
    ) -> bool:
        """Forget an entry; False if IF EXISTS found none."""
        path = self.path(name, is_function=kind is CreateFunction)
        in_temporary = self._temporary.get(path) is not None
        store = self._temporary if temporary or in_temporary else self._kept
        found = store.get(path)
        if found is None:
            if if_exists:
                return False
            word = _WORDS[kind]
            prefix = "temporary " if temporary else ""
            raise SqlError(f"no {prefix}{word} called '{name}'", name.place, self._nearest(path))
        if not isinstance(found, kind):
            hint = f"Write DROP {kind_of(found).upper()}."
            trouble = f"'{name}' is a {kind_of(found)}, not a {_WORDS[kind]}"
            raise SqlError(trouble, name.place, hint)
        store.remove(path)
        return True


_WORDS: dict[type[Entry], str] = {
    CreateTable: "table",
    CreateView: "view",
    CreateFunction: "function",
}


def kind_of(entry: Entry) -> str:
    """'table', 'view' or 'function'."""
    return _WORDS[type(entry)]
