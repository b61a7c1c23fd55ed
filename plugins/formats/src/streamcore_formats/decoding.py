"""Two paths to the same rows: a chunk at once where that is safe, else message by message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from streamcore import Decoded, Rejected

from .unreadable import Unreadable

_CHUNK_ROWS = 16_384
_CHUNK_BYTES = 4 * 2**20
_MOST_BYTES = 4 * _CHUNK_BYTES
_JOINED = 2048
_SAMPLED = 64
"""One message of so many is weighed: touching all of them long before they are read is slow."""

# glibc hands large blocks back to the system when they are freed, to get them again page by page:
# a fifth of the time of csv. Up to the size of the largest that was ever freed it keeps them.
bytes(_MOST_BYTES)

Messages = Sequence[bytes | None]


class Rows(NamedTuple):
    """What one message holds; `kinds` is None where every row is an insert."""

    values: Sequence[Sequence[Any]]
    kinds: Sequence[int] | None = None
    dropped: int = 0


NO_ROWS = Rows(())


class Huge(Exception):  # noqa: N818 - a size, not a mistake
    """A chunk has far more bytes than were estimated, so it is better cut in two."""


class Columns(NamedTuple):
    """What a chunk of messages turned into, column by column.

    With an `origin`, the rows of doubtful messages are left out. Without one there is a row for
    every message, and those of the doubtful ones are placeholders.
    """

    arrays: Sequence[pa.Array]
    doubtful: Sequence[int] = ()
    origin: pa.Int32Array | None = None
    kinds: pa.Int8Array | None = None


Fast = Callable[[Messages], Columns]
"""Reads a chunk of messages at once, and doubts whatever it cannot prove; may find it Huge."""


Exact = Callable[["bytes | None"], Rows]
"""Reads one message; raises Unreadable with the reason for its rejection."""


def doubt_everything(fields: Sequence[pa.Field]) -> Fast:
    """The fast path of a shape that has none."""
    none, no_kinds = pa.array([], pa.int32()), pa.array([], pa.int8())
    arrays = [pa.array([], field.type) for field in fields]
    return lambda messages: Columns(arrays, range(len(messages)), none, no_kinds)


class _Part(NamedTuple):
    """The rows of one chunk; no origin means one row per message from `start` on."""

    start: int
    batch: pa.RecordBatch
    origin: pa.Int32Array | None
    kinds: pa.Int8Array | None


class TwoPathDecoder:
    """Decodes in chunks; what the fast path doubts, the exact path settles."""

    def __init__(
        self,
        schema: pa.Schema,
        fast: Fast,
        exact: Exact,
        *,
        ignoring: bool,
        changelog: bool = False,
    ) -> None:
        self._schema, self._fast, self._exact = schema, fast, exact
        self._has_columns = len(schema) > 0
        self._ignoring, self._changelog = ignoring, changelog

    def decode(self, messages: Messages) -> Decoded:
        rejected: list[Rejected] = []
        parts: list[_Part] = []
        ignored = 0
        for start, chunk, columns in self._read(0, messages):
            part = self._fast_part(columns, start, len(chunk))
            if columns.doubtful:
                exact, dropped = self._settle(chunk, columns.doubtful, start, rejected)
                part = _merged(part, exact) if exact else part
                ignored += dropped
            parts.append(part)
        return self._joined(parts, rejected, ignored)

    def _read(self, first: int, messages: Messages) -> Iterator[tuple[int, Messages, Columns]]:
        """Chunk by chunk what the fast path makes of these messages, and where they stand."""
        for start, chunk in chunks(messages):
            try:
                columns = self._fast(chunk)
                if columns.doubtful:
                    weigh(chunk)
            except Huge:
                half = len(chunk) // 2
                yield from self._read(first + start, chunk[:half])
                yield from self._read(first + start + half, chunk[half:])
            else:
                yield first + start, chunk, columns

    def _settle(
        self, chunk: Messages, doubtful: Iterable[int], start: int, rejected: list[Rejected]
    ) -> tuple[_Part | None, int]:
        values: list[Sequence[Any]] = []
        origin: list[int] = []
        kinds: list[int] = []
        dropped = 0
        for index in doubtful:
            try:
                rows = self._exact(chunk[index])
            except Unreadable as error:
                if self._ignoring:
                    dropped += 1
                else:
                    rejected.append(Rejected(start + index, str(error)))
                continue
            values.extend(rows.values)
            origin.extend([start + index] * len(rows.values))
            kinds.extend(rows.kinds or [0] * len(rows.values))
            dropped += rows.dropped
        if not values:
            return None, dropped
        columns = zip(zip(*values, strict=True), self._schema, strict=True) if values[0] else ()
        arrays = [pa.array(column, field.type) for column, field in columns]
        changes = pa.array(kinds, pa.int8()) if self._changelog else None
        batch = batch_of(arrays, self._schema, len(values))
        return _Part(start, batch, pa.array(origin, pa.int32()), changes), dropped

    def _fast_part(self, columns: Columns, start: int, count: int) -> _Part:
        origin, kinds = columns.origin, columns.kinds
        if origin is not None:
            origin = pc.add(origin, pa.scalar(start, pa.int32())) if start else origin
            return _Part(start, batch_of(columns.arrays, self._schema, len(origin)), origin, kinds)
        batch = batch_of(columns.arrays, self._schema, count)
        if not columns.doubtful:
            return _Part(start, batch, None, kinds)
        keep = [True] * count
        for index in columns.doubtful:
            keep[index] = False
        mask = pa.array(keep)
        kinds = None if kinds is None else kinds.filter(mask)
        return _Part(start, batch.filter(mask), _counted(start, count).filter(mask), kinds)

    def _joined(self, parts: list[_Part], rejected: list[Rejected], ignored: int) -> Decoded:
        if not parts:
            empty = batch_of([pa.array([], f.type) for f in self._schema], self._schema, 0)
            return Decoded(empty, None, pa.array([], pa.int8()) if self._changelog else None)
        if len(parts) == 1 and self._has_columns:
            [(_, batch, origin, kinds)] = parts
            return Decoded(batch, origin, kinds if self._changelog else None, rejected, ignored)
        batch = _concatenated([part.batch for part in parts], self._schema)
        origin = kinds = None
        if any(part.origin is not None for part in parts) or not self._has_columns:
            origin = pa.concat_arrays([_origin(part) for part in parts])
        if self._changelog:
            kinds = pa.concat_arrays([part.kinds for part in parts])
        return Decoded(batch, origin, kinds, rejected, ignored)


def wanted_fields(schema: pa.Schema, columns: Sequence[str] | None) -> list[pa.Field]:
    """The fields of these columns, in their order; all fields for None."""
    return [schema.field(name) for name in (schema.names if columns is None else columns)]


def chunks(messages: Messages) -> Iterator[tuple[int, Messages]]:
    """Cut a batch where the cost of a call is spread, and the working set stays in the cache.

    Each chunk comes with its place. How many bytes it has is estimated.
    """
    start, count = 0, len(messages)
    while start < count:
        most = min(_CHUNK_ROWS, count - start)
        sample = messages[start : start + most : _SAMPLED]
        average = size_of(sample) // len(sample)
        if average * most > _CHUNK_BYTES:
            most = max(1, _CHUNK_BYTES // average)
        yield start, messages if most == count else messages[start : start + most]
        start += most


def weigh(messages: Messages, size: int | None = None) -> None:
    """Raise Huge if these messages, of so many bytes together, are too much to be read at once."""
    if len(messages) > 1 and (size_of(messages) if size is None else size) > _MOST_BYTES:
        raise Huge


def size_of(messages: Messages) -> int:
    """How many bytes these messages have together."""
    try:
        return sum(map(len, messages))  # type: ignore[arg-type]
    except TypeError:  # there is a None among them
        return sum(map(len, filter(None, messages)))


def joined(messages: Messages) -> bytes:
    """The messages as lines, joined block by block: joining looks at each message twice."""
    if len(messages) <= _JOINED:
        return b"\n".join(messages)  # type: ignore[arg-type]
    starts = range(0, len(messages), _JOINED)
    return b"\n".join([b"\n".join(messages[start : start + _JOINED]) for start in starts])  # type: ignore[arg-type]


def in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array, which is no copy where it is one already."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def batch_of(arrays: Sequence[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """A batch that knows its rows even when it has no columns."""
    if len(schema):
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], ["rows"]).select([])


def _merged(fast: _Part, exact: _Part) -> _Part:
    if not fast.batch.num_rows:
        return exact
    origin = pa.concat_arrays([fast.origin, exact.origin])
    order = pc.array_sort_indices(origin)
    schema = fast.batch.schema
    batch = _concatenated([fast.batch, exact.batch], schema)
    kinds = None
    if fast.kinds is not None:
        kinds = pa.concat_arrays([fast.kinds, exact.kinds]).take(order)
    return _Part(fast.start, batch.take(order), origin.take(order), kinds)


def _concatenated(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    columns = zip(*(batch.columns for batch in batches), strict=True)
    arrays = [pa.concat_arrays(column) for column in columns]
    return batch_of(arrays, schema, sum(batch.num_rows for batch in batches))


def _origin(part: _Part) -> pa.Int32Array:
    return _counted(part.start, part.batch.num_rows) if part.origin is None else part.origin


def _counted(start: int, count: int) -> pa.Int32Array:
    return pa.array(range(start, start + count), pa.int32())
