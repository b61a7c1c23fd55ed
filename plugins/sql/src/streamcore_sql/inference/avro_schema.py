"""The columns an Avro schema describes."""

from __future__ import annotations

from typing import Any

from .shapes import quoted

_PRIMITIVE = {
    "string": "STRING",
    "bytes": "BYTES",
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "enum": "STRING",
}
_LOGICAL = {
    "date": "DATE",
    "time-millis": "TIME(3)",
    "time-micros": "TIME(6)",
    "timestamp-millis": "TIMESTAMP(3)",
    "timestamp-micros": "TIMESTAMP(6)",
    "local-timestamp-millis": "TIMESTAMP(3)",
    "local-timestamp-micros": "TIMESTAMP(6)",
    "uuid": "STRING",
}
_ENVELOPE = {"before", "after", "op"}
Named = list[tuple[str, str, str]]


def avro_columns(schema: Any) -> tuple[str, Named]:
    """The format that fits a record schema, and its columns: name, type, and what is unsure."""
    fields = schema.get("fields", []) if isinstance(schema, dict) else []
    if {field["name"] for field in fields} >= _ENVELOPE:
        after = next(field["type"] for field in fields if field["name"] == "after")
        row = next((arm for arm in after if isinstance(arm, dict)), {})
        return "debezium-avro-confluent", _columns(row.get("fields", []))
    return "avro-confluent", _columns(fields)


def _columns(fields: list[dict[str, Any]]) -> Named:
    found = []
    for field in fields:
        kind, nullable = _type(field["type"])
        doubt = "" if kind else f"Avro type {field['type']} has no SQL type"
        text = kind or "BYTES"
        found.append((str(field["name"]), text if nullable else f"{text} NOT NULL", doubt))
    return found


def _type(schema: Any) -> tuple[str, bool]:
    """The SQL type and whether it may be null; an empty type where there is none."""
    if isinstance(schema, list):
        arms = [arm for arm in schema if arm != "null"]
        inner = _type(arms[0])[0] if len(arms) == 1 else ""
        return inner, "null" in schema
    if isinstance(schema, str):
        return _PRIMITIVE.get(schema, ""), False
    logical = schema.get("logicalType")
    if logical == "decimal":
        return f"DECIMAL({schema['precision']}, {schema.get('scale', 0)})", False
    if logical in _LOGICAL:
        return _LOGICAL[logical], False
    kind = schema["type"]
    if kind == "record":
        parts = [(field["name"], *_type(field["type"])) for field in schema["fields"]]
        if not all(text for _, text, _ in parts):
            return "", False
        texts = (f"{quoted(n)} {t}{'' if null else ' NOT NULL'}" for n, t, null in parts)
        return f"ROW<{', '.join(texts)}>", False
    if kind in ("array", "map"):
        text, null = _type(schema["items" if kind == "array" else "values"])
        part = f"{text}{'' if null else ' NOT NULL'}"
        whole = f"ARRAY<{part}>" if kind == "array" else f"MAP<STRING, {part}>"
        return (whole if text else ""), False
    if kind == "fixed":
        return f"BINARY({schema['size']})", False
    return _type(kind) if not isinstance(kind, str) or kind in _PRIMITIVE else ("", False)
