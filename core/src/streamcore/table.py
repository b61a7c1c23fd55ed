"""What a connector is given: a table's columns, its keys, and the part of it a query needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

ROW_KIND = "_row_kind"
ROW_KINDS = ("+I", "-U", "+U", "-D")
"""Kinds of change, in the order of their codes: insert, update before, update after, delete."""

INSERT_ONLY = frozenset({"+I"})
ALL_CHANGES = frozenset(ROW_KINDS)


class ValueFields(Enum):
    """The choices of `value.fields-include`."""

    ALL = "ALL"
    EXCEPT_KEY = "EXCEPT_KEY"


@dataclasses.dataclass(frozen=True)
class MetadataKey:
    """A metadata column that a connector or format offers, with its SQL type."""

    type: str
    doc: str
    writable: bool = False


@dataclasses.dataclass(frozen=True)
class Column:
    """One column as it was declared; `type` is SQL text such as `DECIMAL(10, 2)`."""

    name: str
    type: str
    nullable: bool = True
    metadata: str | None = None
    virtual: bool = False

    @cached_property
    def field(self) -> pa.Field:
        """The column as an Arrow field, in the table's own precision."""
        from .types import arrow_field

        return arrow_field(self.name, self.type, self.nullable)


@dataclasses.dataclass(frozen=True)
class Table:
    """A declared table; `projection` names the columns a query reads, None means all of them."""

    columns: tuple[Column, ...]
    name: str = ""
    primary_key: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    projection: tuple[str, ...] | None = None
    reports: str = ""
    """Where tasks report what they did (see `reports.py`); empty: nobody listens."""
    job: str = ""
    """On whose behalf the table is read or written, for what is said meanwhile."""

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        return {column.name: column for column in self.columns}

    @cached_property
    def physical(self) -> pa.Schema:
        """The columns that live in the message itself, in declared order."""
        import pyarrow as pa

        return pa.schema([c.field for c in self.columns if is_physical(c)])

    @cached_property
    def output(self) -> tuple[Column, ...]:
        """The columns a read produces, in the order it produces them."""
        if self.projection is None:
            return self.columns
        return tuple(self.by_name[name] for name in self.projection)

    @cached_property
    def writable(self) -> tuple[Column, ...]:
        """The columns a write consumes: everything but virtual metadata."""
        return tuple(c for c in self.columns if not c.virtual or c.name == ROW_KIND)

    def reading(self, projection: Sequence[str] | None) -> Table:
        """The same table, of which only these columns are read."""
        chosen = None if projection is None else tuple(projection)
        return dataclasses.replace(self, projection=chosen)

    def to_json(self) -> dict[str, Any]:
        """A plain form for Spark's options and for catalogs."""
        plain = dataclasses.asdict(self)
        plain.pop("projection")
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Table:
        columns = tuple(Column(**column) for column in plain["columns"])
        keys = {key: tuple(plain.get(key, ())) for key in ("primary_key", "partition_keys")}
        reports, job = plain.get("reports", ""), plain.get("job", "")
        return cls(columns, plain.get("name", ""), **keys, reports=reports, job=job)


def is_physical(column: Column) -> bool:
    """Tell columns of the message from metadata and from the row kind."""
    return column.metadata is None and column.name != ROW_KIND
