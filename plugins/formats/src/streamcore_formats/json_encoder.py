"""The encoder of `json`: one object per row."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from .json_few import few_rows
from .json_write import Style, messages_of, row_texts, slices


class JsonEncoder:
    """Writes few rows as Python's values, and many in Arrow's columns."""

    def __init__(self, schema: pa.Schema, style: Style) -> None:
        self._schema, self._style = schema, style
        self._few = few_rows(schema, style)

    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
        few = self._few(rows)
        if few is not None:
            return few
        messages: list[bytes | None] = []
        for start, part in slices(rows):
            messages.extend(messages_of(row_texts(part, self._schema, self._style, start)))
        return messages
