"""Projection, filter and soft delete: what happens to typed rows between source and sink."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamcore import Column
from streamcore.spark.types import spark_type, sql_type

from ..errors import did_you_mean
from ..failures import spark_errors
from .errors import JobFileError
from .expressions import STAR, condition, projection, quoted, sql_text, told_at
from .model import Transform
from .row_sql import HIDDEN, KIND, TOLD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Transformed:
    """Typed rows as the sink gets them; the hidden columns come last."""

    frame: DataFrame
    columns: tuple[Column, ...]


class DuplicateColumn(JobFileError):  # noqa: N818 - says what it is
    """A projection that names a column which the table has too."""

    name = ""


def transform(
    frame: DataFrame, columns: Sequence[Column], rule: Transform, *, has_before: bool
) -> Transformed:
    """Apply a rule to rows of these columns; `has_before` if updates tell the former row too."""
    from pyspark.sql import functions as F  # noqa: N812 - as every Spark program writes it

    own = [column.name for column in columns]
    outputs = [quoted(name) for name in own]
    if rule.projection is not None:
        outputs = _outputs(rule, own)
        with told_at(rule.projection, "projection"), spark_errors(sql_text(rule.projection), own):
            names = frame.selectExpr(*outputs).columns
    else:
        names = own
    _check_names(rule, names)
    extra = [name for name in (*own, *TOLD, *HIDDEN) if name not in names]
    with told_at(rule.projection or rule.node, "projection"):
        rows = frame.selectExpr(*outputs, *map(quoted, extra))
    if rule.filter is not None:
        with told_at(rule.filter, "filter"), spark_errors(sql_text(rule.filter), rows.columns):
            wanted = F.expr(condition(rule.filter))
            if has_before:
                rows = rows.where(wanted)
            else:  # no former row tells whether this one fitted before, so it is taken back
                gone = F.when(F.col(KIND).isin("+U", "-D"), F.lit("-D"))
                rows = rows.withColumn(KIND, F.when(wanted, F.col(KIND)).otherwise(gone))
                rows = rows.where(F.col(KIND).isNotNull())
    if rule.soft_delete:
        rows = rows.withColumn(KIND, F.when(F.col(KIND) == "-D", "+I").otherwise(F.col(KIND)))
    found = rows.select(*map(quoted, [*names, *HIDDEN]))
    return Transformed(found, tuple(_columns(found, names, columns)))


def _outputs(rule: Transform, own: Sequence[str]) -> list[str]:
    assert rule.projection is not None
    with told_at(rule.projection, "projection"):
        items = projection(rule.projection)
    return [text for item in items for text in (map(quoted, own) if item == STAR else [item])]


def _check_names(rule: Transform, names: Sequence[str]) -> None:
    at = rule.projection or rule.node
    twice = next((name for name in names if list(names).count(name) > 1), None)
    if twice is not None:
        trouble = f"projection: column '{twice}' is given twice"
        error = DuplicateColumn(trouble, at.place, "Name one of them with AS.")
        error.name = twice
        raise error
    for key, wanted in (
        ("primary-keys", rule.primary_key),
        ("partition-keys", rule.partition_keys),
    ):
        for name in wanted:
            if name not in names:
                hint = did_you_mean(name, names) or f"Columns: {', '.join(names)}."
                node = rule.node.members[key]
                raise JobFileError(f"{key}: no column called '{name}'", node.place, hint)


def _columns(frame: DataFrame, names: Sequence[str], before: Sequence[Column]) -> list[Column]:
    """The columns with their types; one that only passes keeps the precision it was declared in."""
    known = {column.name: column for column in before}
    found = []
    for name in names:
        kind = frame.schema[name].dataType
        column = known.get(name)
        if column is None or spark_type(column.field) != kind:
            column = Column(name, sql_type(kind))
        found.append(Column(name, column.type))
    return found
