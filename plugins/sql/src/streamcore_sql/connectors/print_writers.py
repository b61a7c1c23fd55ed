"""Writers that print where the task runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

if TYPE_CHECKING:
    from .print import Print


def _print(connector: Print, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
    for batch in batches:
        connector.deliver(pa.Table.from_batches([batch]))
    return WriterCommitMessage()


class PrintWriter(DataSourceArrowWriter):
    """For batch writes."""

    def __init__(self, connector: Print) -> None:
        self._connector = connector

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _print(self._connector, iterator)


class PrintStreamWriter(DataSourceStreamArrowWriter):
    """For streams."""

    def __init__(self, connector: Print) -> None:
        self._connector = connector

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _print(self._connector, iterator)
