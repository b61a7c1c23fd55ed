"""A declared table as a DataFrame of the columns a query uses, with its watermark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from streamcore import Column, Table
from streamcore.spark.carrier import pack
from streamcore.spark.types import spark_schema
from streamcore.table import INSERT_ONLY, ROW_KIND

from ..errors import SqlError
from ..lexer import name_literal
from ..rewrite import rewrite_expression, watermark_delay
from ..source import Place
from ..statements import Column as Declared
from ..statements import ComputedColumn, CreateTable
from .binding import Bound
from .projection import columns_read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KIND = Column(ROW_KIND, "STRING", metadata="row-kind", virtual=True)


@dataclass(frozen=True)
class Scan:
    """One read of a table within a query."""

    bound: Bound
    streaming: bool
    columns: tuple[Declared, ...]
    """What the query sees, in declared order."""
    delay: int | None = None
    """Milliseconds the watermark stays behind; None when the query has no use for it."""

    @property
    def changelog(self) -> bool:
        """Whether rows are changed or taken back, not only added."""
        return not self.bound.connector.produces() <= INSERT_ONLY

    @property
    def projection(self) -> tuple[str, ...]:
        """What the connector is asked for."""
        read = [column.name for column in self.columns if not isinstance(column, ComputedColumn)]
        return (*read, ROW_KIND) if self.changelog else tuple(read)

    @property
    def table(self) -> Table:
        table = self.bound.table
        return replace(table, columns=(*table.columns, KIND)) if self.changelog else table


def scan(bound: Bound, used: tuple[str, ...] | None, *, streaming: bool, place: Place) -> Scan:
    """Decide what to read; `used` are the columns the query names, None for all."""
    bound.check(writing=False, place=place)
    columns = columns_read(bound.statement, used)
    return Scan(bound, streaming, columns, _delay(bound.statement, columns))


def frame(spark: SparkSession, read: Scan) -> DataFrame:
    """The DataFrame of a scan, its columns in declared order."""
    table, watermark = read.table, read.bound.statement.watermark
    reader = spark.readStream if read.streaming else spark.read

    def load(wanted: Table) -> DataFrame:
        options = pack(read.bound.options, wanted)
        schema = spark_schema(wanted.output)
        return reader.format("streamcore").options(**options).schema(schema).load()

    narrow = table.reading(read.projection)
    loaded = read.bound.connector.stream_frame(load, narrow) if read.streaming else load(narrow)
    rowtime = watermark.column.last if watermark and read.delay is not None else None
    if rowtime or any(isinstance(column, ComputedColumn) for column in read.columns):
        kinds = [name_literal(ROW_KIND)] if read.changelog else []
        loaded = loaded.selectExpr(*(_shown(c, rowtime) for c in read.columns), *kinds)
    if read.streaming and rowtime:
        loaded = loaded.withWatermark(rowtime, f"{read.delay} milliseconds")
    return loaded


def _shown(column: Declared, rowtime: str | None) -> str:
    name = value = name_literal(column.name)
    if isinstance(column, ComputedColumn):
        value = rewrite_expression(column.expression)
    if column.name == rowtime:
        # Flink's TIMESTAMP(3) has no zone, and Spark keeps watermarks on instants only.
        value = f"CAST({value} AS TIMESTAMP)"
    return name if value == name else f"{value} AS {name}"


def _delay(statement: CreateTable, columns: tuple[Declared, ...]) -> int | None:
    watermark = statement.watermark
    if watermark is None or watermark.column.parts[0] not in {c.name for c in columns}:
        return None
    if len(watermark.column.parts) > 1:
        hint = "Compute a column from it first, and declare the watermark on that."
        raise SqlError("Spark needs a watermark on a column of its own", watermark.place, hint)
    return watermark_delay(watermark)
