"""Lists of numbers as Arrow columns, at a fraction of the time pa.array takes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

_BY_WIDTH = {8: "b", 16: "h", 32: "i", 64: "q"}


class Packer(Protocol):
    """Makes a column of numbers; answers None where one is missing or beyond the type."""

    def __call__(
        self, values: Sequence[Any], validity: pa.Buffer | None = None, nulls: int = 0
    ) -> pa.Array | None: ...


def packer(kind: pa.DataType) -> Packer:
    """The packer of an integer or temporal type, or of DOUBLE."""
    code = "d" if kind == pa.float64() else _BY_WIDTH[kind.bit_width]

    def pack(
        values: Sequence[Any], validity: pa.Buffer | None = None, nulls: int = 0
    ) -> pa.Array | None:
        count = len(values)
        try:
            data = struct.pack(f"{count}{code}", *values)
        except struct.error:
            return None
        return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(data)], nulls)

    return pack
