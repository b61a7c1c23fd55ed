"""Run a format on a handful of messages or rows, without a connector and without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..api import Format
from ..errors import OptionError, RecordError
from ..registry import installed
from ..table import ROW_KINDS


def build(identifier: str | Format, options: Mapping[str, str] | None = None) -> Format:
    """The format, configured with options written without the format's own prefix."""
    if isinstance(identifier, Format):
        return identifier
    plugin: Format = installed().build("format", identifier, dict(options or {}))
    return plugin


def decode(
    format: str | Format,  # noqa: A002 - the word users know
    schema: pa.Schema,
    messages: Iterable[bytes | None],
    options: Mapping[str, str] | None = None,
    metadata: Sequence[str] = (),
) -> list[tuple[str, dict[str, Any]]]:
    """Decode messages to (row kind, row) pairs; a rejected message raises RecordError."""
    plugin = build(format, options)
    if problems := list(plugin.schema_problems(schema, writing=False)):
        raise OptionError(f"format '{plugin.identifier}'", problems)
    decoded = plugin.decoder(schema, None, metadata).decode(list(messages))
    if decoded.rejected:
        raise RecordError("; ".join(f"message {i}: {why}" for i, why in decoded.rejected))
    rows = decoded.rows.to_pylist(maps_as_pydicts="lossy")
    kinds = decoded.kinds.to_pylist() if decoded.kinds is not None else [0] * len(rows)
    return [(ROW_KINDS[kind], row) for kind, row in zip(kinds, rows, strict=True)]


def encode(
    format: str | Format,  # noqa: A002 - the word users know
    schema: pa.Schema,
    rows: Iterable[Mapping[str, Any] | tuple[str, Mapping[str, Any]]],
    options: Mapping[str, str] | None = None,
) -> list[bytes | None]:
    """Encode rows, given as dicts or as (row kind, dict) pairs."""
    plugin = build(format, options)
    if problems := list(plugin.schema_problems(schema, writing=True)):
        raise OptionError(f"format '{plugin.identifier}'", problems)
    pairs = [row if isinstance(row, tuple) else ("+I", row) for row in rows]
    batch = pa.RecordBatch.from_pylist([row for _, row in pairs], schema=schema)
    kinds = pa.array([ROW_KINDS.index(kind) for kind, _ in pairs], pa.int8())
    return list(plugin.encoder(schema).encode(batch, kinds))
