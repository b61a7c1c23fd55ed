"""Messages to rows: native where it can be, exact where it must be, one bad message at a time."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from streamcore import Decoded, Rejected

from . import resolve
from .arrays import Unsupported
from .exact import ExactReader
from .native import MOST_BYTES, NativeReader

_FEW = 32
"""A batch this small with a bad message in it is read one by one rather than split further."""


class Piece:
    """Columns of some messages: which messages they came from, and which were rejected."""

    __slots__ = ("columns", "origin", "rejected")

    def __init__(
        self, columns: list[pa.Array], origin: Sequence[int], rejected: Sequence[Rejected] = ()
    ) -> None:
        self.columns, self.origin, self.rejected = columns, origin, rejected


class DatumReader:
    """Reads messages of one writer's schema; `label` starts each reason for a rejection."""

    def __init__(self, plan: resolve.Plan, header: int = 0, label: str = "") -> None:
        self._exact, self._label = ExactReader(plan, header), label
        try:
            self._native: NativeReader | None = NativeReader(plan, header)
        except Unsupported:
            self._native = None

    def read_all(self, messages: Sequence[bytes], head: bytes) -> list[pa.Array] | None:
        """The columns of good messages that all start with `head`; None if they are not that."""
        return None if self._native is None else self._native.read(messages, head)

    def read(self, messages: Sequence[bytes], indexes: Sequence[int]) -> list[Piece]:
        """Read messages whose places in the batch are `indexes`."""
        columns = None if self._native is None else self._native.read(messages)
        if columns is not None:
            return [Piece(columns, indexes)]
        few = len(messages) <= _FEW if self._native else sum(map(len, messages)) <= MOST_BYTES
        if few or len(messages) == 1:
            return [self._one_by_one(messages, indexes)]
        half = len(messages) // 2
        first = self.read(messages[:half], indexes[:half])
        return first + self.read(messages[half:], indexes[half:])

    def _one_by_one(self, messages: Sequence[bytes], indexes: Sequence[int]) -> Piece:
        columns, bad = self._exact.read(messages)
        if not bad:
            return Piece(columns, indexes)
        places = {index for index, _ in bad}
        origin = [where for place, where in enumerate(indexes) if place not in places]
        rejected = [Rejected(indexes[place], self._label + why) for place, why in bad]
        return Piece(columns, origin, rejected)


class Assembler:
    """Puts pieces together into one batch of the wanted columns, in the order of the messages."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self._schema = pa.schema(fields)

    def decoded(self, pieces: Sequence[Piece], count: int) -> Decoded:
        """The batch of `count` messages that these pieces were read from."""
        if len(pieces) == 1 and len(pieces[0].origin) == count:
            return Decoded(self.batch(pieces[0].columns, count))
        origin = [index for piece in pieces for index in piece.origin]
        rejected = sorted(each for piece in pieces for each in piece.rejected)
        columns = [
            _joined([piece.columns[place] for piece in pieces], field.type)
            for place, field in enumerate(self._schema)
        ]
        batch = self.batch(columns, len(origin))
        if origin != sorted(origin):
            order = sorted(range(len(origin)), key=origin.__getitem__)
            batch = batch.take(pa.array(order, pa.int32())) if columns else batch
            origin.sort()
        whole = len(origin) == count
        return Decoded(batch, None if whole else pa.array(origin, pa.int32()), rejected=rejected)

    def batch(self, columns: list[pa.Array], count: int) -> pa.RecordBatch:
        """These columns as a batch of `count` rows."""
        if not columns:  # only a struct can say how many rows of no columns there are
            rows = pa.Array.from_buffers(pa.struct([]), count, [None])
            return pa.RecordBatch.from_struct_array(rows)
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _joined(arrays: list[pa.Array], arrow: pa.DataType) -> pa.Array:
    return pa.concat_arrays(arrays) if arrays else pa.array([], arrow)


class PlainDecoder:
    """Reads bare datums, all of one schema."""

    def __init__(self, plan: resolve.Plan) -> None:
        self._reader, self._assembler = DatumReader(plan), Assembler(list(plan.arrow))

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        present, indexes = without_nulls(messages)
        pieces = self._reader.read(present, indexes) if present else []
        return self._assembler.decoded(pieces, len(messages))


def without_nulls(messages: Sequence[bytes | None]) -> tuple[Sequence[bytes], Sequence[int]]:
    """The messages that have a value, and their places."""
    if all(messages) or None not in messages:  # comparing each with None takes three times as long
        return messages, range(len(messages))  # type: ignore[return-value] # just checked
    indexes = [index for index, message in enumerate(messages) if message is not None]
    return [message for message in messages if message is not None], indexes
