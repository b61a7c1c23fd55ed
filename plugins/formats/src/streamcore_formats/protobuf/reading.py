"""Protobuf messages to columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError, Message
from streamcore import Decoded, Rejected

from .columns import is_map
from .wire import diagnosis

Get = Callable[[Any], Any]
_SHOWN = 3
"""How many missing fields a rejection names."""


class BadMessage(Exception):  # noqa: N818 - never leaves this package, and reads better
    """Why a message is no row."""


class ProtobufDecoder:
    """Parses messages and reads the wanted fields from them."""

    def __init__(
        self,
        message: type[Message],
        fields: Sequence[pa.Field],
        *,
        read_defaults: bool,
        ignore_errors: bool,
    ) -> None:
        self._class, self._ignoring = message, ignore_errors
        self._schema = pa.schema(fields)
        self._has_required = _has_required(message.DESCRIPTOR)
        by_name = message.DESCRIPTOR.fields_by_name
        self._gets = [getter(by_name[field.name], field, read_defaults) for field in fields]

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        parsed, origin, rejected = self._parse(messages)
        try:
            columns = [[get(message) for message in parsed] for get in self._gets]
        except BadMessage:
            columns, origin = self._one_by_one(parsed, origin, rejected)
        arrays = [pa.array(c, field.type) for c, field in zip(columns, self._schema, strict=True)]
        if arrays:
            rows = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        else:  # only a struct can say how many rows of no columns there are
            empty = pa.Array.from_buffers(pa.struct([]), len(origin), [None])
            rows = pa.RecordBatch.from_struct_array(empty)
        whole = len(origin) == len(messages)
        found = Decoded(rows, None if whole else pa.array(origin, pa.int32()))
        if self._ignoring:
            found.ignored = len(rejected)
        else:
            found.rejected = sorted(rejected)
        return found

    def _parse(
        self, messages: Sequence[bytes | None]
    ) -> tuple[list[Message], list[int], list[Rejected]]:
        parse = self._class.FromString
        parsed: list[Message] = []
        origin: list[int] = []
        rejected: list[Rejected] = []
        for index, data in enumerate(messages):
            if data is None:
                continue
            try:
                found: Any = parse(data)
                if self._has_required and not found.IsInitialized():
                    raise BadMessage(_complaint(found))
            except DecodeError as error:
                why = diagnosis(data, self._class.DESCRIPTOR) or str(error)
                rejected.append(Rejected(index, why))
            except BadMessage as bad:
                rejected.append(Rejected(index, str(bad)))
            else:
                parsed.append(found)
                origin.append(index)
        return parsed, origin, rejected

    def _one_by_one(
        self, parsed: list[Message], places: list[int], rejected: list[Rejected]
    ) -> tuple[list[list[Any]], list[int]]:
        columns: list[list[Any]] = [[] for _ in self._gets]
        origin = []
        for index, message in zip(places, parsed, strict=True):
            values = []
            try:
                for field, get in zip(self._schema, self._gets, strict=True):
                    values.append(_named(field.name, get, message))
            except BadMessage as bad:
                rejected.append(Rejected(index, str(bad)))
                continue
            origin.append(index)
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        return columns, origin


def _complaint(message: Any) -> str:
    """Which fields are required but not set; protobuf would list millions of them."""
    missing = [_short(name) for name in itertools.islice(_missing(message, ""), _SHOWN + 1)]
    more = " and others" if len(missing) > _SHOWN else ""
    verb = "is" if len(missing) == 1 else "are"
    return f"{', '.join(missing[:_SHOWN])}{more} {verb} required but not set"


def _short(name: str) -> str:
    return f"'{name}'" if len(name) <= 60 else f"'{name[:60]}...'"


def _missing(message: Any, path: str) -> Iterator[str]:
    """The paths of required fields that are not set."""
    for field in message.DESCRIPTOR.fields:
        if field.is_required and not message.HasField(field.name):
            yield path + field.name
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for name, part in _parts(field, value):
            if not part.IsInitialized():
                yield from _missing(part, f"{path}{name}.")


def _parts(field: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """The messages that a field holds, each with its name."""
    name = f"({field.full_name})" if field.is_extension else field.name
    if is_map(field):
        if field.message_type.fields_by_name["value"].message_type is not None:
            yield from ((f"{name}[{key}]", value[key]) for key in value)
    elif field.is_repeated:
        yield from ((f"{name}[{position}]", part) for position, part in enumerate(value))
    else:
        yield name, value


def _named(name: str, get: Get, message: Any) -> Any:
    try:
        return get(message)
    except BadMessage as bad:
        raise BadMessage(f"'{name}': {bad}") from None


def _has_required(descriptor: Any) -> bool:
    """Tell whether anything in this message, however deep, must be set."""
    seen: set[str] = set()
    todo = [descriptor]
    while todo:
        each = todo.pop()
        if each.full_name in seen:
            continue
        seen.add(each.full_name)
        if any(field.is_required for field in each.fields):
            return True
        todo += [field.message_type for field in each.fields if field.message_type is not None]
    return False


def getter(field: Any, column: pa.Field, read_defaults: bool) -> Get:
    """The function that reads a field from a message, as what the column's type takes."""
    if is_map(field):
        get = _map_getter(field, column.type, read_defaults)
    elif field.is_repeated:
        get = _list_getter(field, column.type, read_defaults)
    else:
        get = _single_getter(field, column, read_defaults)
    return get if column.nullable else _not_null(get)


def _not_null(get: Get) -> Get:
    def checked(message: Any) -> Any:
        value = get(message)
        if value is None:
            raise BadMessage("not set, but it is NOT NULL")
        return value

    return checked


def _single_getter(field: Any, column: pa.Field, read_defaults: bool) -> Get:
    name, raw = field.name, attrgetter(field.name)
    convert = _converter(field, column.type, read_defaults)
    get: Get = raw if convert is None else (lambda message: convert(raw(message)))
    if not field.has_presence or (read_defaults and field.message_type is None):
        return get
    return lambda message: get(message) if message.HasField(name) else None


def _list_getter(field: Any, arrow: pa.DataType, read_defaults: bool) -> Get:
    raw, convert = attrgetter(field.name), _converter(field, arrow.value_type, read_defaults)

    def get(message: Any) -> list[Any] | None:
        items = raw(message)
        if not items:
            return [] if read_defaults else None
        return list(items) if convert is None else [convert(item) for item in items]

    return get


def _map_getter(field: Any, arrow: pa.DataType, read_defaults: bool) -> Get:
    entry, raw = field.message_type.fields_by_name, attrgetter(field.name)
    of_key = _converter(entry["key"], arrow.key_type, read_defaults) or _same
    of_value = _converter(entry["value"], arrow.item_type, read_defaults) or _same

    def get(message: Any) -> list[tuple[Any, Any]] | None:
        items = raw(message)
        if not items:
            return [] if read_defaults else None
        return [(of_key(key), of_value(items[key])) for key in sorted(items)]

    return get


def _same(value: Any) -> Any:
    return value


def _converter(field: Any, arrow: pa.DataType, read_defaults: bool) -> Get | None:
    """What to do with a value before Arrow takes it; None for nothing."""
    if field.message_type is not None:
        return _row(field.message_type, arrow, read_defaults)
    if field.enum_type is not None:
        return _symbol(field.enum_type) if pa.types.is_string(arrow) else _bounded(arrow)
    if pa.types.is_string(arrow):
        return _text
    unsigned = field.cpp_type in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64)
    wide = field.cpp_type == field.CPPTYPE_UINT32 and arrow == pa.int64()
    return _bounded(arrow) if unsigned and not wide else None


def _text(value: str | bytes) -> str:
    if isinstance(value, str):
        return value
    raise BadMessage("not UTF-8")  # proto2 does not check, and hands out the bytes


def _row(descriptor: Any, arrow: pa.StructType, read_defaults: bool) -> Get:
    by_name = descriptor.fields_by_name
    gets = [(each.name, getter(by_name[each.name], each, read_defaults)) for each in arrow]
    return lambda message: {name: _named(name, get, message) for name, get in gets}


def _symbol(enum: Any) -> Get:
    names = {number: value.name for number, value in enum.values_by_number.items()}

    def convert(number: int) -> str:
        if number not in names:
            raise BadMessage(f"{number} is no value of enum '{enum.full_name}'")
        return str(names[number])

    return convert


def _bounded(arrow: pa.DataType) -> Get:
    edge = 1 << (arrow.bit_width - 1)

    def convert(number: int) -> int:
        if not -edge <= number < edge:
            raise BadMessage(f"{number} does not fit {arrow}")
        return number

    return convert
