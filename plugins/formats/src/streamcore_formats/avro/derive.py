"""The Avro schema of a table, and the table a given Avro schema describes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from streamcore import Problem
from streamcore.types import SQL_TYPE, sql_text

from .schema import Type

NAMESPACE = "org.apache.flink.avro.generated"
"""Flink's, because record names show up in registries, where both may write to one subject."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MILLIS, _MICROS = ("s", "ms"), ("s", "ms", "us")
_PRIMITIVE = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
}


class Derivation:
    """Turns columns into Avro types, and collects what Avro cannot carry."""

    def __init__(self, *, legacy_timestamps: bool) -> None:
        self._legacy = legacy_timestamps
        self._names: set[str] = set()
        self.problems: list[Problem] = []

    def record(self, fields: Iterator[pa.Field] | pa.Schema, name: str, where: str = "") -> Any:
        """The record for a row; nested rows are named after the path that leads to them."""
        if name in self._names:
            trouble = f"a second record called '{name}' would be needed; rename one of the columns"
            self.problems.append(Problem(where, trouble))
        self._names.add(name)
        plain: dict[str, Any] = {"type": "record", "name": name}
        if not where:
            plain["namespace"] = NAMESPACE
        plain["fields"] = [self._field(field, name, where) for field in fields]
        return plain

    def _field(self, field: pa.Field, record: str, where: str) -> dict[str, Any]:
        inside = f"{where}.{field.name}" if where else field.name
        if not _NAME.fullmatch(field.name):
            trouble = "Avro names have only letters, digits and '_', and no digit first"
            self.problems.append(Problem(inside, trouble))
        plain = {"name": field.name, "type": self.of(field, f"{record}_{field.name}", inside)}
        if field.nullable:
            plain["default"] = None
        return plain

    def of(self, field: pa.Field, record: str, where: str) -> Any:
        """The type of one column, element or value, with null first where null is allowed."""
        plain = self._bare(field, record, where)
        return ["null", plain] if field.nullable else plain

    def _bare(self, field: pa.Field, record: str, where: str) -> Any:
        arrow, is_type = field.type, pa.types
        if (field.metadata or {}).get(SQL_TYPE, b"").startswith(b"INTERVAL"):
            return self._refuse(where, f"{sql_text(field)} has no Avro type")
        if arrow in _PRIMITIVE:
            return _PRIMITIVE[arrow]
        if is_type.is_decimal128(arrow):
            digits = {"precision": arrow.precision, "scale": arrow.scale}
            return {"type": "bytes", "logicalType": "decimal", **digits}
        if is_type.is_date32(arrow):
            return {"type": "int", "logicalType": "date"}
        if is_type.is_time(arrow):
            if arrow.unit not in _MILLIS:
                return self._refuse(where, "Avro's time-millis holds TIME(3) at most")
            return {"type": "int", "logicalType": "time-millis"}
        if is_type.is_timestamp(arrow):
            return self._timestamp(arrow, where)
        if is_type.is_list(arrow):
            return {"type": "array", "items": self.of(arrow.value_field, record, where)}
        if is_type.is_map(arrow):
            if arrow.key_type != pa.string():
                return self._refuse(where, "the keys of an Avro map are text")
            return {"type": "map", "values": self.of(arrow.item_field, record, where)}
        if is_type.is_struct(arrow):
            return self.record(arrow, record, where)
        return self._refuse(where, f"{arrow} has no Avro type")

    def _timestamp(self, arrow: pa.TimestampType, where: str) -> Any:
        if self._legacy:
            if arrow.tz is not None:
                trouble = "the legacy timestamp mapping has no TIMESTAMP_LTZ"
                return self._refuse(where, trouble)
            if arrow.unit not in _MILLIS:
                trouble = "the legacy timestamp mapping holds TIMESTAMP(3) at most"
                return self._refuse(where, trouble)
            return {"type": "long", "logicalType": "timestamp-millis"}
        if arrow.unit not in _MICROS:
            return self._refuse(where, "Avro timestamps hold a precision of 6 at most")
        kind = "timestamp" if arrow.tz else "local-timestamp"
        unit = "millis" if arrow.unit in _MILLIS else "micros"
        return {"type": "long", "logicalType": f"{kind}-{unit}"}

    def _refuse(self, where: str, trouble: str) -> str:
        self.problems.append(Problem(where, trouble))
        return "null"


def compact(plain: Any) -> str:
    """The schema as registries store it: no blanks."""
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


def mismatches(avro: Type, schema: pa.Schema) -> Iterator[Problem]:
    """Say where a given schema and the table's columns differ."""
    record, _ = avro.without_null()
    if record.kind != "record":
        yield Problem("schema", f"is {avro.label}, but a row needs a record")
        return
    names = [field.name for field in record.fields]
    if names != schema.names:
        have, want = ", ".join(names), ", ".join(schema.names)
        yield Problem("schema", f"has the fields {have}, but the table has the columns {want}")
        return
    for field, column in zip(record.fields, schema, strict=True):
        found = arrow_field(field.name, field.type)
        shown = field.type.label if found is None else _shown(found)
        if found is None or not found.equals(column):
            trouble = f"'{column.name}' is {_shown(column)} in the table, but {shown} in the schema"
            yield Problem("schema", trouble)


def _shown(field: pa.Field) -> str:
    return sql_text(field) + ("" if field.nullable else " NOT NULL")


def arrow_field(name: str, avro: Type, inside: tuple[Type, ...] = ()) -> pa.Field | None:
    """The column an Avro type stands for, with legacy timestamps; None if there is no such."""
    bare, nullable = avro.without_null()
    if bare in inside:
        return None
    arrow = _arrow_type(bare, (*inside, bare))
    return None if arrow is None else pa.field(name, arrow, nullable)


def _arrow_type(avro: Type, inside: tuple[Type, ...]) -> pa.DataType | None:
    if avro.logical == "decimal":
        fits = avro.precision <= 38
        return pa.decimal128(avro.precision, avro.scale) if fits else None
    if avro.logical in _ARROW:
        return _ARROW[avro.logical]
    if avro.kind in ("array", "map"):
        item = arrow_field("element" if avro.kind == "array" else "value", avro.items, inside)
        if item is None:
            return None
        return pa.list_(item) if avro.kind == "array" else pa.map_(pa.string(), item)
    if avro.kind == "record":
        fields = [arrow_field(field.name, field.type, inside) for field in avro.fields]
        return None if any(field is None for field in fields) else pa.struct(fields)
    return _ARROW.get(avro.kind)


_ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms"),
    "timestamp-micros": pa.timestamp("us"),
}
