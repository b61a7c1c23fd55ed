"""A catalog in a folder: one SQL file per table, made to be read and versioned."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path as FilePath
from urllib.parse import quote, unquote

from .catalog import DEFAULT_CATALOG, Entry, Path
from .errors import SqlError
from .kept_text import kept_text
from .statements import CreateFunction, CreateTable, CreateView, Name, Statement

_TABLE, _FUNCTION = ".sql", ".function.sql"
Parse = Callable[[str, str], list[Statement]]


class DirectoryStore:
    """Keeps each entry in `<folder>/<database>/<name>.sql`, its variables not filled in."""

    def __init__(self, folder: FilePath, parse: Parse) -> None:
        self._folder, self._parse = folder, parse
        self._read: dict[FilePath, tuple[int, Entry]] = {}
        if folder.exists() and not folder.is_dir():
            raise SqlError(f"catalog '{folder}' is a file; name a folder")

    def get(self, path: Path) -> Entry | None:
        file = self._file(path)
        try:
            changed = file.stat().st_mtime_ns
        except FileNotFoundError:
            return None
        known = self._read.get(file)
        if known is None or known[0] != changed:
            known = self._read[file] = (changed, self._load(file, path))
        return known[1]

    def put(self, path: Path, entry: Entry) -> None:
        file = self._file(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        text = kept_text(entry).rstrip().rstrip(";") + ";\n"
        handle, draft = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".draft")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            os.chmod(draft, 0o600)  # options may hold a password somebody did not make a variable
            os.replace(draft, file)
        except BaseException:
            os.unlink(draft)
            raise

    def remove(self, path: Path) -> None:
        self._file(path).unlink(missing_ok=True)

    def paths(self) -> Iterable[Path]:
        for file in sorted(self._folder.glob(f"*/*{_TABLE}")):
            is_function = file.name.endswith(_FUNCTION)
            name = unquote(file.name.removesuffix(_FUNCTION if is_function else _TABLE))
            yield Path(DEFAULT_CATALOG, unquote(file.parent.name), name, is_function)

    def _file(self, path: Path) -> FilePath:
        ending = _FUNCTION if path.is_function else _TABLE
        return self._folder / _safe(path.database) / (_safe(path.name) + ending)

    def _load(self, file: FilePath, path: Path) -> Entry:
        shown = f"{file.parent.name}/{file.name}"
        statements = self._parse(file.read_text(encoding="utf-8"), shown)
        entry = statements[0] if len(statements) == 1 else None
        if not isinstance(entry, (CreateTable, CreateView, CreateFunction)):
            raise SqlError(f"catalog file '{shown}' does not hold one CREATE statement")
        return replace(entry, name=Name((path.name,), place=entry.name.place))


def _safe(name: str) -> str:
    """A file name that stands for any name, and never leaves the folder."""
    text = quote(name, safe=" $+,;=@^()[]{}")
    return "%2E" + text[1:] if text.startswith(".") else text
