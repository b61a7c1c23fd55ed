"""One batch into a table: how update queries reach a Python sink, which Spark lets only append."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class WriteBatch:
    """Writes a batch through the options that carry the table."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def __call__(self, batch: DataFrame, number: int = 0) -> None:
        batch.write.format("streamcore").options(**self._options).mode("append").save()
