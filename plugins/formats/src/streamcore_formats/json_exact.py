"""JSON read value by value: every coercion, every complaint; the measure for the faster readers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
from streamcore.types import sql_text

from . import numbers, texts
from .json_tree import Real, Whole, compact, kind_of
from .unreadable import Unreadable, a, shown

Read = Callable[[Any], Any]


class Rules(NamedTuple):
    """The options that change how values are read."""

    ignoring: bool = False
    fail_on_missing: bool = False
    iso: bool = False
    tree: bool = False
    """Whether numbers read as STRING are normalised, as Flink's tree parser does."""


def row_reader(fields: Sequence[pa.Field], rules: Rules) -> Callable[[Any], list[Any]]:
    """A reader of JSON objects that gives one value per field, in Arrow's Python form."""
    decimals = any(_has_decimal(field.type) for field in fields)
    readers = [(field.name, _field(field, rules, decimals)) for field in fields]
    strict = rules.fail_on_missing

    def read(tree: Any) -> list[Any]:
        if type(tree) is not dict:
            raise Unreadable(f"expected an object, found {kind_of(tree)}")
        row = []
        for name, reader in readers:
            if name in tree:
                row.append(reader(tree[name]))
            elif strict:
                raise Unreadable("the message has no such field", name)
            else:
                row.append(reader(None))
        return row

    return read


def value_reader(field: pa.Field, rules: Rules) -> Read:
    """A reader of one field's value; its complaints carry the field's name."""
    return _field(field, rules, _has_decimal(field.type))


def _field(field: pa.Field, rules: Rules, decimals: bool, label: str | None = None) -> Read:
    convert = _converter(field, rules, decimals)
    name = field.name if label is None else label
    nullable, forgiving = field.nullable, rules.ignoring and field.nullable

    def read(value: Any) -> Any:
        if value is not None:
            try:
                value = convert(value)
            except Unreadable as error:
                if forgiving:
                    return None
                raise error.inside(name) from None
        if value is None and not nullable:
            raise Unreadable("NULL, but the column is NOT NULL", name)
        return value

    return read


def _converter(field: pa.Field, rules: Rules, decimals: bool) -> Read:
    kind = field.type
    if pa.types.is_struct(kind):
        return _struct(kind, rules, decimals)
    if pa.types.is_list(kind):
        return _list(kind, rules, decimals)
    if pa.types.is_map(kind):
        return _map(kind, rules, decimals)
    return _scalar(field, rules, decimals)


def _struct(kind: pa.DataType, rules: Rules, decimals: bool) -> Read:
    readers = [(child.name, _field(child, rules, decimals)) for child in kind]

    def read(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise Unreadable(f"expected a ROW, found {kind_of(value)}")
        row = {}
        for name, reader in readers:
            if rules.fail_on_missing and name not in value:
                raise Unreadable("the message has no such field", name)
            row[name] = reader(value.get(name))
        return row

    return read


def _list(kind: pa.DataType, rules: Rules, decimals: bool) -> Read:
    element = _field(kind.value_field, rules, decimals, label="")

    def read(value: Any) -> list[Any]:
        if type(value) is not list:
            raise Unreadable(f"expected an ARRAY, found {kind_of(value)}")
        items = []
        for position, item in enumerate(value):
            try:
                items.append(element(item))
            except Unreadable as error:
                raise error.inside(f"[{position}]") from None
        return items

    return read


def _map(kind: pa.DataType, rules: Rules, decimals: bool) -> Read:
    item = _field(kind.item_field, rules, decimals, label="")

    def read(value: Any) -> list[tuple[str, Any]]:
        if type(value) is not dict:
            raise Unreadable(f"expected a MAP, found {kind_of(value)}")
        entries = []
        for key, each in value.items():
            try:
                entries.append((texts.clean(key), item(each)))
            except Unreadable as error:
                raise error.inside(f"[{shown(key)}]") from None
        return entries

    return read


def _scalar(field: pa.Field, rules: Rules, decimals: bool) -> Read:
    """A reader of one scalar: strings by the shared rules, numbers and booleans by their own."""
    kind, name = field.type, sql_text(field)
    types = pa.types
    from_text = texts.value_of(field, iso=rules.iso)
    if types.is_string(kind):
        return _string(rules.tree, decimals)
    if types.is_boolean(kind):
        other: Read = _boolean
    elif types.is_integer(kind):
        other = _integer(*texts.bounds(kind), name, kind.bit_width >= 32)
    elif types.is_duration(kind):
        most = texts.MOST_MILLISECONDS
        milliseconds = _integer(-most, most, name, True)
        other = lambda value: milliseconds(value) * 1000  # noqa: E731 - one of several readers
    elif types.is_floating(kind):
        other = _floating(texts.float_name(kind))
    elif types.is_decimal(kind):
        other = _decimal(from_text, name)
    elif types.is_binary(kind):
        other = _no_bytes(rules.tree)
    else:
        other = _no_text(name)

    def read(value: Any) -> Any:
        if type(value) is str:
            return from_text(value)
        if type(value) in (dict, list):
            raise Unreadable(f"expected {a(name)}, found {kind_of(value)}")
        return other(value)

    return read


def _string(tree: bool, decimals: bool) -> Read:
    def read(value: Any) -> str:
        if type(value) is str:
            return texts.clean(value)
        if type(value) is Real and tree:
            return _normalised(value, decimals)
        return texts.clean(compact(value))

    return read


def _normalised(number: Real, decimals: bool) -> str:
    double = float(number)
    if math.isinf(double):
        return str(number)
    return numbers.decimal_text(Decimal(number)) if decimals else numbers.double_text(double)


def _boolean(value: Any) -> bool:
    return value is True


def _integer(least: int, most: int, name: str, fractions: bool) -> Read:
    def read(value: Any) -> int:
        if type(value) is Whole:
            return numbers.whole(value, least, most, name)
        if type(value) is Real and fractions:
            return numbers.truncated(value, least, most, name)
        raise Unreadable(f"{_text(value)} is not {a(name)}")

    return read


def _floating(name: str) -> Read:
    def read(value: Any) -> float:
        if type(value) is Whole:
            return numbers.finite(value, name) + 0.0  # '-0' is an integer, so it has no sign
        if type(value) is Real:
            return numbers.finite(value, name)
        raise Unreadable(f"{_text(value)} is not {a(name)}")

    return read


def _decimal(from_text: Read, name: str) -> Read:
    def read(value: Any) -> Any:
        if isinstance(value, str):
            return from_text(value)
        raise Unreadable(f"{_text(value)} is not {a(name)}")

    return read


def _no_bytes(tree: bool) -> Read:
    def read(value: Any) -> None:
        if not tree:
            raise Unreadable(f"{_text(value)} is not base64 text")

    return read


def _no_text(name: str) -> Read:
    def read(value: Any) -> Any:
        raise Unreadable(f"{_text(value)} is not {a(name)}, which is written as text")

    return read


def _text(value: Any) -> str:
    return shown(value) if isinstance(value, str) else json.dumps(value)


def _has_decimal(kind: pa.DataType) -> bool:
    if pa.types.is_decimal(kind):
        return True
    return any(_has_decimal(kind.field(i).type) for i in range(kind.num_fields))
