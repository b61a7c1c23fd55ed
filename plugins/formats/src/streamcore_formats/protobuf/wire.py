"""Where a Protobuf message goes wrong; the parser only says that it does."""

from __future__ import annotations

from typing import Any

_VARINT, _EIGHT, _SIZED, _START, _END, _FOUR = range(6)
_LARGEST_NUMBER = (1 << 29) - 1
_DEEPEST = 100
_MOST_FIELDS = 100_000
"""How many fields are looked at: a fraction of a second, also for a message of 10 MB."""


def diagnosis(data: bytes, descriptor: Any) -> str:
    """Say which field, at which byte, cannot be read; empty if that stays a riddle."""
    return _Scan(data).message(0, len(data), descriptor, 0, "")


class _Scan:
    """One walk over a message's fields; each method returns a complaint or moves on."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.left = data, 0, _MOST_FIELDS

    def message(self, start: int, end: int, descriptor: Any, depth: int, path: str) -> str:
        if depth > _DEEPEST:
            return f"nested deeper than {_DEEPEST} messages at byte {start}"
        self.at = start
        while self.at < end:
            begin = self.at
            if not self.left:
                return f"{path}broken after byte {begin}; the {_MOST_FIELDS} fields before are fine"
            self.left -= 1
            tag = self._varint(end)
            if tag is None or not 0 < tag >> 3 <= _LARGEST_NUMBER:
                return f"{path}no field starts at byte {begin}"
            trouble = self._field(tag, begin, end, descriptor, depth, path)
            if trouble:
                return trouble
        return ""

    def _field(self, tag: int, begin: int, end: int, descriptor: Any, depth: int, path: str) -> str:
        number, wire = tag >> 3, tag & 7
        field = descriptor.fields_by_number.get(number) if descriptor is not None else None
        name = f"{path}'{field.name}'" if field is not None else f"{path}field {number}"
        if wire == _VARINT:
            trouble = "ends inside a number" if self._varint(end) is None else ""
        elif wire in (_EIGHT, _FOUR):
            self.at += 8 if wire == _EIGHT else 4
            trouble = "ends inside a number" if self.at > end else ""
        elif wire == _SIZED:
            return self._sized(name, begin, end, field, depth)
        elif wire in (_START, _END):
            return ""  # groups: the parser's complaint must do
        else:
            trouble = f"wire type {wire} does not exist"
        return f"{name} at byte {begin}: {trouble}" if trouble else ""

    def _sized(self, name: str, begin: int, end: int, field: Any, depth: int) -> str:
        size = self._varint(end)
        if size is None:
            return f"{name} at byte {begin}: ends inside a length"
        start, after = self.at, self.at + size
        if after > end:
            left = end - start
            return f"{name} at byte {begin}: {size} bytes declared, but only {left} are left"
        if field is not None and field.message_type is not None:
            trouble = self.message(start, after, field.message_type, depth + 1, f"{name}: ")
            if trouble:
                return trouble
        elif field is not None and field.type == field.TYPE_STRING:
            try:
                self.data[start:after].decode()
            except UnicodeDecodeError as error:
                return f"{name} at byte {begin}: not UTF-8: {error.reason}"
        self.at = after
        return ""

    def _varint(self, end: int) -> int | None:
        value = shift = 0
        while self.at < end and shift < 70:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        return None
