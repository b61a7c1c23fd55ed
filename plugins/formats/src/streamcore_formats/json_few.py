"""A few rows to JSON, where the fixed cost of Arrow's kernels would count more than their speed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any

import msgspec
import pyarrow as pa

from . import temporal
from .arrow_texts import has_bytes
from .json_write import CONTROL, Style

FEW = 512
"""Rows up to which this way is the cheaper one."""

Values = Callable[[pa.Array], "Sequence[Any] | None"]
"""The values of a column that msgspec writes as we would; None where it might not."""

Write = Callable[[pa.RecordBatch], "list[bytes] | None"]


def few_rows(schema: pa.Schema, style: Style) -> Write:
    """A writer of one object per row; answers None for rows it leaves to Arrow."""
    takers = [values_of(field.type, style) for field in schema]
    names = [f"f{position}" for position in range(len(takers))]
    try:
        row = msgspec.defstruct(
            "Row",
            [(name, Any, None) for name in names],
            rename=dict(zip(names, schema.names, strict=True)),
            omit_defaults=style.ignore_nulls,
            gc=False,
        )
    except ValueError:  # msgspec takes no names with quotes, backslashes or control characters
        takers = []
    encode = msgspec.json.Encoder().encode
    fields = list(schema)

    def write(rows: pa.RecordBatch) -> list[bytes] | None:
        if rows.num_rows > FEW or not takers:
            return None
        columns = []
        for field, take, array in zip(fields, takers, rows.columns, strict=True):
            if array.type != field.type or (array.null_count and not field.nullable):
                return None
            values = take(array)
            if values is None:
                return None
            columns.append(values)
        return list(map(encode, starmap(row, zip(*columns, strict=True))))

    return write


def values_of(kind: pa.DataType, style: Style) -> Values:
    """How the values of a column are taken; dates and times come as text."""
    types = pa.types
    if types.is_integer(kind) or types.is_boolean(kind):
        return lambda array: array.to_pylist()
    if types.is_string(kind):
        return lambda array: None if has_bytes(array, CONTROL) else array.to_pylist()
    if kind == pa.float64():
        return _doubles
    if types.is_temporal(kind) and not types.is_duration(kind):
        return lambda array: temporal.texts_of(array, style.iso).to_pylist()
    return lambda array: None


def _doubles(array: pa.DoubleArray) -> Sequence[Any] | None:
    """Numbers that neither Java nor msgspec writes with an exponent."""
    values: list[Any] = array.to_pylist()
    known = [value for value in values if value is not None] if array.null_count else values
    if not known or (min(known) >= 1e-3 and max(known) < 1e7 and sum(known) > 0):
        return values
    return None  # also for NaN, which spoils the sum
