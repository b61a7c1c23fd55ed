"""Turns upserts and deletes into a full changelog, with the latest row of each key in state.

State is one of Spark's own aggregates: the two latest changes of each key. Its input has at most
one change of a key in a micro-batch, so the older of the two is the row that was told before. Two
changes of one micro-batch would push that row out, so they fail the query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamcore import ROW_KIND, Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from .connector import UpsertKafka

TWICE = (
    "changelog.normalize: %s is in several partitions of the topic, and a micro-batch has changes "
    "of it from more than one. Set 'scan.parallelism' to '1', so that one task sees them all"
)
_STATE, _NOW, _BEFORE, _CHANGE = "_state", "_now", "_before", "_change"


def normalized(frame: DataFrame, table: Table, kafka: UpsertKafka) -> DataFrame:
    """The changelog of a stream that has the columns of the table, its kind and its batch.

    A first value is an insert, another value an update from the old row to the new one, an equal
    one nothing; a delete gives the whole row that is gone, and nothing where there was none.
    Write it in update mode.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as every Spark program writes it

    if kafka.normalize_ttl is not None:
        from .normalizing_with_ttl import normalized_with_ttl

        return normalized_with_ttl(frame, table, kafka.normalize_ttl)
    names = [name for name in frame.columns if name not in (ROW_KIND, "_batch")]
    keys = [name for name in table.primary_key if name in names]
    change = F.struct(*names, (F.col(ROW_KIND) == "-D").alias("_gone"), "_batch")
    grouped = frame.groupBy(*(F.col(key).alias(f"_key_{at}") for at, key in enumerate(keys)))
    latest = grouped.agg(F.max_by(change, F.col("_batch"), 2).alias(_STATE))
    pair = latest.select(
        F.col(_STATE)[0].alias(_NOW),
        F.when(F.size(_STATE) > 1, F.col(_STATE)[1]).alias(_BEFORE),
    )
    told = pair.select(F.explode(_changes(names, keys, frame)).alias(_CHANGE))
    return told.select(*(f"{_CHANGE}.row.`{name}`" for name in names), f"{_CHANGE}.{ROW_KIND}")


def _changes(names: list[str], keys: list[str], frame: DataFrame) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    now, before = F.col(_NOW), F.col(_BEFORE)
    existed = before.isNotNull() & ~before["_gone"]

    def row(which: Column, kind: str) -> Column:
        values = F.struct(*(which[name].alias(name) for name in names))
        return F.struct(values.alias("row"), F.lit(kind).alias(ROW_KIND))

    nothing = F.slice(F.array(row(now, "+I")), 1, 0)
    comparable = [
        name for name in names if "map<" not in frame.schema[name].dataType.simpleString()
    ]
    equal = F.struct(*(now[n] for n in comparable)).eqNullSafe(
        F.struct(*(before[n] for n in comparable))
    )
    if len(comparable) < len(names):  # maps cannot be compared: better tell a change twice
        equal = F.lit(False)
    key = F.to_json(F.struct(*(now[name].alias(name) for name in keys)))
    return (
        F.when(now["_batch"] == before["_batch"], F.raise_error(F.format_string(TWICE, key)))
        .when(now["_gone"], F.when(existed, F.array(row(before, "-D"))).otherwise(nothing))
        .when(~F.coalesce(existed, F.lit(False)), F.array(row(now, "+I")))
        .when(equal, nothing)
        .otherwise(F.array(row(before, "-U"), row(now, "+U")))
    )
