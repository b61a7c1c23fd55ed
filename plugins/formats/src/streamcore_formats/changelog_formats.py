"""The envelopes of the four changelog formats, and where each keeps its metadata."""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa

from .changelog_metadata import Place
from .changelog_shapes import Edits, Images
from .changelog_typed import Envelope, Keep
from .unreadable import Unreadable

_NAMES = pa.list_(pa.field("element", pa.string()))
_MILLISECONDS = pa.int64()


def debezium(wrapped: bool) -> Envelope:
    """`before`, `after` and `op`, perhaps inside `payload`."""
    places = {
        "schema": Place(("schema",), pa.string(), any_value=True, beside=True),
        "ingestion-timestamp": Place(("ts_ms",), _MILLISECONDS),
        "source.timestamp": Place(("source", "ts_ms"), _MILLISECONDS),
        "source.database": Place(("source", "db"), pa.string()),
        "source.schema": Place(("source", "schema"), pa.string()),
        "source.table": Place(("source", "table"), pa.string()),
        "source.properties": Place(("source",), pa.map_(pa.string(), pa.string()), any_value=True),
    }
    return Envelope(
        Images("op", inserts=("c", "r"), update="u", delete="d"), places, wrapped=wrapped
    )


def ogg() -> Envelope:
    """`before`, `after` and `op_type`."""
    places = {
        "table": Place(("table",), pa.string()),
        "primary-keys": Place(("primary_keys",), _NAMES),
        "ingestion-timestamp": Place(("current_ts",), pa.timestamp("us"), iso=True),
        "event-timestamp": Place(("op_ts",), pa.timestamp("us")),
    }
    return Envelope(Images("op_type", inserts=("I",), update="U", delete="D"), places)


def maxwell() -> Envelope:
    """One row in `data`, what it replaced in `old`."""
    places = {
        "database": Place(("database",), pa.string()),
        "table": Place(("table",), pa.string()),
        "primary-key-columns": Place(("primary_key_columns",), _NAMES),
        "ingestion-timestamp": Place(("ts",), pa.int64(), scale=1000),
    }
    shape = Edits("insert", "update", "delete", many=False, skip=frozenset())
    return Envelope(shape, places)


def canal(databases: str | None, tables: str | None) -> Envelope:
    """Rows in `data`, what they replaced in `old`, all values as text."""
    places = {
        "database": Place(("database",), pa.string()),
        "table": Place(("table",), pa.string()),
        "sql-type": Place(("sqlType",), pa.map_(pa.string(), pa.int32())),
        "pk-names": Place(("pkNames",), _NAMES),
        "ingestion-timestamp": Place(("ts",), _MILLISECONDS),
        "event-timestamp": Place(("es",), _MILLISECONDS),
    }
    shape = Edits("INSERT", "UPDATE", "DELETE", many=True, skip=frozenset({"CREATE"}))
    return Envelope(shape, places, as_text=True, keep=_filter(databases, tables))


def _filter(databases: str | None, tables: str | None) -> Keep | None:
    if databases is None and tables is None:
        return None
    wanted = [
        (name, re.compile(pattern))
        for name, pattern in (("database", databases), ("table", tables))
        if pattern is not None
    ]

    @lru_cache(maxsize=1024)
    def keep(database: str | None, table: str | None) -> bool:
        named = {"database": database, "table": table}
        for name, pattern in wanted:
            given = named[name]
            if given is None:
                raise Unreadable(f"'{name}' is missing, and '{name}.include' needs it")
            if not pattern.fullmatch(given):
                return False
        return True

    return keep
