"""Batching for formats that work one record at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from .api import Decoded, Rejected
from .errors import RecordError

if TYPE_CHECKING:
    from .api import RecordFormat, Row


class RecordDecoder:
    """Decodes with `RecordFormat.decode_record`; one bad payload costs one payload."""

    def __init__(
        self, plugin: RecordFormat, schema: pa.Schema, columns: Sequence[str] | None
    ) -> None:
        self._plugin, self._schema = plugin, schema
        names = schema.names if columns is None else columns
        self._want = pa.schema([schema.field(name) for name in names])

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        found: list[tuple[int, list[Row]]] = []
        rejected: list[Rejected] = []
        for index, payload in enumerate(messages):
            if payload is None:
                continue
            try:
                found.append((index, list(self._plugin.decode_record(payload, self._schema))))
            except Exception as error:  # whatever a bad payload does to a stranger's code
                rejected.append(Rejected(index, _reason(error)))
        try:
            batch = self._batch([row for _, rows in found for row in rows])
        except (pa.ArrowException, TypeError, ValueError, OverflowError):  # find whose fault it is
            found, unfit = self._sorted_out(found)
            rejected = sorted(rejected + unfit)
            batch = self._batch([row for _, rows in found for row in rows])
        origin = [index for index, rows in found for _ in rows]
        return Decoded(batch, pa.array(origin, pa.int32()), rejected=rejected)

    def _sorted_out(
        self, found: list[tuple[int, list[Row]]]
    ) -> tuple[list[tuple[int, list[Row]]], list[Rejected]]:
        fit: list[tuple[int, list[Row]]] = []
        unfit: list[Rejected] = []
        for index, rows in found:
            try:
                self._batch(rows)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                unfit.append(Rejected(index, _reason(error)))
            else:
                fit.append((index, rows))
        return fit, unfit

    def _batch(self, rows: list[Row]) -> pa.RecordBatch:
        batch = pa.RecordBatch.from_pylist(rows, schema=self._want)
        for field, column in zip(self._want, batch.columns, strict=True):
            if not field.nullable and column.null_count:
                raise RecordError(f"column '{field.name}' is NOT NULL but has no value")
        return batch


class RecordEncoder:
    """Encodes with `RecordFormat.encode_record`."""

    def __init__(self, plugin: RecordFormat, schema: pa.Schema) -> None:
        self._plugin, self._schema = plugin, schema

    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
        messages = []
        for index, row in enumerate(rows.to_pylist(maps_as_pydicts="lossy")):
            try:
                messages.append(self._plugin.encode_record(row, self._schema))
            except Exception as error:  # whatever an odd row does to a stranger's code
                raise RecordError(f"row {index}: {_reason(error)}") from error
        return messages


def _reason(error: Exception) -> str:
    known = isinstance(error, RecordError) and str(error)
    return known or f"{type(error).__name__}: {error}"
