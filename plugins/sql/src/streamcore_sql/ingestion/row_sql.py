"""Rows between JSON text and columns, in Spark's own expressions: no trip to Python."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import types as T  # noqa: N812 - as every Spark program writes it
from streamcore import Column
from streamcore.spark.types import spark_schema, spark_type

from ..lexer import name_literal, text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE, TEXT, KIND = "__table", "__row", "__kind"
ROW = (TABLE, TEXT, KIND)
"""A row on its way from the source to the sink: its table, its JSON text and its kind."""
TOLD = ("__namespace_name__", "__schema_name__", "__table_name__", "__data_event_type__")
"""What expressions may use beside the columns of a table."""
HIDDEN = (TABLE, KIND)
"""What typed rows carry beside their columns."""
_NESTED = (T.ArrayType, T.MapType, T.StructType)
_STRICT = "map('mode', 'FAILFAST')"


def typed_schema(columns: Sequence[Column]) -> T.StructType:
    """What `to_columns` gives."""
    schema = spark_schema(columns)
    for name in (*TOLD, *HIDDEN):
        schema = schema.add(name, "string")
    return schema


def to_columns(
    rows: DataFrame, columns: Sequence[Column], forgiven: Collection[str] = ()
) -> DataFrame:
    """Text to columns; a value that does not fit stops the job, or is NULL in `forgiven` ones."""
    names = [name_literal(column.name) for column in columns]
    texts = ", ".join(f"{name} STRING" for name in names)
    parsed = f"from_json({TEXT}, {_literal(texts)}, {_STRICT}) AS __parsed"
    schema, table = f"substring_index({TABLE}, '.', -1)", TABLE
    before = f"substr({table}, 1, greatest(length({table}) - length({schema}) - 1, 0))"
    ahead = f"substring_index({before}, '.', -1)"
    namespace = f"substr({before}, 1, greatest(length({before}) - length({ahead}) - 1, 0))"
    told = (namespace, ahead, schema, KIND)
    values = [
        f"{_value(column, column.name in forgiven)} AS {name}"
        for column, name in zip(columns, names, strict=True)
    ]
    extra = [f"{value} AS {name}" for value, name in zip(told, TOLD, strict=True)]
    return rows.selectExpr(*ROW, parsed).selectExpr(*values, *extra, *HIDDEN)


def _value(column: Column, forgiven: bool) -> str:
    kind = spark_type(column.field)
    text = f"__parsed.{name_literal(column.name)}"
    if isinstance(kind, T.StringType):
        return text
    misfit = ""
    if isinstance(kind, T.BinaryType):
        tried = f"try_to_binary({text}, 'base64')"
    elif isinstance(kind, _NESTED):  # inside of something, where Spark tells a part that is wrong
        inside = _literal(f"v {kind.simpleString()}, _corrupt_record STRING")
        whole = f"from_json(concat('{{\"v\":', {text}, '}}'), {inside})"
        tried, misfit = f"{whole}.v", f"{whole}._corrupt_record"
    else:
        tried = f"try_cast({text} AS {kind.simpleString()})"
    if forgiven:
        return tried
    trouble = (
        f"concat('table ', {TABLE}, ', column ', {_literal(column.name)}, ': ', {text}, "
        f"{_literal(f' is not {column.type}')})"
    )
    refused = f"CAST(raise_error({trouble}) AS {kind.simpleString()})"
    if misfit:
        tried = f"CASE WHEN {misfit} IS NULL THEN {tried} END"
    return f"CASE WHEN {text} IS NULL THEN NULL ELSE coalesce({tried}, {refused}) END"


def to_text(columns: Sequence[Column], *, iso: bool = False) -> str:
    """The expression that writes columns as one JSON text, as the format `json` would."""
    members = ", ".join(f"{_literal(each.name)}, {_written(each, iso)}" for each in columns)
    nested = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS" if iso else "yyyy-MM-dd HH:mm:ss.SSSSSS"
    options = {
        "ignoreNullFields": "false",
        "timeZone": "UTC",
        "timestampFormat": f"{nested}'Z'",
        "timestampNTZFormat": nested,
    }
    told = ", ".join(_literal(word) for pair in options.items() for word in pair)
    return f"to_json(named_struct({members}), map({told}))"


def _written(column: Column, iso: bool) -> str:
    """Moments as JSON tells them; all else is written the same by everybody."""
    value, kind = name_literal(column.name), spark_type(column.field)
    if isinstance(kind, T.TimestampNTZType):
        text = f"CAST({value} AS STRING)"
    elif isinstance(kind, T.TimestampType):
        text = f"CAST({_in_utc(value)} AS STRING) || 'Z'"
    elif isinstance(kind, T.TimeType):
        return f"CAST({value} AS STRING)"
    else:
        return value
    return f"replace({text}, ' ', 'T')" if iso else text


def _in_utc(moment: str) -> str:
    """A moment as UTC tells it; counted, as a local clock has no name for some of them."""
    return f"(TIMESTAMP_NTZ '1970-01-01' + unix_micros({moment}) * INTERVAL '0.000001' SECOND)"


def _literal(text: str) -> str:
    """A text as Spark reads it, where a backslash escapes."""
    return text_literal(text.replace("\\", "\\\\")).replace("''", "\\'")
