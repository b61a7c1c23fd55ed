"""Joins each row with the version of another row that was valid at the row's own time.

Every row meets all versions up to its time, and the latest one wins when no earlier row can come
any more: an ordinary join and an ordinary aggregate, which Spark runs in append mode. Versions are
kept for good, since any of them may be the valid one of a row to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as every Spark program writes it
from streamcore.table import ROW_KIND

from ..errors import SqlError
from ..rewrite import Note, Rewritten, TemporalJoin
from ..statements import PhysicalColumn
from .projection import columns_read
from .sources import Scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_UNTIMED = (
    "a delete in '{table}' has its key alone, and so no '{time}': rows go on meeting the version "
    "that was deleted, unless the time is that of the message, as in "
    "{time} TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'"
)


def versioned_views(rewritten: Rewritten) -> frozenset[str]:
    """The views that are read as versions, not as rows."""
    operations = (stage.operation for stage in rewritten.stages)
    return frozenset(each.right.view for each in operations if isinstance(each, TemporalJoin))


def with_untimed_deletes_noted(rewritten: Rewritten, scans: Sequence[Scan]) -> Rewritten:
    """The query, with a note on each table of versions whose deletes do not say since when."""
    versions = versioned_views(rewritten)
    notes = tuple(
        Note(_UNTIMED.format(table=read.bound.name, time=read.rowtime), ref.place)
        for ref, read in zip(rewritten.tables, scans, strict=True)
        if ref.view in versions and _deletes_have_no_time(read)
    )
    return replace(rewritten, notes=(*rewritten.notes, *notes))


def _deletes_have_no_time(read: Scan) -> bool:
    """Whether a delete is told by its key alone, and the time is no part of the key."""
    kinds = read.bound.connector.produces()
    if "-D" not in kinds or "-U" in kinds or read.rowtime is None:
        return False
    made_of = columns_read(read.bound.statement, (read.rowtime,))
    return any(
        isinstance(column, PhysicalColumn) and column.name not in read.table.primary_key
        for column in made_of
    )


def temporal_join(
    rows: DataFrame, versions: DataFrame, join: TemporalJoin, read: Scan
) -> DataFrame:
    """Two struct columns, named as the sides of the join are."""
    if read.rowtime is None:
        raise SqlError(
            f"'{read.bound.name}' does not say since when a version is valid",
            join.place,
            "Declare a WATERMARK on its time column.",
        )
    left = rows.select(
        F.struct("*").alias("__row"),
        F.col(join.time).alias("__time"),
        *(F.col(name).alias(f"__l{at}") for at, (name, _) in enumerate(join.keys)),
        F.expr("uuid()").alias("__id"),
    )
    shown = [name for name in versions.columns if name != ROW_KIND]
    if ROW_KIND in versions.columns:
        versions = versions.where(F.col(ROW_KIND) != "-U")
    right = versions.select(
        F.struct(F.struct(*shown).alias("row"), _is_gone(versions).alias("gone")).alias(
            "__version"
        ),
        F.col(read.rowtime).alias("__since"),
        *(F.col(name).alias(f"__r{at}") for at, (_, name) in enumerate(join.keys)),
    )
    condition = F.col("__since") <= F.col("__time")
    for at in range(len(join.keys)):
        condition &= F.col(f"__l{at}") == F.col(f"__r{at}")
    joined = left.join(right, condition, "left_outer" if join.outer else "inner")
    latest = joined.groupBy("__id", "__time").agg(
        F.first("__row").alias(join.left_alias),
        F.max_by("__version", "__since").alias("__valid"),
    )
    valid = F.col("__valid.row")
    if join.outer:
        valid = F.when(F.col("__valid.gone"), F.lit(None)).otherwise(valid)
    else:
        latest = latest.where(~F.col("__valid.gone"))
    return latest.select(join.left_alias, valid.alias(join.right_alias))


def _is_gone(versions: DataFrame) -> Column:
    return F.col(ROW_KIND) == "-D" if ROW_KIND in versions.columns else F.lit(False)
