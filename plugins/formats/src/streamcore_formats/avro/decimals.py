"""Decimals to big-endian two's complement and back, a column at a time."""

from __future__ import annotations

from functools import lru_cache
from itertools import repeat

import pyarrow as pa
import pyarrow.compute as pc

FEW = 2_000
"""Below this many values plain Python beats the fixed cost of a compute kernel."""
_WORD_DIGITS = 18
"""Decimals of no more digits fit 64 bits."""
_SIZES = [bits // 8 + 1 for bits in range(128)]
"""Bytes of a number and its sign, by the bits it takes."""
_PADS = pa.array(
    [fill * (16 - size) for fill in (b"\x00", b"\xff") for size in range(17)], pa.binary()
)


def from_twos_complement(column: pa.Array, scale: int, arrow: pa.DataType) -> pa.Array | None:
    """The decimals of a binary column; None if one is empty, too long, or does not fit exactly."""
    if len(column) < FEW and scale == arrow.scale:
        return _few(column, arrow)
    sizes = pc.binary_length(column)
    extremes = pc.min_max(sizes)
    if extremes["min"].as_py() is None:
        return pa.nulls(len(column), arrow)
    if extremes["min"].as_py() < 1 or extremes["max"].as_py() > 16:
        return None
    negative = pc.greater_equal(pc.binary_slice(column, 0, 1), pa.scalar(b"\x80"))
    pads = _PADS.take(pc.add(sizes, pc.multiply(negative.cast(pa.int32()), 17)))
    wide = pc.binary_reverse(pc.binary_join_element_wise(pads, column, b""))
    wide = pc.fill_null(wide, bytes(16))
    raw = pa.Array.from_buffers(
        pa.decimal128(38, scale),
        len(column),
        [column.buffers()[0], wide.buffers()[2]],
        column.null_count,
    )
    try:
        raw.validate(full=True)  # sixteen bytes hold a little more than 38 digits
        return raw.cast(arrow)
    except pa.ArrowInvalid:
        return None


def _few(column: pa.Array, arrow: pa.DataType) -> pa.Array | None:
    values = column.to_pylist()
    if column.null_count:
        values = [b"\0" if value is None else value for value in values]
    data = _widened(values, *_edges(arrow.precision)) if values else b""
    if data is None:
        return None
    buffers = [column.buffers()[0], pa.py_buffer(data)]
    return pa.Array.from_buffers(arrow, len(column), buffers, column.null_count)


@lru_cache
def _edges(precision: int) -> tuple[bytes, bytes]:
    """The first number above and the first below all of so many digits."""
    edge = 10**precision
    return edge.to_bytes(16), (-edge).to_bytes(16, signed=True)


def _widened(values: list[bytes], above: bytes, below: bytes) -> bytes | None:
    """Sixteen bytes for each value, the lowest first, as Arrow has them."""
    if b"" in values:
        return None
    # compared as bytes, numbers below zero come after all others
    if max(values) < b"\x80":
        wide = list(map(bytes.rjust, values, repeat(16), repeat(b"\0")))
        fits = max(wide) < above
    else:
        wide = [value.rjust(16, b"\xff" if value[0] > 0x7F else b"\0") for value in values]
        fits = all(each < above or each > below for each in wide)
    wide.reverse()
    data = b"".join(wide)[::-1]  # the last byte of the first value comes first
    return data if fits and len(data) == 16 * len(values) else None


def to_twos_complement(column: pa.Array) -> pa.Array:
    """The shortest two's complement of each unscaled value, as a binary column."""
    if len(column) < FEW:
        return _few_bytes(column)
    whole = column if column.offset == 0 else pa.concat_arrays([column])
    validity, data = whole.buffers()[:2]
    fixed = pa.Array.from_buffers(pa.binary(16), len(whole), [validity, data], whole.null_count)
    wide = pc.binary_reverse(fixed.cast(pa.binary()))
    negative = pc.greater_equal(pc.binary_slice(wide, 0, 1), pa.scalar(b"\x80"))
    above = _stripped(wide, b"\x00", b"\x80", short_below=False)
    below = _stripped(wide, b"\xff", b"\x80", short_below=True)
    return pc.if_else(negative, below, above)


def _few_bytes(column: pa.Array) -> pa.Array:
    start, end = 16 * column.offset, 16 * (column.offset + len(column))
    raw = memoryview(column.buffers()[1])[start:end]
    if column.type.precision <= _WORD_DIGITS:
        numbers = raw.cast("q")[::2].tolist()
    else:
        numbers = [
            int.from_bytes(raw[at : at + 16], "little", signed=True)
            for at in range(0, len(raw), 16)
        ]
    shortest: list[bytes | None]
    if min(numbers, default=0) >= 0:
        shortest = [number.to_bytes(_SIZES[number.bit_length()]) for number in numbers]
    else:
        shortest = [
            number.to_bytes(_SIZES[(number ^ (number >> 127)).bit_length()], signed=True)
            for number in numbers
        ]
    if column.null_count:
        is_null = column.is_null().to_pylist()
        shortest = [None if n else value for n, value in zip(is_null, shortest, strict=True)]
    return pa.array(shortest, pa.binary())


def _stripped(wide: pa.Array, fill: bytes, half: bytes, *, short_below: bool) -> pa.Array:
    """Drop the bytes that only repeat the sign, and put one back where it would get lost."""
    options = pc.TrimOptions(characters=fill)
    bare = pc.ascii_ltrim(wide.view(pa.string()), options=options).view(pa.binary())
    first = pc.binary_slice(bare, 0, 1)
    compare = pc.less if short_below else pc.greater_equal
    unsigned = pc.or_(compare(first, pa.scalar(half)), pc.equal(bare, pa.scalar(b"")))
    prefix = pc.if_else(unsigned, pa.scalar(fill), pa.scalar(b""))
    return pc.binary_join_element_wise(prefix, bare, b"")
