"""Frames of AWS event streams: just enough to split, read and write them."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

_TEXT = 7  # the type number of a string header


def frame(event: str, payload: dict[str, Any]) -> bytes:
    """One event with a JSON payload."""
    named = {
        ":message-type": "event",
        ":event-type": event,
        ":content-type": "application/json",
    }
    headers = b"".join(
        struct.pack(">B", len(name))
        + name.encode()
        + struct.pack(">BH", _TEXT, len(value))
        # every value here is short ASCII
        + value.encode()
        for name, value in named.items()
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack(">I", zlib.crc32(message))


def frames(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Whole frames out of the pieces that `read` gives, until it gives none."""
    pending = b""
    while piece := read():
        pending += piece
        while len(pending) >= 4:
            (size,) = struct.unpack_from(">I", pending)
            if len(pending) < size:
                break
            yield pending[:size]
            pending = pending[size:]


def payload(data: bytes) -> dict[str, Any]:
    """The JSON content of a frame."""
    (headers,) = struct.unpack_from(">I", data, 4)
    content: dict[str, Any] = json.loads(data[12 + headers : -4] or b"{}")
    return content
