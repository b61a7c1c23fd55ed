"""Which column can hold which field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2
from streamcore import Problem
from streamcore.types import SQL_TYPE, sql_text

_WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


def problems_of(fields: Iterable[pa.Field], descriptor: Any, where: str = "") -> Iterator[Problem]:
    """Complain about columns that messages of this type do not have, or have as something else."""
    for column in fields:
        path = f"{where}.{column.name}" if where else column.name
        found = descriptor.fields_by_name.get(column.name)
        if found is None:
            yield Problem(path, f"message '{descriptor.full_name}' has no field of this name")
        else:
            yield from _field_problems(column, found, path)


def _field_problems(column: pa.Field, field: Any, path: str) -> Iterator[Problem]:
    arrow = column.type
    if is_map(field):
        if not pa.types.is_map(arrow) or SQL_TYPE in (column.metadata or {}):
            yield _mismatch(column, field, path)
            return
        entry = field.message_type.fields_by_name
        yield from _single_problems(arrow.key_field, entry["key"], f"{path} (key)")
        yield from _single_problems(arrow.item_field, entry["value"], f"{path} (value)")
    elif field.is_repeated:
        if not pa.types.is_list(arrow):
            yield _mismatch(column, field, path)
            return
        yield from _single_problems(arrow.value_field, field, path)
    else:
        yield from _single_problems(column, field, path)


def _single_problems(column: pa.Field, field: Any, path: str) -> Iterator[Problem]:
    if field.message_type is not None:
        if pa.types.is_struct(column.type):
            yield from problems_of(column.type, field.message_type, path)
        else:
            yield _mismatch(column, field, path)
    elif not _fits(column, field):
        yield _mismatch(column, field, path)


def _fits(column: pa.Field, field: Any) -> bool:
    if (column.metadata or {}).get(SQL_TYPE, b"").startswith(b"INTERVAL"):
        return False
    kinds = {
        field.CPPTYPE_INT32: (pa.int32(),),
        field.CPPTYPE_UINT32: (pa.int32(), pa.int64()),
        field.CPPTYPE_INT64: (pa.int64(),),
        field.CPPTYPE_UINT64: (pa.int64(),),
        field.CPPTYPE_FLOAT: (pa.float32(),),
        field.CPPTYPE_DOUBLE: (pa.float64(),),
        field.CPPTYPE_BOOL: (pa.bool_(),),
        field.CPPTYPE_ENUM: (pa.string(), *_WHOLE),
        field.CPPTYPE_STRING: (pa.binary(),) if is_bytes(field) else (pa.string(),),
    }
    return column.type in kinds[field.cpp_type]


def is_map(field: Any) -> bool:
    """Tell a map from an ordinary repeated message."""
    entry = field.message_type
    return bool(field.is_repeated and entry is not None and entry.GetOptions().map_entry)


def is_bytes(field: Any) -> bool:
    """Tell bytes from text, which Protobuf counts as one kind in memory."""
    return bool(field.type == field.TYPE_BYTES)


def kind_of(field: Any) -> str:
    """The type of a field as a .proto file says it."""
    if is_map(field):
        entry = field.message_type.fields_by_name
        return f"map<{kind_of(entry['key'])}, {kind_of(entry['value'])}>"
    named = field.message_type or field.enum_type
    kind = descriptor_pb2.FieldDescriptorProto.Type.Name(field.type)
    name = named.full_name if named is not None else kind.removeprefix("TYPE_").lower()
    return f"repeated {name}" if field.is_repeated else str(name)


def _mismatch(column: pa.Field, field: Any, path: str) -> Problem:
    return Problem(path, f"is {kind_of(field)} in Protobuf, which does not fit {sql_text(column)}")
