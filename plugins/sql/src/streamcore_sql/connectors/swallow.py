"""Writers that read their rows to the end and keep none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from streamcore import Table
from streamcore.spark.reporting import report

if TYPE_CHECKING:
    import pyarrow as pa


class _Swallowing:
    def __init__(self, table: Table) -> None:
        self._table = table

    def _swallow(self, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        rows = sum(batch.num_rows for batch in batches)
        report(self._table, "sink", {"rows": rows})
        return WriterCommitMessage()


class SwallowingWriter(_Swallowing, DataSourceArrowWriter):
    """For batch writes."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._swallow(iterator)


class SwallowingStreamWriter(_Swallowing, DataSourceStreamArrowWriter):
    """For streams."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._swallow(iterator)
