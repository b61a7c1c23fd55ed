"""A parsed CREATE TABLE as the table a connector is given."""

from __future__ import annotations

from dataclasses import replace

from streamcore import Column, Table

from .statements import ComputedColumn, CreateTable, MetadataColumn, PhysicalColumn


def table_of(statement: CreateTable) -> Table:
    """The columns a connector reads and writes: all but the computed ones."""
    keys = primary_key(statement)
    columns = tuple(
        _column(column, keys)
        for column in statement.columns
        if not isinstance(column, ComputedColumn)
    )
    partitions = tuple(name.last for name in statement.partitioned_by)
    return Table(columns, str(statement.name), keys, partitions)


def primary_key(statement: CreateTable) -> tuple[str, ...]:
    """The names of the key columns, in their declared order."""
    key = statement.primary_key
    return tuple(name.last for name in key.columns) if key else ()


def options_of(statement: CreateTable) -> dict[str, str]:
    """The options of WITH, `connector` among them."""
    return {option.key: option.value for option in statement.options}


def _column(column: PhysicalColumn | MetadataColumn, keys: tuple[str, ...]) -> Column:
    text = replace(column.type, nullable=True).sql()
    nullable = column.type.nullable and column.name not in keys
    if isinstance(column, MetadataColumn):
        return Column(column.name, text, nullable, column.key, column.virtual)
    return Column(column.name, text, nullable)
