"""A query's rows in the shape a table takes, with every mismatch told at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as every Spark program writes it
from pyspark.sql import types as T  # noqa: N812
from streamcore import Column
from streamcore.spark.types import spark_type
from streamcore.table import ROW_KIND

from ..errors import SqlError, did_you_mean
from ..lexer import name_literal
from ..rewrite import rewrite_expression
from ..source import Place
from ..statements import ComputedColumn, Insert, MetadataColumn
from .assignment import shown_type, storable
from .binding import Bound

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Slot:
    """A sink column and where its value comes from."""

    column: Column
    position: int | None = None
    """The query column that fills it."""
    constant: str | None = None
    """Else: the Spark expression that fills it; without one it is NULL."""


def slots(insert: Insert, sink: Bound) -> list[Slot]:
    """Match a sink's columns with the query's by position, and say all that does not match."""
    writable = list(sink.table.writable)
    by_name = {column.name: column for column in writable}
    problems: list[SqlError] = []
    constants: dict[str, str] = {}
    for part in insert.partition:
        if part.key not in by_name:
            problems.append(_no_column(part.key, part.place, sink))
        elif part.key not in sink.table.partition_keys:
            problems.append(_no_partition(part.key, part.place, sink))
        elif part.key in constants:
            problems.append(SqlError(f"column '{part.key}' is filled twice", part.place))
        else:
            constants[part.key] = rewrite_expression(part.value)
    if insert.columns:
        chosen = [name.last for name in insert.columns]
        for name in insert.columns:
            if name.last not in by_name:
                problems.append(_no_column(name.last, name.place, sink))
            elif chosen.count(name.last) > 1 or name.last in constants:
                problems.append(SqlError(f"column '{name.last}' is filled twice", name.place))
    else:
        chosen = [column.name for column in writable if column.name not in constants]
    if problems:
        raise SqlError.together(problems)
    at = {name: position for position, name in enumerate(chosen)}
    return [Slot(column, at.get(column.name), constants.get(column.name)) for column in writable]


def shaped(result: DataFrame, insert: Insert, sink: Bound) -> DataFrame:
    """The query's rows as the sink's columns, in as many tasks as it asks for.

    A row kind that the query carries comes along.
    """
    wanted = slots(insert, sink)
    fields = [field for field in result.schema.fields if field.name != ROW_KIND]
    if problems := list(_mismatches(fields, wanted, insert, sink)):
        raise SqlError.together(problems)
    names = [f"_{position}" for position in range(len(fields))]
    has_kind = ROW_KIND in result.columns
    numbered = result.toDF(*names, *([ROW_KIND] if has_kind else []))
    columns = []
    for slot in wanted:
        value = F.lit(None) if slot.constant is None else F.expr(slot.constant)
        if slot.position is not None:
            value = F.col(names[slot.position])
        columns.append(value.cast(spark_type(slot.column.field)).alias(slot.column.name))
    if has_kind:
        columns.append(F.col(ROW_KIND))
    return _dealt(numbered.select(*columns), sink)


def _dealt(rows: DataFrame, sink: Bound) -> DataFrame:
    """Rows in as many tasks as the table asks for, those of one key together and in their order.

    Rows without a key keep the order of the tasks they come from, so those are only put together.
    """
    tasks = sink.connector.write_tasks()
    if tasks is None:
        return rows
    keys = [F.col(name_literal(name)) for name in sink.connector.write_keys(sink.table)]
    return rows.repartition(tasks, *keys) if keys else rows.coalesce(tasks)


def _mismatches(
    fields: Sequence[T.StructField], wanted: Sequence[Slot], insert: Insert, sink: Bound
) -> Iterator[SqlError]:
    filled = [slot for slot in wanted if slot.position is not None]
    if len(filled) != len(fields):
        names = ", ".join(slot.column.name for slot in filled)
        trouble = (
            f"the query gives {_count(len(fields))}, and '{sink.name}' takes {_count(len(filled))}"
        )
        hint = f"It takes {names}; the query gives {', '.join(f.name for f in fields)}."
        yield SqlError(trouble, insert.query.place, hint)
        return
    lines = []
    for slot in wanted:
        column = slot.column
        if slot.position is None:
            if slot.constant is None and not column.nullable:
                lines.append(f"  {column.name}: is NOT NULL, but the INSERT leaves it out")
            continue
        field = fields[slot.position]
        target = spark_type(column.field)
        if not storable(field.dataType, target):
            lines.append(
                f"  {column.name}: the query's column {slot.position + 1} '{field.name}' is "
                f"{shown_type(field.dataType)}, the table's is {column.type}"
            )
    if lines:
        trouble = f"the query does not fit '{sink.name}':\n" + "\n".join(lines)
        yield SqlError(trouble, insert.query.place, "Convert with CAST(... AS type).")


def _no_column(name: str, place: Place, sink: Bound) -> SqlError:
    declared = {column.name: column for column in sink.statement.columns}
    found = declared.get(name)
    if isinstance(found, ComputedColumn):
        trouble = f"column '{name}' is computed, so nothing can be inserted into it"
        return SqlError(trouble, place)
    if isinstance(found, MetadataColumn):
        trouble = f"column '{name}' is VIRTUAL, so nothing can be inserted into it"
        return SqlError(trouble, place)
    hint = did_you_mean(name, declared) or f"It has {', '.join(declared)}."
    return SqlError(f"'{sink.name}' has no column '{name}'", place, hint)


def _no_partition(name: str, place: Place, sink: Bound) -> SqlError:
    keys = ", ".join(sink.table.partition_keys)
    trouble = f"PARTITION sets column '{name}', but '{sink.name}' is " + (
        f"PARTITIONED BY ({keys})" if keys else "not partitioned"
    )
    return SqlError(trouble, place, f"Let the query give it: INSERT INTO {sink.name} SELECT ...")


def _count(columns: int) -> str:
    return "1 column" if columns == 1 else f"{columns} columns"
