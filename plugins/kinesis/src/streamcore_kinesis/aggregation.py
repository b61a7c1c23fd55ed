"""Takes records apart that a producer library has packed into one.

Layout: four magic bytes, a protobuf message (a table of partition keys, a table of explicit hash
keys, and the records, which point into both), and the MD5 of the message. Anything that does not
fit is a plain record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

MAGIC = b"\xf3\x89\x9a\xc2"
_DIGEST = 16
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class SubRecord(NamedTuple):
    """One record of a pack, with its place in it."""

    number: int
    partition_key: str
    explicit_hash: int | None
    data: bytes

    @property
    def hash_key(self) -> int:
        """Where this record belongs on the stream's ring of hash keys."""
        if self.explicit_hash is not None:
            return self.explicit_hash
        digest = hashlib.md5(self.partition_key.encode(), usedforsecurity=False).digest()
        return int.from_bytes(digest, "big")


def unpack(data: bytes) -> list[SubRecord] | None:
    """The records inside, or None when this is a plain record."""
    if not data.startswith(MAGIC) or len(data) <= len(MAGIC) + _DIGEST:
        return None
    message, digest = data[len(MAGIC) : -_DIGEST], data[-_DIGEST:]
    if hashlib.md5(message, usedforsecurity=False).digest() != digest:
        return None
    try:
        return _records(message)
    except (ValueError, IndexError, UnicodeDecodeError):
        return None


def pack(records: list[tuple[str, bytes]]) -> bytes:
    """Pack (partition key, data) pairs the way producer libraries do; used to test reading."""
    keys = list(dict.fromkeys(key for key, _ in records))
    message = b"".join(_field(1, key.encode()) for key in keys)
    for key, data in records:
        message += _field(3, _number(1, keys.index(key)) + _field(3, data))
    return MAGIC + message + hashlib.md5(message, usedforsecurity=False).digest()


def _records(message: bytes) -> list[SubRecord]:
    keys: list[str] = []
    hashes: list[int] = []
    bodies: list[bytes] = []
    for number, value in _fields(message):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            keys.append(value.decode())
        elif number == 2:
            hashes.append(int(value))
        elif number == 3:
            bodies.append(value)
    return [_record(at, body, keys, hashes) for at, body in enumerate(bodies)]


def _record(at: int, body: bytes, keys: list[str], hashes: list[int]) -> SubRecord:
    key_index, hash_index, data = 0, None, b""
    for number, value in _fields(body):
        if number == 1 and isinstance(value, int):
            key_index = value
        elif number == 2 and isinstance(value, int):
            hash_index = value
        elif number == 3 and isinstance(value, bytes):
            data = value
    return SubRecord(at, keys[key_index], None if hash_index is None else hashes[hash_index], data)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield tag >> 3, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind, -1)
        if kind == _BYTES:
            size, at = _varint(message, at)
        if size < 0 or at + size > len(message):
            raise ValueError("not a pack of records")
        yield tag >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("not a number")


def _field(number: int, data: bytes) -> bytes:
    return _encoded(number << 3 | _BYTES) + _encoded(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _encoded(number << 3) + _encoded(value)


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
