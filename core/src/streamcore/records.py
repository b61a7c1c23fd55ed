"""Batching for formats that work one record at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .api import Decoded, Rejected
from .errors import RecordError

if TYPE_CHECKING:
    from .api import RecordFormat


class RecordDecoder:
    """Decodes with `RecordFormat.decode_record`; one bad payload costs one payload."""

    def __init__(
        self, plugin: RecordFormat, schema: pa.Schema, columns: Sequence[str] | None
    ) -> None:
        self._plugin, self._schema = plugin, schema
        names = schema.names if columns is None else columns
        self._want = pa.schema([schema.field(name) for name in names])

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        rows: list[Any] = []
        origin: list[int] = []
        rejected: list[Rejected] = []
        for index, payload in enumerate(messages):
            if payload is None:
                continue
            try:
                found = list(self._plugin.decode_record(payload, self._schema))
                pa.RecordBatch.from_pylist(
                    found, schema=self._want
                )  # a row of wrong types is bad too
            except (RecordError, ValueError, LookupError, TypeError, pa.ArrowException) as error:
                rejected.append(Rejected(index, str(error) or type(error).__name__))
            else:
                rows.extend(found)
                origin.extend([index] * len(found))
        batch = pa.RecordBatch.from_pylist(rows, schema=self._want)
        return Decoded(batch, pa.array(origin, pa.int32()), rejected=rejected)


class RecordEncoder:
    """Encodes with `RecordFormat.encode_record`."""

    def __init__(self, plugin: RecordFormat, schema: pa.Schema) -> None:
        self._plugin, self._schema = plugin, schema

    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
        return [self._plugin.encode_record(row, self._schema) for row in rows.to_pylist()]
