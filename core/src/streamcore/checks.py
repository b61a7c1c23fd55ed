"""Checks a table against its connector before anything is read or written."""

from __future__ import annotations

from collections.abc import Iterator

from .api import Connector
from .errors import OptionError, Problem
from .rows import castable
from .table import ROW_KIND, Column, MetadataKey, Table, is_physical
from .types import TypeTextError, arrow_field


def check_table(connector: Connector, table: Table, *, writing: bool) -> None:
    """Raise one error with every problem, or return quietly."""
    problems = list(_type_problems(table))
    if not problems:
        problems += _metadata_problems(connector, table, writing)
        problems += _primary_key_problems(table)
        for found in connector.table_problems(table, writing=writing):
            problems.append(found if isinstance(found, Problem) else Problem("", found))
    if problems:
        name = f"table '{table.name}'" if table.name else "the table"
        verb = "write" if writing else "read"
        raise OptionError(f"{name} ({verb} through connector '{connector.identifier}')", problems)


def _type_problems(table: Table) -> Iterator[Problem]:
    for column in table.columns:
        try:
            assert column.field is not None
        except TypeTextError as error:
            yield Problem(column.name, str(error))


def _metadata_problems(connector: Connector, table: Table, writing: bool) -> Iterator[Problem]:
    offered = {
        **connector.metadata(),
        "row-kind": MetadataKey("STRING NOT NULL", "Row kind.", True),
    }
    columns = table.writable if writing else table.columns
    for column in columns:
        if column.metadata is None or column.name == ROW_KIND:
            continue
        key = offered.get(column.metadata)
        if key is None:
            yield Problem(
                column.name,
                f"metadata key '{column.metadata}' does not exist; "
                f"'{connector.identifier}' offers {', '.join(sorted(offered))}",
            )
        elif writing and not key.writable:
            names = ", ".join(sorted(k for k, v in offered.items() if v.writable)) or "none"
            yield Problem(
                column.name,
                f"metadata key '{column.metadata}' cannot be written (writable: {names}); "
                "declare the column VIRTUAL",
            )
        elif not _fits(column, key, writing):
            yield Problem(
                column.name,
                f"metadata key '{column.metadata}' is {key.type.removesuffix(' NOT NULL')}, "
                f"which cannot be cast {'from' if writing else 'to'} {column.type}",
            )


def _fits(column: Column, key: MetadataKey, writing: bool) -> bool:
    ours, theirs = column.field.type, arrow_field("", key.type).type
    return castable(ours, theirs) if writing else castable(theirs, ours)


def _primary_key_problems(table: Table) -> Iterator[Problem]:
    seen = set()
    for name in table.primary_key:
        column = table.by_name.get(name)
        if name in seen:
            yield Problem("PRIMARY KEY", f"column '{name}' is listed twice")
        elif column is None:
            yield Problem("PRIMARY KEY", f"column '{name}' does not exist")
        elif not is_physical(column):
            yield Problem("PRIMARY KEY", f"column '{name}' is not a physical column")
        seen.add(name)
