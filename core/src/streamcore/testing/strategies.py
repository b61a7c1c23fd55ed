"""Hypothesis strategies for SQL types: any type, and rows of any schema."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ..types import SQL_TYPE, arrow_schema

SCALARS = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(10, 2)",
    "DECIMAL(38, 18)",
    "STRING",
    "CHAR(3)",
    "VARCHAR(12)",
    "BYTES",
    "BINARY(4)",
    "VARBINARY(8)",
    "DATE",
    "TIME(0)",
    "TIME(3)",
    "TIMESTAMP(0)",
    "TIMESTAMP(3)",
    "TIMESTAMP(6)",
    "TIMESTAMP_LTZ(3)",
    "TIMESTAMP_LTZ(6)",
    "INTERVAL YEAR TO MONTH",
    "INTERVAL DAY TO SECOND",
)
NESTED = (
    "ARRAY<INT>",
    "ARRAY<STRING NOT NULL>",
    "ARRAY<ARRAY<BIGINT>>",
    "MAP<STRING, INT>",
    "MULTISET<STRING>",
    "ROW<a INT, b STRING>",
    "ARRAY<ROW<a INT, b ARRAY<STRING>>>",
    "MAP<STRING, ROW<a DECIMAL(10, 2), b TIMESTAMP(3)>>",
)
EVERY_TYPE = SCALARS + NESTED
"""At least one SQL type of each sort, as text."""

_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_PLAIN: Mapping[pa.DataType, SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.float32(): st.floats(width=32, allow_nan=False, allow_infinity=False),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False),
    pa.date32(): st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)),
}
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}
_LONGEST_DAYS = 10_000


def sql_types(max_depth: int = 2) -> SearchStrategy[str]:
    """Texts of SQL types, nested up to a depth."""
    found = st.sampled_from(SCALARS)
    for _ in range(max_depth):
        inner = found
        found = st.one_of(
            st.sampled_from(SCALARS),
            inner.map(lambda text: f"ARRAY<{text}>"),
            inner.map(lambda text: f"MAP<STRING, {text}>"),
            st.lists(inner, min_size=1, max_size=3).map(
                lambda texts: "ROW<" + ", ".join(f"f{n} {t}" for n, t in enumerate(texts)) + ">"
            ),
        )
    return found


def schemas(max_columns: int = 5, types: SearchStrategy[str] | None = None) -> SearchStrategy[Any]:
    """Schemas of one to a few columns."""
    texts = st.lists(types or sql_types(), min_size=1, max_size=max_columns)
    return texts.map(lambda found: arrow_schema({f"c{n}": text for n, text in enumerate(found)}))


def rows(schema: pa.Schema) -> SearchStrategy[dict[str, Any]]:
    """Rows of a schema, as the dicts that `RecordBatch.from_pylist` takes and `to_pylist` gives."""
    return st.fixed_dictionaries({field.name: values(field) for field in schema})


def values(field: pa.Field) -> SearchStrategy[Any]:
    """Values of one column; None among them where it is nullable."""
    some = _some(field)
    return st.one_of(st.none(), some) if field.nullable else some


def _some(field: pa.Field) -> SearchStrategy[Any]:
    kind = field.type
    if kind in _BITS:
        edge = 2 ** (_BITS[kind] - 1)
        return st.integers(-edge, edge - 1)
    if kind in _PLAIN:
        return _PLAIN[kind]
    for fits, make in _MADE:
        if fits(kind):
            return make(field)
    raise TypeError(f"no strategy for {kind}")


def _texts(field: pa.Field) -> SearchStrategy[str]:
    word, length = _declared_length(field)
    if word == "CHAR":  # shorter ones would come back padded
        return st.text("abcXYZ019_-", min_size=length, max_size=length)
    return st.text(max_size=min(length, 40))


def _bytes(field: pa.Field) -> SearchStrategy[bytes]:
    word, length = _declared_length(field)
    least = length if word == "BINARY" else 0
    return st.binary(min_size=least, max_size=min(length, 40))


def _declared_length(field: pa.Field) -> tuple[str, int]:
    declared = (field.metadata or {}).get(SQL_TYPE, b"").decode()
    match = re.fullmatch(r"(\w+)\((\d+)\)", declared)
    return (match[1], int(match[2])) if match else ("", 40)


def _decimals(field: pa.Field) -> SearchStrategy[decimal.Decimal]:
    edge = 10**field.type.precision - 1
    exact = decimal.Context(prec=field.type.precision + 1)
    scale = -field.type.scale
    return st.integers(-edge, edge).map(lambda n: decimal.Decimal(n).scaleb(scale, exact))


def _timestamps(field: pa.Field) -> SearchStrategy[dt.datetime]:
    nanos = field.type.unit == "ns"  # 64 bits of nanoseconds end in 2262
    first, last = (1700, 2200) if nanos else (1, 9999)
    zone = dt.UTC if field.type.tz else None
    return st.datetimes(dt.datetime(first, 1, 1), dt.datetime(last, 12, 31)).map(
        lambda at: at.replace(microsecond=_rounded(at.microsecond, field.type.unit), tzinfo=zone)
    )


def _times(field: pa.Field) -> SearchStrategy[dt.time]:
    return st.times().map(
        lambda at: at.replace(microsecond=_rounded(at.microsecond, field.type.unit))
    )


def _rounded(micros: int, unit: str) -> int:
    return micros - micros % _MICROS[unit]


def _durations(field: pa.Field) -> SearchStrategy[dt.timedelta]:
    edge = dt.timedelta(days=_LONGEST_DAYS)
    return st.timedeltas(-edge, edge).map(
        lambda d: d // dt.timedelta(seconds=1) * dt.timedelta(seconds=1)
    )


def _lists(field: pa.Field) -> SearchStrategy[list[Any]]:
    return st.lists(values(field.type.value_field), max_size=3)


def _maps(field: pa.Field) -> SearchStrategy[dict[Any, Any]]:
    counts = SQL_TYPE in (field.metadata or {})  # a multiset: how often each element occurs
    items = st.integers(1, 2**31 - 1) if counts else values(field.type.item_field)
    return st.dictionaries(_some(field.type.key_field), items, max_size=3)


_MADE: list[tuple[Callable[[Any], bool], Callable[[Any], SearchStrategy[Any]]]] = [
    (pa.types.is_string, _texts),
    (pa.types.is_binary, _bytes),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_timestamp, _timestamps),
    (pa.types.is_time, _times),
    (pa.types.is_duration, _durations),
    (pa.types.is_list, _lists),
    (pa.types.is_map, _maps),
    (pa.types.is_struct, lambda field: rows(field.type)),
]
