"""Rows of a batch and the messages they come from, which `origin` tells by their numbers."""

from __future__ import annotations

import functools

import pyarrow as pa


def upto(count: int) -> pa.Int32Array:
    """The origin of rows that come one for each message."""
    return _numbers(count.bit_length()).slice(0, count)


@functools.cache
def _numbers(bits: int) -> pa.Int32Array:
    """Kept, because counting up in Python takes longer than all that is done with the numbers."""
    return pa.array(range(1 << bits), pa.int32())


def picked(
    rows: pa.RecordBatch, origin: pa.Int32Array, kinds: pa.Int8Array | None, pick: pa.Array
) -> tuple[pa.RecordBatch, pa.Int32Array, pa.Int8Array | None]:
    """Some of the rows, with their origin and kinds."""
    taken = rows.take(pick) if rows.num_columns else without_columns(len(pick))
    return taken, origin.take(pick), None if kinds is None else kinds.take(pick)


def every_pair(origin: pa.Int32Array, of_keys: pa.Int32Array) -> tuple[pa.Array, pa.Array]:
    """Each row with each key row of its message, for key formats that give several."""
    matches: dict[int, list[int | None]] = {}
    for at, index in enumerate(of_keys.to_pylist()):
        matches.setdefault(index, []).append(at)
    pairs = [
        (at, match)
        for at, index in enumerate(origin.to_pylist())
        for match in matches.get(index, [None])
    ]
    left, right = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.array(left, pa.int64()), pa.array(right, pa.int64())


def without_columns(count: int) -> pa.RecordBatch:
    """A batch that has rows but no columns, as a bare COUNT(*) needs it."""
    whole = pa.RecordBatch.from_arrays([pa.nulls(count)], ["_"])
    return whole.select([])
