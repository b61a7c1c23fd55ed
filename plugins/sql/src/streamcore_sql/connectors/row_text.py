"""Rows as text, such as `+I[1, null, 2024-05-01T10:00:00]`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from streamcore.table import ROW_KIND

if TYPE_CHECKING:
    import pyarrow as pa


def lines(batch: pa.RecordBatch, label: str = "") -> Iterator[str]:
    """One line per row; a row kind column becomes the mark in front."""
    lead = f"{label}> " if label else ""
    names = [name for name in batch.schema.names if name != ROW_KIND]
    columns = [batch.column(name).to_pylist() for name in names]
    if ROW_KIND in batch.schema.names:
        kinds = batch.column(ROW_KIND).to_pylist()
    else:
        kinds = ["+I"] * batch.num_rows
    for number, kind in enumerate(kinds):
        values = ", ".join(value_text(column[number]) for column in columns)
        yield f"{lead}{kind}[{values}]"


def value_text(value: Any) -> str:
    """One value, nested ones included."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + ("Z" if value.tzinfo else "")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g} s"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}={value_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):  # a map, as Arrow hands it over
            return "{" + ", ".join(f"{value_text(k)}={value_text(v)}" for k, v in value) + "}"
        return "[" + ", ".join(map(value_text, value)) + "]"
    return str(value)
