"""The one Spark data source; the option `connector` decides what it becomes.

Spark reserves names such as 'kafka' and 'json', so connectors cannot be formats of their own.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from ..api import Connector
from ..checks import check_table
from ..errors import OptionError
from ..registry import installed
from ..table import Table
from .beginning import beginning
from .carrier import unpack
from .types import spark_schema, table_of
from .words import speak_for

Part = TypeVar("Part")


class StreamcoreDataSource(DataSource):
    """`spark.readStream.format("streamcore").option("connector", ...)`."""

    @classmethod
    def name(cls) -> str:
        return "streamcore"

    def schema(self) -> StructType:
        """Called by Spark when the reader was given no schema of its own."""
        table = unpack(self.options).table
        if table is None:
            raise OptionError("the table", ["schema: required but missing; call .schema(...)"])
        return spark_schema(table.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        connector, table = self._resolve(schema, writing=False)
        return self._heard(connector.reader(table), table, "read")

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        connector, table = self._resolve(schema, writing=False)
        reader = connector.stream_reader(table)
        if table.reports:
            _tell_the_table(reader, table.name)
        return self._heard(reader, table, "read")

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        connector, table = self._resolve(schema, writing=True)
        if overwrite:
            raise OptionError(
                f"connector '{connector.identifier}'",
                ["mode: overwrite is not possible; use 'append'"],
            )
        return self._heard(connector.writer(table), table, "write")

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        connector, table = self._resolve(schema, writing=True)
        if overwrite:
            raise OptionError(
                f"connector '{connector.identifier}'",
                [
                    "outputMode: 'complete' is not possible; use 'append', "
                    "or 'update' through foreachBatch"
                ],
            )
        return self._heard(connector.stream_writer(table), table, "write")

    def _heard(self, part: Part, table: Table, method: str) -> Part:
        """Have what is said here, and later in tasks, reach whoever runs the query."""
        speak_for(table)
        beginning(part, table, method)
        return part

    def _resolve(self, schema: StructType, *, writing: bool) -> tuple[Connector, Table]:
        carried = unpack(self.options)
        connector: Any = installed().build("connector", carried.connector, carried.options)
        names = schema.fieldNames()
        table = carried.table or table_of(schema)
        if carried.table is not None and not writing:
            table = carried.table.reading(names)
        check_table(connector, table, writing=writing)
        return connector, table


def _tell_the_table(reader: DataSourceStreamReader, name: str) -> None:
    """Have Spark's progress say which of a query's sources reads which table."""
    told: Any = reader.reportLatestOffset

    def report_latest_offset() -> dict[str, Any]:
        return {**(told() or {}), "table": name}

    reader.reportLatestOffset = report_latest_offset  # type: ignore[method-assign]
