"""Rows to changelog messages: an insert or a delete each, as Flink writes updates too."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from .changelog_shapes import BEFORE, DELETE
from .json_few import few_rows
from .json_write import Style, join, messages_of, row_texts, slices


class ChangelogEncoder:
    """Puts each row between the two texts of its kind of change."""

    def __init__(
        self, schema: pa.Schema, style: Style, insert: tuple[str, str], delete: tuple[str, str]
    ) -> None:
        self._schema, self._style = schema, style
        self._insert, self._delete = insert, delete
        self._few = few_rows(schema, style)

    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
        few = self._few(rows)
        if few is not None:
            return self._wrapped(few, kinds)
        messages: list[bytes | None] = []
        for start, part in slices(rows):
            texts = row_texts(part, self._schema, self._style, start)
            head, tail = self._around(kinds, start, part.num_rows)
            messages.extend(messages_of(join(head, texts, tail)))
        return messages

    def _wrapped(self, texts: Sequence[bytes], kinds: pa.Int8Array | None) -> list[bytes | None]:
        insert, delete = ([text.encode() for text in side] for side in (self._insert, self._delete))
        changes = [0] * len(texts) if kinds is None else kinds.to_pylist()
        sides = [delete if kind in (BEFORE, DELETE) else insert for kind in changes]
        return [head + text + tail for (head, tail), text in zip(sides, texts, strict=True)]

    def _around(
        self, kinds: pa.Int8Array | None, start: int, count: int
    ) -> tuple[pa.Scalar | pa.Array, pa.Scalar | pa.Array]:
        heads, tails = ([pa.scalar(text) for text in pair] for pair in self._sides())
        if kinds is None:
            return heads[0], tails[0]
        some = kinds.slice(start, count)
        gone = pc.is_in(some, value_set=pa.array([BEFORE, DELETE], pa.int8()))
        return pc.if_else(gone, heads[1], heads[0]), pc.if_else(gone, tails[1], tails[0])

    def _sides(self) -> tuple[tuple[str, str], tuple[str, str]]:
        return (self._insert[0], self._delete[0]), (self._insert[1], self._delete[1])


def images(operation: str, insert: str, delete: str, brief: bool) -> list[tuple[str, str]]:
    """The texts around an `after` and around a `before`; brief ones leave out the other side."""
    none = "" if brief else '"before":null,'
    gone = "" if brief else ',"after":null'
    return [
        (f'{{{none}"after":', f',"{operation}":"{insert}"}}'),
        ('{"before":', f'{gone},"{operation}":"{delete}"}}'),
    ]
