"""What a CREATE TABLE can get wrong by itself, all of it at once."""

from __future__ import annotations

from collections.abc import Iterator

from .errors import SqlError, did_you_mean
from .statements import CreateTable, Name, PhysicalColumn


def problems_of(table: CreateTable) -> Iterator[SqlError]:
    """Names used twice, and names that no column has."""
    yield from _duplicates(table)
    if table.like is None and table.query is None:
        yield from _unknown(table)


def _duplicates(table: CreateTable) -> Iterator[SqlError]:
    seen: dict[str, str] = {}
    for column in table.columns:
        earlier = seen.get(column.name.lower())
        if earlier is None:
            seen[column.name.lower()] = column.name
        elif earlier == column.name:
            yield SqlError(f"column '{column.name}' is declared twice", column.place)
        else:
            trouble = f"columns '{earlier}' and '{column.name}' differ only in case"
            yield SqlError(trouble, column.place, "Rename one: Spark cannot tell them apart.")


def _unknown(table: CreateTable) -> Iterator[SqlError]:
    names = [column.name for column in table.columns]
    physical = {column.name for column in table.columns if isinstance(column, PhysicalColumn)}
    used: list[tuple[str, Name]] = []
    if table.watermark:
        used.append(("WATERMARK", table.watermark.column))
    if table.primary_key:
        used += [("PRIMARY KEY", column) for column in table.primary_key.columns]
    if table.distribution:
        used += [("DISTRIBUTED BY", column) for column in table.distribution.columns]
    used += [("PARTITIONED BY", column) for column in table.partitioned_by]
    for clause, column in used:
        label = column.parts[0]
        if label not in names:
            trouble = f"{clause}: no column called '{label}'"
            yield SqlError(trouble, column.place, did_you_mean(label, names))
        elif clause == "PRIMARY KEY" and label not in physical:
            hint = "A key is made of columns of the data: neither metadata nor computed."
            yield SqlError(f"{clause}: '{label}' is not a physical column", column.place, hint)
