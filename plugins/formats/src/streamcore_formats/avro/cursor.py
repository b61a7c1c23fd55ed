"""A place in one datum, and the primitive values that can be read from there."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from .schema import Type, least_bytes

_FLOAT = struct.Struct("<f").unpack_from
_DOUBLE = struct.Struct("<d").unpack_from
_ONES = (1 << 64) - 1
FREE_ITEMS = 10_000
"""How many items without bytes (nulls, empty records) one array may declare."""


MOST_CELLS = 1 << 26
"""How many values one message may expand to; a null row in an array counts once per column."""


class BadDatum(Exception):  # noqa: N818 - never leaves this package, and reads better
    """Why these bytes are no datum of the schema; records add their fields' names on the way up."""

    def __init__(self, trouble: str) -> None:
        super().__init__(trouble)
        self.path: list[str] = []

    def __str__(self) -> str:
        trouble = str(self.args[0])
        return f"'{'.'.join(reversed(self.path))}': {trouble}" if self.path else trouble


class Cursor:
    """Reads one message from `at` on; every method moves behind what it read, or complains."""

    __slots__ = ("at", "cells", "data", "end")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at, self.end = data, at, len(data)
        self.cells = MOST_CELLS

    def read_long(self) -> int:
        data, at = self.data, self.at
        try:
            byte = data[at]
            if byte < 0x80:
                self.at = at + 1
                return (byte >> 1) ^ -(byte & 1)
            number, shift = byte & 0x7F, 7
            while True:
                at += 1
                byte = data[at]
                number |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
                if shift > 63:
                    raise BadDatum(f"number of more than 10 bytes at byte {self.at}")
        except IndexError:
            raise BadDatum(f"ends inside a number at byte {self.at}") from None
        self.at = at + 1
        number &= _ONES
        return (number >> 1) ^ -(number & 1)

    def read_boolean(self) -> bool:
        value = self.take(1, "boolean")[0]
        if value > 1:
            raise BadDatum(f"boolean of 0x{value:02x} at byte {self.at - 1}")
        return value == 1

    def read_float(self) -> float:
        value: float = _FLOAT(self.take(4, "float"))[0]
        return value

    def read_double(self) -> float:
        value: float = _DOUBLE(self.take(8, "double"))[0]
        return value

    def read_bytes(self) -> bytes:
        start = self.at
        size = self.read_long()
        if size < 0:
            raise BadDatum(f"length of {size} bytes at byte {start}")
        return self.take(size, "value")

    def take(self, size: int, what: str) -> bytes:
        at, after = self.at, self.at + size
        if after > self.end:
            left = self.end - at
            raise BadDatum(f"{what} of {size} bytes at byte {at}, but only {left} are left")
        self.at = after
        return self.data[at:after]

    def read_text(self) -> str:
        start = self.at
        try:
            return self.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise BadDatum(f"text at byte {start} is not UTF-8: {error.reason}") from None

    def branch(self, count: int) -> int:
        start = self.at
        index = self.read_long()
        if not 0 <= index < count:
            raise BadDatum(f"union branch {index} of {count} at byte {start}")
        return index

    def symbol(self, count: int) -> int:
        start = self.at
        index = self.read_long()
        if not 0 <= index < count:
            raise BadDatum(f"enum symbol {index} of {count} at byte {start}")
        return index

    def blocks(self, least: int, cells: int = 0) -> Iterator[int]:
        """Yield the item count of each block.

        `least` is how few bytes one item takes, `cells` how many values it becomes.
        """
        free = FREE_ITEMS
        while True:
            start = self.at
            count = self.read_long()
            if count == 0:
                return
            if count < 0:
                count = -count
                self.read_long()  # the size in bytes, which helps only those who trust it
            free -= count
            if count * least > self.end - self.at or (least == 0 and free < 0):
                raise BadDatum(f"{count} items declared at byte {start}, more than can be there")
            self.cells -= count * cells
            if self.cells < 0:
                raise BadDatum(f"expands to more than {MOST_CELLS} values at byte {start}")
            yield count


Read = Callable[[Cursor], Any]


def skipper(avro: Type, known: dict[int, Read] | None = None) -> Read:
    """A function that reads over a datum and checks its form, nothing more."""
    known = {} if known is None else known
    if avro.kind not in ("record", "union", "array", "map"):
        return _skip_simple(avro)
    if id(avro) not in known:
        known[id(avro)] = lambda cursor: known[id(avro)](cursor)  # a record inside itself
        known[id(avro)] = _skip_compound(avro, known)
    return known[id(avro)]


def _skip_simple(avro: Type) -> Read:
    simple: dict[str, Read] = {
        "null": lambda cursor: None,
        "boolean": Cursor.read_boolean,
        "int": Cursor.read_long,
        "long": Cursor.read_long,
        "float": lambda cursor: cursor.take(4, "float"),
        "double": lambda cursor: cursor.take(8, "double"),
        "bytes": Cursor.read_bytes,
        "string": Cursor.read_bytes,
        "enum": lambda cursor: cursor.symbol(len(avro.symbols)),
        "fixed": lambda cursor: cursor.take(avro.size, "fixed"),
    }
    return simple[avro.kind]


def _skip_compound(avro: Type, known: dict[int, Read]) -> Read:
    if avro.kind == "record":
        skips = [skipper(field.type, known) for field in avro.fields]

        def skip_record(cursor: Cursor) -> None:
            for skip in skips:
                skip(cursor)

        return skip_record
    if avro.kind == "union":
        branches = [skipper(branch, known) for branch in avro.branches]
        return lambda cursor: branches[cursor.branch(len(branches))](cursor)
    item = skipper(avro.items, known)
    least = least_bytes(avro.items) + (avro.kind == "map")
    is_map = avro.kind == "map"

    def skip_items(cursor: Cursor) -> None:
        for count in cursor.blocks(least):
            for _ in range(count if least else 0):
                if is_map:
                    cursor.read_bytes()
                item(cursor)

    return skip_items
