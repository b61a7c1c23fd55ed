"""Why a table cannot read a message, and which option would let it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from streamcore import Connector, Format, StreamcoreError, Table
from streamcore.registry import installed
from streamcore.rows import key_value
from streamcore.table import ValueFields

from .sampling import Message

_TRIALS: Mapping[str, Sequence[tuple[str, str]]] = {
    "json": (
        ("timestamp-format.standard", "ISO-8601"),
        ("timestamp-format.standard", "SQL"),
        ("fail-on-missing-field", "false"),
        ("ignore-parse-errors", "true"),
    ),
    "csv": (
        ("field-delimiter", ";"),
        ("field-delimiter", "|"),
        ("field-delimiter", "\\t"),
        ("allow-comments", "true"),
        ("ignore-parse-errors", "true"),
    ),
}


@dataclass(frozen=True)
class Reading:
    """What a table made of one part of a message."""

    part: str
    format: str
    rows: list[dict[str, Any]]
    reason: str = ""
    accepted_by: tuple[str, ...] = ()
    """Options that would let the message through, with what becomes of it."""


def readings(options: Mapping[str, str], table: Table, message: Message) -> Iterator[Reading]:
    """Decode key and value as the table would."""
    connector = _built(options)
    key_format: Format | None = getattr(connector, "key_format", None)
    named: Sequence[str] = getattr(connector, "key_fields", ())
    layout = key_value(
        table,
        named or (table.primary_key if key_format is not None else ()),
        getattr(connector, "key_prefix", ""),
        getattr(connector, "value_fields", ValueFields.ALL),
    )
    if key_format is not None:
        yield _reading("key", key_format, layout.key_schema, message.key, options)
    value_format: Format = getattr(connector, "format")  # noqa: B009 - not every connector has it
    yield _reading("value", value_format, layout.value_schema, message.value, options)


def _reading(
    part: str, fmt: Format, schema: pa.Schema, payload: bytes | None, options: Mapping[str, str]
) -> Reading:
    rows, reason = _decoded(fmt, schema, payload)
    if not reason:
        return Reading(part, fmt.identifier, rows)
    accepted = tuple(_accepting(part, fmt, schema, payload, options))
    return Reading(part, fmt.identifier, rows, reason, accepted)


def _decoded(
    fmt: Format, schema: pa.Schema, payload: bytes | None
) -> tuple[list[dict[str, Any]], str]:
    decoded = fmt.decoder(schema).decode([payload])
    reason = decoded.rejected[0].reason if decoded.rejected else ""
    return decoded.rows.to_pylist(), reason


def _accepting(
    part: str, fmt: Format, schema: pa.Schema, payload: bytes | None, options: Mapping[str, str]
) -> Iterator[str]:
    family = "csv" if fmt.identifier == "csv" else "json" if "json" in fmt.identifier else ""
    stem = next((k[: -len("format")] for k in options if k == f"{part}.format"), "")
    for name, value in _TRIALS.get(family, ()):
        key = f"{stem}{fmt.identifier}.{name}"
        if options.get(key) == value:
            continue
        try:
            changed = _built({**options, key: value})
            tried = getattr(changed, "key_format" if part == "key" else "format")
            rows, reason = _decoded(tried, schema, payload)
        except StreamcoreError:  # the option does not exist, or not with the others
            continue
        if not reason:
            result = f"reads it as {rows[0]}" if rows else "drops it"
            yield f"'{key}' = '{value}' {result}"
    if part == "value":
        yield "'scan.deser.failure-handler' = 'skip' goes on without it"


def _built(options: Mapping[str, str]) -> Connector:
    rest = {key: value for key, value in options.items() if key != "connector"}
    built: Connector = installed().build("connector", options["connector"], rest)
    return built
