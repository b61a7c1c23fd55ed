"""Kafka's own protocol, in the few words that need no client library."""

from __future__ import annotations

import socket
import struct

from ..process import HOST


def ask(port: int, request: bytes, host: str = HOST) -> Fields:
    """Send one request to a plain listener; its reply, from the correlation id on."""
    with socket.create_connection((host, port), timeout=2) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as reply:
            (size,) = struct.unpack(">i", _exactly(reply.read(4), 4))
            return Fields(_exactly(reply.read(size), size))


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ConnectionError("the reply ended early")
    return data


class Fields:
    """Reads the fields of a message one after the other."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data, self._at = data, at

    def number(self, size: int) -> int:
        """An integer of so many bytes."""
        return int.from_bytes(self._take(size), "big", signed=True)

    def text(self) -> str:
        """A text with its length before it; one that is missing is empty."""
        return self._take(max(self.number(2), 0)).decode()

    def compact_text(self) -> str:
        """The same as newer versions of messages have it."""
        return self._take(max(self.compact_size(), 0)).decode()

    def compact_size(self) -> int:
        """How many items, or bytes, follow; -1 if there is nothing at all."""
        return self._unsigned() - 1

    def skip_tags(self) -> None:
        """What later versions may have added."""
        for _ in range(self._unsigned()):
            self._unsigned()
            self._take(self._unsigned())

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _take(self, size: int) -> bytes:
        self._at += size
        return _exactly(self._data[self._at - size : self._at], size)
