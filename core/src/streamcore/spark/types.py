"""SQL type text to Spark types and back, and the Arrow schema Spark expects from us."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - as every Spark program writes it
from pyspark.sql.pandas.types import to_arrow_schema

from ..table import ROW_KIND, Column, Table
from ..types import SQL_TYPE, arrow_field

FIELD = "streamcore"
"""Where a StructField's metadata keeps what Spark's types cannot say."""

_SIMPLE: dict[pa.DataType, T.DataType] = {
    pa.string(): T.StringType(),
    pa.bool_(): T.BooleanType(),
    pa.int8(): T.ByteType(),
    pa.int16(): T.ShortType(),
    pa.int32(): T.IntegerType(),
    pa.int64(): T.LongType(),
    pa.float32(): T.FloatType(),
    pa.float64(): T.DoubleType(),
    pa.binary(): T.BinaryType(),
    pa.date32(): T.DateType(),
}
_SQL = {
    T.StringType: "STRING",
    T.BooleanType: "BOOLEAN",
    T.ByteType: "TINYINT",
    T.ShortType: "SMALLINT",
    T.IntegerType: "INT",
    T.LongType: "BIGINT",
    T.FloatType: "FLOAT",
    T.DoubleType: "DOUBLE",
    T.BinaryType: "BYTES",
    T.DateType: "DATE",
    T.TimestampType: "TIMESTAMP_LTZ(6)",
    T.TimestampNTZType: "TIMESTAMP(6)",
    T.TimeType: "TIME(6)",
    T.DayTimeIntervalType: "INTERVAL DAY TO SECOND",
}


def spark_type(field: pa.Field) -> T.DataType:
    """The Spark type that carries an Arrow field of ours."""
    arrow = field.type
    if arrow in _SIMPLE:
        return _SIMPLE[arrow]
    if pa.types.is_decimal(arrow):
        return T.DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_timestamp(arrow):
        return T.TimestampType() if arrow.tz else T.TimestampNTZType()
    if pa.types.is_time(arrow):
        return T.TimeType(6)
    if pa.types.is_duration(arrow):
        return T.DayTimeIntervalType()
    if pa.types.is_list(arrow):
        return T.ArrayType(spark_type(arrow.value_field))
    if pa.types.is_map(arrow):
        return T.MapType(spark_type(arrow.key_field), spark_type(arrow.item_field))
    if pa.types.is_struct(arrow):
        return T.StructType([T.StructField(f.name, spark_type(f)) for f in arrow])
    raise TypeError(f"no Spark type for {arrow}")


def spark_schema(columns: Iterable[Column]) -> T.StructType:
    """The columns as Spark sees them; all nullable, because Spark never checks our batches."""
    return T.StructType([T.StructField(c.name, spark_type(c.field), True) for c in columns])


def arrow_output(columns: Iterable[Column]) -> pa.Schema:
    """The schema every batch handed to Spark must have, to the letter."""
    return to_arrow_schema(spark_schema(columns), timezone="UTC")


def carried(column: Column, key_position: int | None = None) -> dict[str, object]:
    """The StructField metadata that makes a plain Spark schema carry this column's declaration."""
    extra: dict[str, object] = {"type": column.type, "nullable": column.nullable}
    if column.metadata:
        extra |= {"metadata": column.metadata, "virtual": column.virtual}
    if key_position is not None:
        extra["primary-key"] = key_position
    return {FIELD: extra}


def table_of(schema: T.StructType, name: str = "") -> Table:
    """The table a plain Spark schema describes, with the help of its fields' metadata."""
    columns, keys, partitions = [], {}, {}
    for field in schema:
        extra = (field.metadata or {}).get(FIELD, {})
        text = extra.get("type") or sql_type(field.dataType)
        nullable = bool(extra.get("nullable", field.nullable))
        metadata = extra.get("metadata") or ("row-kind" if field.name == ROW_KIND else None)
        virtual = bool(extra.get("virtual", False))
        columns.append(Column(field.name, text, nullable, metadata, virtual))
        if "primary-key" in extra:
            keys[extra["primary-key"]] = field.name
        if "partition-key" in extra:
            partitions[extra["partition-key"]] = field.name
    primary, partition = (tuple(found[at] for at in sorted(found)) for found in (keys, partitions))
    return Table(tuple(columns), name, primary, partition)


def sql_type(kind: T.DataType) -> str:
    """The SQL text of a Spark type."""
    if isinstance(kind, T.DecimalType):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if isinstance(kind, T.ArrayType):
        return f"ARRAY<{sql_type(kind.elementType)}>"
    if isinstance(kind, T.MapType):
        return f"MAP<{sql_type(kind.keyType)}, {sql_type(kind.valueType)}>"
    if isinstance(kind, T.StructType):
        return "ROW<" + ", ".join(f"`{f.name}` {sql_type(f.dataType)}" for f in kind) + ">"
    if isinstance(kind, (T.CharType, T.VarcharType)):
        return f"{kind.typeName().upper()}({kind.length})"
    for spark, text in _SQL.items():
        if isinstance(kind, spark):
            return text
    raise TypeError(f"Spark type '{kind.simpleString()}' has no SQL type here")


__all__ = [
    "FIELD",
    "SQL_TYPE",
    "arrow_field",
    "arrow_output",
    "carried",
    "spark_schema",
    "spark_type",
    "sql_type",
    "table_of",
]
