"""Columns to Protobuf messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from google.protobuf.message import EncodeError, Message
from streamcore import RecordError

from .columns import is_bytes, is_map

Convert = Callable[[Any], Any]


class BadValue(Exception):  # noqa: N818 - never leaves this package, and reads better
    """Why a value cannot be written."""


class ProtobufEncoder:
    """Builds a message for each row; a NULL column is a field that is not set."""

    def __init__(self, message: type[Message], schema: pa.Schema, null_text: str) -> None:
        self._class, self._names = message, schema.names
        by_name = message.DESCRIPTOR.fields_by_name
        self._converts = [converter(by_name[each.name], each.type, null_text) for each in schema]
        self._required = [not each.nullable for each in schema]

    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
        columns = [column.to_pylist() for column in rows.columns]
        return [self._one(n, values) for n, values in enumerate(zip(*columns, strict=True))]

    def _one(self, number: int, values: Sequence[Any]) -> bytes:
        given = {}
        try:
            for name, convert, required, value in zip(
                self._names, self._converts, self._required, values, strict=True
            ):
                if value is not None:
                    given[name] = value if convert is None else convert(value)
                elif required:
                    raise BadValue("null, but it is NOT NULL")
        except BadValue as bad:
            raise RecordError(f"row {number}: '{name}': {bad}") from None
        try:
            # Equal rows give equal bytes, also with maps: keys may decide about partitions.
            return self._class(**given).SerializeToString(deterministic=True)
        except EncodeError as error:
            raise RecordError(f"row {number}: {error}") from None
        except (TypeError, ValueError):
            raise RecordError(f"row {number}: {self._culprit(given)}") from None

    def _culprit(self, given: dict[str, Any]) -> str:
        for name, value in given.items():
            try:
                self._class(**{name: value})
            except (TypeError, ValueError) as error:
                return f"'{name}': {error}"
        return "the values do not fit together"


def converter(field: Any, arrow: pa.DataType, null_text: str) -> Convert | None:
    """What to do with a column's value before the message takes it; None for nothing."""
    if is_map(field):
        entry = field.message_type.fields_by_name
        of_value = _filled(entry["value"], arrow.item_type, null_text)
        of_key = _filled(entry["key"], arrow.key_type, null_text)
        return lambda pairs: {of_key(key): of_value(value) for key, value in pairs}
    if field.is_repeated:
        of_item = _filled(field, arrow.value_type, null_text)
        return lambda items: [of_item(item) for item in items]
    return _single(field, arrow, null_text)


def _filled(field: Any, arrow: pa.DataType, null_text: str) -> Convert:
    """Arrays and maps have no null: put the default of its type in its place."""
    convert = _single(field, arrow, null_text) or (lambda value: value)
    default: Any = {} if field.message_type is not None else _default(field, null_text)
    return lambda value: default if value is None else convert(value)


def _default(field: Any, null_text: str) -> Any:
    if field.enum_type is not None:
        return field.enum_type.values[0].number
    if field.cpp_type == field.CPPTYPE_STRING:
        return b"" if is_bytes(field) else null_text
    return False if field.cpp_type == field.CPPTYPE_BOOL else 0


def _single(field: Any, arrow: pa.DataType, null_text: str) -> Convert | None:
    if field.message_type is not None:
        return _row(field.message_type, arrow, null_text)
    if field.enum_type is not None:
        return _symbol(field.enum_type)
    return None


def _row(descriptor: Any, arrow: pa.StructType, null_text: str) -> Convert:
    by_name = descriptor.fields_by_name
    parts = [
        (each.name, converter(by_name[each.name], each.type, null_text), each.nullable)
        for each in arrow
    ]

    def convert(row: dict[str, Any]) -> dict[str, Any]:
        given = {}
        for name, part, nullable in parts:
            value = row[name]
            if value is not None:
                given[name] = value if part is None else part(value)
            elif not nullable:
                raise BadValue(f"'{name}' in it is null, but it is NOT NULL")
        return given

    return convert


def _symbol(enum: Any) -> Convert:
    numbers = {value.name: value.number for value in enum.values}

    def convert(value: Any) -> Any:
        if isinstance(value, int):
            if enum.is_closed and value not in enum.values_by_number:
                raise BadValue(f"{value} is no value of enum '{enum.full_name}'")
            return value
        if value not in numbers:
            known = ", ".join(numbers)
            raise BadValue(f"'{value}' is no value of enum '{enum.full_name}'; there are {known}")
        return numbers[value]

    return convert
