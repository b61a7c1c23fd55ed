"""Which query columns may be stored in which sink columns, as Flink decides it."""

from __future__ import annotations

from pyspark.sql import types as T  # noqa: N812 - as every Spark program writes it
from streamcore.spark.types import sql_type

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_FRACTIONS = (T.DecimalType, T.FloatType, T.DoubleType)
_MOMENTS = (T.TimestampType, T.TimestampNTZType)


def storable(have: T.DataType, want: T.DataType) -> bool:
    """Whether a value may be stored without an explicit CAST.

    Numbers may grow. Whole numbers may also shrink, because Spark's SUM is wider than Flink's; a
    value that does not fit then fails the job instead of being cut.
    """
    if have == want or isinstance(have, T.NullType):
        return True
    if isinstance(have, _WHOLE):
        return isinstance(want, (*_WHOLE, *_FRACTIONS))
    if isinstance(have, T.DecimalType):
        return isinstance(want, _FRACTIONS)
    if isinstance(have, (T.FloatType, T.DoubleType)):
        return isinstance(want, (T.FloatType, T.DoubleType))
    if isinstance(have, T.StringType):
        return isinstance(want, T.StringType)
    if isinstance(have, _MOMENTS):
        return isinstance(want, (*_MOMENTS, T.DateType, T.TimeType))
    if isinstance(have, T.ArrayType) and isinstance(want, T.ArrayType):
        return storable(have.elementType, want.elementType)
    if isinstance(have, T.MapType) and isinstance(want, T.MapType):
        return storable(have.keyType, want.keyType) and storable(have.valueType, want.valueType)
    if isinstance(have, T.StructType) and isinstance(want, T.StructType):
        pairs = zip(have.fields, want.fields, strict=False)
        same_size = len(have.fields) == len(want.fields)
        return same_size and all(storable(a.dataType, b.dataType) for a, b in pairs)
    return type(have) is type(want)


def shown_type(kind: T.DataType) -> str:
    """A type in the words of the user's SQL."""
    try:
        return sql_type(kind)
    except TypeError:
        return kind.simpleString().upper()
