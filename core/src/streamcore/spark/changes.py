"""Changelogs with their kinds in a column of one's own, and back: `to_changelog`, `from_changelog`.

Rows that change carry their kind in `_row_kind`. Other systems have a column for it under their own
name and with their own words: `INSERT`, `c`, Spark's and Delta's `_change_type`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ..errors import OptionError, Problem
from ..table import ROW_KIND, ROW_KINDS, Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ..values import Secret

OPERATIONS = {"+I": "INSERT", "-U": "UPDATE_BEFORE", "+U": "UPDATE_AFTER", "-D": "DELETE"}
"""The words of SQL."""
CHANGE_TYPES = {
    "+I": "insert",
    "-U": "update_preimage",
    "+U": "update_postimage",
    "-D": "delete",
}
"""The values of `_change_type` in Spark's own change feeds."""
CHANGE_TYPE = "_change_type"


def to_changelog(
    frame: DataFrame, op: str = "op", op_mapping: Mapping[str, str] | None = None
) -> DataFrame:
    """Every change as a plain row, with what happened in column `op`, ready for any table.

    `op_mapping` gives the words by the name of the operation (`INSERT`, `UPDATE_BEFORE`,
    `UPDATE_AFTER`, `DELETE`); names may share one, as in `'INSERT, UPDATE_AFTER'`. Changes without
    a word are left out. Rows without a kind are inserts.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as every Spark program writes it

    words = _kinds_to_words(op_mapping)
    kind = F.col(ROW_KIND) if ROW_KIND in frame.columns else F.lit("+I")
    told = frame.withColumn(op, _translated(kind, words))
    others = [name for name in frame.columns if name not in (ROW_KIND, op)]
    return told.where(F.col(op).isNotNull()).select(op, *others)


def from_changelog(
    frame: DataFrame,
    op: str = "op",
    op_mapping: Mapping[str, str] | None = None,
    error_handling: Literal["FAIL", "SKIP"] = "FAIL",
) -> DataFrame:
    """Plain rows as the changes that column `op` says they are, with the kind in `_row_kind`.

    `op_mapping` gives the operation by the word, as in `{"c, r": "INSERT", "d": "DELETE"}`. A row
    with another word, or none, fails the query; with `SKIP` it is left out.
    """
    from pyspark.sql import functions as F  # noqa: N812

    kinds = _words_to_kinds(op_mapping)
    found = _translated(F.col(op), kinds)
    if error_handling == "FAIL":
        said = F.coalesce(F.col(op).cast("string"), F.lit("NULL"))
        known = ", ".join(sorted(kinds))
        trouble = F.concat(F.lit(f"{op}: '"), said, F.lit(f"' is not one of {known}"))
        found = F.coalesce(found, F.raise_error(trouble).cast("string"))
    changed = frame.withColumn(ROW_KIND, found).drop(op)
    return changed.where(F.col(ROW_KIND).isNotNull()) if error_handling == "SKIP" else changed


def to_change_types(frame: DataFrame) -> DataFrame:
    """A changelog with Spark's `_change_type` in the place of `_row_kind`."""
    return to_changelog(frame, CHANGE_TYPE, {OPERATIONS[k]: w for k, w in CHANGE_TYPES.items()})


def from_change_types(frame: DataFrame) -> DataFrame:
    """A changelog of Spark's, with `_row_kind` in the place of `_change_type`."""
    words = {word: OPERATIONS[kind] for kind, word in CHANGE_TYPES.items()}
    return from_changelog(frame, CHANGE_TYPE, words)


def read_changes(
    spark: SparkSession, options: Mapping[str, str | Secret], table: Table | StructType
) -> DataFrame:
    """A table as a stream, with the operators of Spark that its connector adds to the read.

    `spark.readStream.format("streamcore")` gives the rows alone; with `changelog.normalize` of
    'upsert-kafka', state makes a full changelog of them. Write that in update mode.
    """
    from ..registry import installed
    from .carrier import pack, unpack
    from .types import spark_schema, table_of

    declared = table if isinstance(table, Table) else table_of(table)

    def load(wanted: Table) -> DataFrame:
        reader = spark.readStream.format("streamcore").options(**pack(options, wanted))
        return reader.schema(spark_schema(wanted.output)).load()

    given = unpack(pack(options))
    connector: Any = installed().build("connector", given.connector, given.options)
    found: DataFrame = connector.stream_frame(load, declared)
    return found


def _translated(column: Column, words: Mapping[str, str]) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    pairs = [F.lit(text) for pair in words.items() for text in pair]
    return F.try_element_at(F.create_map(*pairs), column.cast("string"))


def _kinds_to_words(mapping: Mapping[str, str] | None) -> dict[str, str]:
    if mapping is None:
        return OPERATIONS
    return {_kind(name): word for names, word in mapping.items() for name in _split(names)}


def _words_to_kinds(mapping: Mapping[str, str] | None) -> dict[str, str]:
    if mapping is None:
        return {word: kind for kind, word in OPERATIONS.items()}
    return {word: _kind(name) for words, name in mapping.items() for word in _split(words)}


def _split(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")]


def _kind(name: str) -> str:
    """A kind by its operation's name, or by its own two characters."""
    found = {word: kind for kind, word in OPERATIONS.items()} | {k: k for k in ROW_KINDS}
    if name.upper() not in found:
        trouble = f"'{name}' is not one of {', '.join(OPERATIONS.values())}"
        raise OptionError("changelog", [Problem("op_mapping", trouble)], "")
    return found[name.upper()]
