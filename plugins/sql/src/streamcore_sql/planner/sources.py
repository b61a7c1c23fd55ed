"""A declared table as a DataFrame of the columns a query uses, with its watermark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from streamcore import Column, Table
from streamcore.spark.carrier import pack
from streamcore.spark.types import spark_schema
from streamcore.table import INSERT_ONLY, ROW_KIND

from ..cursor import SqlText
from ..lexer import name_literal
from ..source import Place
from ..statements import Column as Declared
from ..statements import ComputedColumn, CreateTable
from .binding import Bound
from .dialect import spark_expression
from .projection import names_used
from .watermarks import delay_of

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
    delay: str | None = None
    """How far the watermark stays behind; None when the query has no use for it."""

    @property
    def changelog(self) -> bool:
        """Whether rows are changed or taken back, not only added."""
        return not self.bound.connector.produces() <= INSERT_ONLY

    @property
    def projection(self) -> tuple[str, ...]:
        """What the connector is asked for."""
        made = [column.name for column in self.columns if not isinstance(column, ComputedColumn)]
        return (*made, ROW_KIND) if self.changelog else tuple(made)

    @property
    def table(self) -> Table:
        table = self.bound.table
        return replace(table, columns=(*table.columns, KIND)) if self.changelog else table


def scan(bound: Bound, used: frozenset[str] | None, *, streaming: bool, place: Place) -> Scan:
    """Decide what to read; `used` are the names in the query, None for all columns."""
    bound.check(writing=False, place=place)
    statement = bound.statement
    wanted = _needed(statement, used)
    columns = tuple(column for column in statement.columns if column.name in wanted)
    watermark, delay = statement.watermark, None
    if watermark and watermark.column.parts[0] in wanted:
        delay = delay_of(watermark)
    return Scan(bound, streaming, columns, delay)


def frame(spark: SparkSession, read: Scan) -> DataFrame:
    """The DataFrame of a scan, its columns in declared order."""
    table, watermark = read.table, read.bound.statement.watermark
    reader = spark.readStream if read.streaming else spark.read
    schema = spark_schema(table.by_name[name] for name in read.projection)
    options = pack(read.bound.options, table)
    loaded = reader.format("streamcore").options(**options).schema(schema).load()
    rowtime = watermark.column.last if watermark else None
    shown = [_shown(column, rowtime) for column in read.columns]
    if read.changelog:
        shown.append(name_literal(ROW_KIND))
    if any(text.startswith("CAST(") or " AS " in text for text in shown):
        loaded = loaded.selectExpr(*shown)
    if read.streaming and read.delay is not None and rowtime:
        loaded = loaded.withWatermark(rowtime, read.delay)
    return loaded


def _shown(column: Declared, rowtime: str | None) -> str:
    quoted = name_literal(column.name)
    value = quoted
    if isinstance(column, ComputedColumn):
        value = f"{spark_expression(column.expression)} AS {quoted}"
    if column.name == rowtime:
        # Flink's TIMESTAMP(3) has no zone, and Spark keeps watermarks on instants only.
        inner = value.removesuffix(f" AS {quoted}")
        return f"CAST({inner} AS TIMESTAMP) AS {quoted}"
    return value


def _needed(statement: CreateTable, used: frozenset[str] | None) -> set[str]:
    """The columns that are used, and those that computed ones are made of."""
    names = {column.name for column in statement.columns}
    if used is None:
        return names
    wanted = {name for name in names if name.lower() in used}
    computed = {c.name: c.expression for c in statement.columns if isinstance(c, ComputedColumn)}
    pending = [name for name in wanted if name in computed]
    while pending:
        found = _mentioned(computed[pending.pop()], names) - wanted
        wanted |= found
        pending += [name for name in found if name in computed]
    return wanted


def _mentioned(expression: SqlText, names: set[str]) -> set[str]:
    used = names_used(expression)
    return {name for name in names if used is None or name.lower() in used}
