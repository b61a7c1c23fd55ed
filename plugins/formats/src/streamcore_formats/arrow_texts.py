"""What can be told of a whole column of text without looking at its values one by one."""

from __future__ import annotations

import pyarrow as pa


def cast(texts: pa.StringArray, kind: pa.DataType) -> pa.Array | None:
    """Arrow's own parser, or None where it refuses any of the texts."""
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return None


def has_bytes(texts: pa.Array, wanted: bytes) -> bool:
    """Whether any text of a column holds one of these ASCII characters."""
    held = data_of(texts)
    return len(held) != len(held.translate(None, wanted))


def data_of(texts: pa.Array) -> bytes:
    """The bytes of a string or binary array in one piece, without those around a slice."""
    buffer = texts.buffers()[2]
    if buffer is None or not len(texts):
        return b""
    offsets = pa.Array.from_buffers(
        pa.int32(), len(texts) + 1, [None, texts.buffers()[1]], offset=texts.offset
    )
    return bytes(memoryview(buffer)[offsets[0].as_py() : offsets[-1].as_py()])
