"""One value at a time onto the wire, with a complaint that names the column it came from."""

from __future__ import annotations

import struct
from typing import Any

from .schema import Type

_FLOAT, _DOUBLE = struct.Struct("<f").pack, struct.Struct("<d").pack


class BadValue(Exception):  # noqa: N818 - never leaves this package, and reads better
    """Why a value cannot be written; records add their fields' names on the way up."""

    def __init__(self, trouble: str) -> None:
        super().__init__(trouble)
        self.path: list[str] = []

    def __str__(self) -> str:
        return f"'{'.'.join(reversed(self.path))}': {self.args[0]}"


def put(out: bytearray, avro: Type, value: Any) -> None:
    """Append a flattened value as a datum of type `avro`."""
    if avro.kind == "union":
        _put_branch(out, avro, value)
        return
    if value is None and avro.kind != "null":
        raise BadValue("null, but it is NOT NULL")
    match avro.kind:
        case "boolean":
            out.append(value)
        case "int" | "long":
            put_long(out, value)
        case "float":
            out += _FLOAT(value)
        case "double":
            out += _DOUBLE(value)
        case "bytes" | "string":
            data = value.encode() if isinstance(value, str) else value
            put_long(out, len(data))
            out += data
        case "fixed":
            out += _fixed(avro, value)
        case "enum":
            put_long(out, symbol_index(avro, value))
        case "array" | "map":
            _put_items(out, avro, value)
        case "record":
            _put_fields(out, avro, value)


def put_long(out: bytearray, number: int) -> None:
    """Append a zigzag varint."""
    rest = (number << 1) ^ (number >> 63)
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)


def branch_for(avro: Type, value: Any) -> int:
    """The branch of a nullable type that holds this value."""
    for index, branch in enumerate(avro.branches):
        if (branch.kind == "null") == (value is None):
            return index
    raise BadValue("null, but it is NOT NULL")


def symbol_index(avro: Type, value: str) -> int:
    """The place of a symbol in its enum."""
    if value not in avro.symbols:
        known = ", ".join(avro.symbols)
        raise BadValue(f"'{value}' is not a symbol of {avro.label}; its symbols: {known}")
    return avro.symbols.index(value)


def _put_branch(out: bytearray, avro: Type, value: Any) -> None:
    index = branch_for(avro, value)
    put_long(out, index)
    put(out, avro.branches[index], value)


def _fixed(avro: Type, value: bytes) -> bytes:
    if avro.logical == "decimal" and len(value) < avro.size:
        return value.rjust(avro.size, b"\xff" if value[0] > 0x7F else b"\x00")
    if len(value) != avro.size:
        raise BadValue(f"{len(value)} bytes do not fit {avro.label} of {avro.size}")
    return value


def _put_items(out: bytearray, avro: Type, items: list[Any]) -> None:
    if items:
        put_long(out, len(items))
    for item in items:
        if avro.kind == "map":
            key, item = item
            data = key.encode()
            put_long(out, len(data))
            out += data
        put(out, avro.items, item)
    out.append(0)


def _put_fields(out: bytearray, avro: Type, value: dict[str, Any]) -> None:
    for field, each in zip(avro.fields, value.values(), strict=True):
        try:
            put(out, field.type, each)
        except BadValue as bad:
            bad.path.append(field.name)
            raise
