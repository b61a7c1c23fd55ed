"""JSON read value by value: every coercion, every complaint; the measure for the faster readers."""

from __future__ import annotations

import binascii
import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
from streamcore.types import sql_text

from . import numbers, temporal
from .unreadable import Unreadable, a, shown

DEEPEST = 500
"""Levels of nesting a message may have: what the parsers' stacks surely bear."""

NOTHING = object()
"""What a message of no bytes, or of blanks only, stands for."""

Read = Callable[[Any], Any]


class Rules(NamedTuple):
    """The options that change how values are read."""

    ignoring: bool = False
    fail_on_missing: bool = False
    iso: bool = False
    tree: bool = False
    """Whether numbers read as STRING are normalised, as Flink's tree parser does."""


# --- text to tree -------------------------------------------------------------------------


class Whole(str):
    """A JSON number without fraction or exponent, as it was written."""

    __slots__ = ()


class Real(str):
    """Any other JSON number, as it was written."""

    __slots__ = ()


def _refuse(word: str) -> None:
    raise Unreadable(f"not JSON: '{word}' is not a value")


_PARSER = json.JSONDecoder(strict=False, parse_int=Whole, parse_float=Real, parse_constant=_refuse)
_BLANKS = re.compile(r"[ \t\n\r]*")
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)
_BOM = "\ufeff"


def parse(message: bytes) -> Any:
    """The first JSON value of a message; what follows it is not looked at.

    Invalid UTF-8 is kept aside as surrogates, so it costs only the columns that hold it.
    """
    if message.count(b"[") + message.count(b"{") > DEEPEST:
        _measure(message)
    text = message.decode("utf-8", "surrogateescape").removeprefix(_BOM)
    start = _BLANKS.match(text).end()  # type: ignore[union-attr]
    if start == len(text):
        return NOTHING
    try:
        return _PARSER.raw_decode(text, start)[0]
    except json.JSONDecodeError as error:
        before = len(text[: error.pos].encode("utf-8", "surrogateescape"))
        byte = before + len(message) - len(text.encode("utf-8", "surrogateescape"))
        trouble = error.msg[:1].lower() + error.msg[1:]
        raise Unreadable(f"not JSON: {trouble} at byte {byte}") from error
    except RecursionError as error:
        raise Unreadable(_TOO_DEEP) from error


_TOO_DEEP = f"nested deeper than {DEEPEST} levels"


def is_deep(message: bytes) -> bool:
    """Whether a message may be nested too deeply; cheap, and only ever wrong towards yes."""
    return message.count(b"[") + message.count(b"{") > DEEPEST


def _measure(message: bytes) -> None:
    level = 0
    for token in _TOKENS.finditer(message.decode("latin-1")):
        mark = token[0][0]
        if mark in "[{":
            level += 1
            if level > DEEPEST:
                raise Unreadable(f"{_TOO_DEEP} at byte {token.start()}")
        elif mark != '"':
            level -= 1


def compact(tree: Any) -> str:
    """A tree as JSON without blanks, numbers as they were written."""
    if isinstance(tree, Whole | Real):
        return str(tree)
    if isinstance(tree, dict):
        pairs = []
        for key, value in tree.items():
            pairs.append(f"{_quoted(key)}:{compact(value)}")
        return "{" + ",".join(pairs) + "}"
    if isinstance(tree, list):
        items = []
        for value in tree:
            items.append(compact(value))
        return "[" + ",".join(items) + "]"
    return _quoted(tree) if isinstance(tree, str) else json.dumps(tree)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# --- tree to values -------------------------------------------------------------------------


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
    return _scalar(_scalar_converter(field, rules, decimals), sql_text(field))


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
                entries.append((_clean(key), item(each)))
            except Unreadable as error:
                raise error.inside(f"[{shown(key)}]") from None
        return entries

    return read


def _scalar(convert: Read, name: str) -> Read:
    if name in ("STRING", "BOOLEAN") or name.startswith(("CHAR", "VARCHAR")):
        return convert

    def read(value: Any) -> Any:
        if type(value) in (dict, list):
            raise Unreadable(f"expected {a(name)}, found {kind_of(value)}")
        return convert(value)

    return read


def _scalar_converter(field: pa.Field, rules: Rules, decimals: bool) -> Read:
    kind, name = field.type, sql_text(field)
    types = pa.types
    if types.is_string(kind):
        return _string(rules.tree, decimals)
    if types.is_boolean(kind):
        return _boolean
    if types.is_integer(kind):
        return _integer(kind, name)
    if types.is_duration(kind):
        milliseconds = _integer(pa.int64(), name, bounds=(-(2**63) // 1000 + 1, 2**63 // 1000))
        return lambda value: milliseconds(value) * 1000
    if types.is_floating(kind):
        return _floating("FLOAT" if kind == pa.float32() else "DOUBLE")
    if types.is_decimal(kind):
        return _decimal(kind)
    if types.is_binary(kind):
        return _tree_bytes if rules.tree else _bytes
    return _temporal(temporal.value_of(kind, rules.iso), name)


def _string(tree: bool, decimals: bool) -> Read:
    def read(value: Any) -> str:
        if type(value) is str:
            return _clean(value)
        if type(value) is Real and tree:
            return _normalised(value, decimals)
        if type(value) is bool:
            return "true" if value else "false"
        return _clean(compact(value))

    return read


def _normalised(number: Real, decimals: bool) -> str:
    double = float(number)
    if math.isinf(double):
        return str(number)
    return numbers.decimal_text(Decimal(number)) if decimals else numbers.double_text(double)


def _clean(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        at = error.start
        byte = ord(text[at]) - 0xDC00
        if 0x80 <= byte <= 0xFF:
            trouble = f"byte 0x{byte:02x} is not UTF-8"
        else:
            trouble = f"\\u{ord(text[at]):04x} is half a surrogate pair"
        raise Unreadable(trouble) from error
    return text


def _boolean(value: Any) -> bool:
    if type(value) is bool:
        return value
    if type(value) in (dict, list):
        raise Unreadable(f"expected a BOOLEAN, found {kind_of(value)}")
    return type(value) is str and numbers.trim(value).lower() == "true"


def _integer(kind: pa.DataType, name: str, bounds: tuple[int, int] | None = None) -> Read:
    least, most = bounds or (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
    fractions = kind.bit_width >= 32

    def read(value: Any) -> int:
        if type(value) is Whole:
            return numbers.whole(value, least, most, name)
        if type(value) is Real and fractions:
            return numbers.truncated(value, least, most, name)
        if type(value) is str:
            return numbers.whole(numbers.trim(value), least, most, name)
        raise Unreadable(f"{_text(value)} is not {a(name)}")

    return read


def _floating(name: str) -> Read:
    def read(value: Any) -> float:
        if type(value) is Whole:
            return numbers.finite(value, name) + 0.0  # '-0' is an integer, so it has no sign
        if type(value) is Real:
            return numbers.finite(value, name)
        if type(value) is str:
            return numbers.double(value, name)
        raise Unreadable(f"{_text(value)} is not {a(name)}")

    return read


def _decimal(kind: pa.DataType) -> Read:
    def read(value: Any) -> Decimal | None:
        if isinstance(value, str):
            return numbers.decimal(value, kind.precision, kind.scale)
        raise Unreadable(f"{_text(value)} is not a DECIMAL({kind.precision}, {kind.scale})")

    return read


_BASE64_BLANKS = re.compile(r"[\x00-\x20]+")


def _bytes(value: Any) -> bytes:
    if type(value) is not str:
        raise Unreadable(f"{_text(value)} is not base64 text")
    try:
        return binascii.a2b_base64(_BASE64_BLANKS.sub("", value), strict_mode=True)
    except ValueError as error:
        raise Unreadable(f"{shown(value)} is not base64 text") from error


def _tree_bytes(value: Any) -> bytes | None:
    return _bytes(value) if type(value) is str else None


def _temporal(convert: Callable[[str], int], name: str) -> Read:
    def read(value: Any) -> int:
        if type(value) is not str:
            raise Unreadable(f"{_text(value)} is not {a(name)}, which is written as text")
        return convert(value)

    return read


def _text(value: Any) -> str:
    return shown(value) if isinstance(value, str) else json.dumps(value)


def kind_of(tree: Any) -> str:
    """What a JSON value is, in words."""
    if type(tree) is dict:
        return "an object"
    if type(tree) is list:
        return "an array"
    return "null" if tree is None else compact(tree)[:60]


def _has_decimal(kind: pa.DataType) -> bool:
    if pa.types.is_decimal(kind):
        return True
    return any(_has_decimal(kind.field(i).type) for i in range(kind.num_fields))
