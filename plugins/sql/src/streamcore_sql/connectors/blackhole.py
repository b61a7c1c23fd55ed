"""The connector `blackhole`: takes every row and keeps none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamcore import Connector, Table
from streamcore.table import ALL_CHANGES

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter


class Blackhole(Connector):
    """Takes every row and keeps none: for measuring how fast a query is without its sink."""

    identifier = "blackhole"

    def accepts(self) -> frozenset[str]:
        return ALL_CHANGES

    def writer(self, table: Table) -> DataSourceWriter:
        from .swallow import SwallowingWriter

        return SwallowingWriter(table)

    def stream_writer(self, table: Table) -> DataSourceStreamWriter:
        from .swallow import SwallowingStreamWriter

        return SwallowingStreamWriter(table)
