"""A declared table as a DataFrame of the columns a query uses, with its watermark."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from streamcore import Column, Secret, Table
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
    lookup: bool = False
    """Whether the rows there are now are looked up, not the changes that made them."""

    @property
    def changelog(self) -> bool:
        """Whether rows are changed or taken back, not only added."""
        return not self.lookup and not self.bound.connector.produces() <= INSERT_ONLY

    @property
    def projection(self) -> tuple[str, ...]:
        """What the connector is asked for."""
        read = [column.name for column in self.columns if not isinstance(column, ComputedColumn)]
        return (*read, ROW_KIND) if self.changelog else tuple(read)

    @property
    def rowtime(self) -> str | None:
        """The column the watermark is on, if the query uses it."""
        watermark = self.bound.statement.watermark
        return watermark.column.last if watermark and self.delay is not None else None

    @property
    def table(self) -> Table:
        table = self.bound.table
        return replace(table, columns=(*table.columns, KIND)) if self.changelog else table


def scan(
    bound: Bound,
    used: tuple[str, ...] | None,
    *,
    streaming: bool,
    place: Place,
    timed: bool = False,
    lookup: bool = False,
) -> Scan:
    """Decide what to read; `used` are the columns the query names, None for all.

    `timed` reads the column of the watermark even if the query does not name it, `lookup` the
    rows there are when a micro-batch runs.
    """
    bound.check(writing=False, place=place)
    watermark = bound.statement.watermark
    if timed and used is not None and watermark is not None:
        used = (*used, watermark.column.parts[0])
    columns = columns_read(bound.statement, used)
    return Scan(bound, streaming, columns, _delay(bound.statement, columns), lookup)


def frame(spark: SparkSession, read: Scan) -> DataFrame:
    """The DataFrame of a scan, its columns in declared order."""
    if read.rowtime is None:
        return _lane(spark, read, read.bound.options)
    # Spark keeps the least watermark of a union, so each lane of a source can have its own.
    lanes = read.bound.connector.lanes(read.bound.options) if read.streaming else ()
    frames = [_lane(spark, read, options) for options in lanes or [read.bound.options]]
    if read.streaming:
        delay = f"{read.delay} milliseconds"
        frames = [each.withWatermark(read.rowtime, delay) for each in frames]
    return functools.reduce(lambda left, right: left.unionAll(right), frames)


def _lane(spark: SparkSession, read: Scan, options: Mapping[str, str | Secret]) -> DataFrame:
    reader = spark.readStream if read.streaming else spark.read

    def load(wanted: Table) -> DataFrame:
        packed, schema = pack(options, wanted), spark_schema(wanted.output)
        return reader.format("streamcore").options(**packed).schema(schema).load()

    narrow = read.table.reading(read.projection)
    loaded = read.bound.connector.stream_frame(load, narrow) if read.streaming else load(narrow)
    if read.rowtime or any(isinstance(column, ComputedColumn) for column in read.columns):
        kinds = [name_literal(ROW_KIND)] if read.changelog else []
        loaded = loaded.selectExpr(*(_shown(c, read.rowtime) for c in read.columns), *kinds)
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
