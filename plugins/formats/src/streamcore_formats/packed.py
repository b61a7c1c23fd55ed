"""Lists of numbers as Arrow columns, at a fraction of the time pa.array takes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

_CODES = {
    pa.int8(): "b",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.int64(): "q",
    pa.float64(): "d",
}

Packer = Callable[[Sequence[Any]], "pa.Array | None"]


def packer(kind: pa.DataType) -> Packer | None:
    """A maker of columns of this type, if it has a form that `struct` knows.

    It answers None where a value is missing, no number, or beyond the type.
    """
    code = _CODES.get(kind)
    if code is None:
        return None

    def pack(values: Sequence[Any]) -> pa.Array | None:
        count = len(values)
        try:
            data = struct.pack(f"{count}{code}", *values)
        except struct.error:
            return None
        return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(data)], 0)

    return pack
