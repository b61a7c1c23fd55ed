"""SHOW and DESCRIBE."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .catalog import Catalog
from .errors import SqlError
from .jobs import Job
from .render import create_table, create_view
from .results import Listing, Text
from .schema import primary_key
from .statements import (
    Column,
    ComputedColumn,
    CreateFunction,
    CreateTable,
    CreateView,
    Describe,
    MetadataColumn,
    Show,
)
from .view_columns import view_columns

_COLUMNS = ("name", "type", "null", "key", "extras", "watermark")


def show(statement: Show, catalog: Catalog, jobs: Sequence[Job]) -> Listing | Text:
    """Answer a SHOW statement."""
    what, name = statement.what, statement.name
    if what.startswith("CREATE"):
        return _show_create(statement, catalog)
    if what == "COLUMNS":
        assert name is not None
        rows = describe(Describe(name), catalog).rows
        return Listing(_COLUMNS, [row for row in rows if _matches(str(row[0]), statement)])
    if what == "JOBS":
        listed = [(job.id, job.name, job.status) for job in jobs]
        return Listing(("job id", "job name", "status"), listed)
    if what == "CATALOGS":
        return _names("catalog name", [catalog.current[0]], statement)
    if what == "DATABASES":
        return _names("database name", catalog.databases(), statement)
    if what == "CURRENT CATALOG":
        return _names("current catalog name", [catalog.current[0]], statement)
    if what == "CURRENT DATABASE":
        return _names("current database name", [catalog.current[1]], statement)
    database = name.last if name else ""
    if what == "VIEWS":
        return _names("view name", catalog.list(CreateView, database), statement)
    if what in ("FUNCTIONS", "USER FUNCTIONS"):
        return _names("function name", catalog.list(CreateFunction, database), statement)
    return _names("table name", catalog.list((CreateTable, CreateView), database), statement)


def describe(statement: Describe, catalog: Catalog) -> Listing:
    """The columns of a table, as they were declared, or of a view, as far as they are known."""
    entry = catalog.find(statement.name)
    if isinstance(entry, CreateView):
        columns = view_columns(entry, catalog)
        return Listing(_COLUMNS, [(name, kind, "true", "", "", "") for name, kind in columns])
    keys = primary_key(entry)
    return Listing(_COLUMNS, [_described(column, keys, entry) for column in entry.columns])


def _described(column: Column, keys: tuple[str, ...], table: CreateTable) -> tuple[object, ...]:
    kind, null, extras = "", "true", ""
    if isinstance(column, ComputedColumn):
        extras = f"AS {column.expression}"
    else:
        kind = column.type.sql().removesuffix(" NOT NULL")
        null = "true" if column.type.nullable and column.name not in keys else "false"
    if isinstance(column, MetadataColumn):
        extras = "METADATA" + (f" FROM '{column.key}'" if column.key != column.name else "")
        extras += " VIRTUAL" if column.virtual else ""
    key = f"PRI({', '.join(keys)})" if column.name in keys else ""
    mark = table.watermark
    watermark = str(mark.expression) if mark and mark.column.parts == (column.name,) else ""
    return column.name, kind, null, key, extras, watermark


def _show_create(statement: Show, catalog: Catalog) -> Text:
    assert statement.name is not None
    entry = catalog.find(statement.name)
    wanted = CreateTable if statement.what == "CREATE TABLE" else CreateView
    if not isinstance(entry, wanted):
        other = "VIEW" if isinstance(entry, CreateView) else "TABLE"
        hint = f"Write SHOW CREATE {other}."
        raise SqlError(f"'{statement.name}' is a {other.lower()}", statement.name.place, hint)
    if isinstance(entry, CreateView):
        return Text(create_view(entry))
    return Text(create_table(entry, mask=True))


def _names(title: str, names: Iterable[str], statement: Show) -> Listing:
    return Listing((title,), [(name,) for name in names if _matches(name, statement)])


def _matches(name: str, statement: Show) -> bool:
    """LIKE as in SQL: `%` for any text, `_` for one character."""
    if statement.like is None:
        return True
    pieces = {"%": ".*", "_": "."}
    pattern = "".join(pieces.get(c, re.escape(c)) for c in statement.like)
    return (re.fullmatch(pattern, name) is not None) != statement.not_like
