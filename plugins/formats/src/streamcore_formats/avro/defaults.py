"""The value of a field that the writer does not have."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from .schema import NO_DEFAULT, SchemaError, Type


def default_value(avro: Type, plain: Any, field: pa.Field) -> Any:
    """Turn a default, as its schema's JSON has it, into what Arrow holds for `field`."""
    bare, _ = avro.without_null()
    if plain is None:
        if not field.nullable:
            raise SchemaError(f"'{field.name}': null is no default for NOT NULL")
        return None
    try:
        return _value(bare, plain, field.type)
    except (TypeError, ValueError, LookupError, AttributeError):
        raise SchemaError(f"'{field.name}': '{plain}' is no default for {bare.label}") from None


def _value(avro: Type, plain: Any, arrow: pa.DataType) -> Any:
    if pa.types.is_decimal(arrow):
        unscaled = int.from_bytes(plain.encode("latin-1"), "big", signed=True)
        return Decimal(unscaled).scaleb(-avro.scale)
    if avro.kind in ("bytes", "fixed"):
        return plain.encode("latin-1")
    if avro.kind == "array":
        return [default_value(avro.items, item, arrow.value_field) for item in plain]
    if avro.kind == "map":
        field = arrow.item_field
        return [(key, default_value(avro.items, item, field)) for key, item in plain.items()]
    if avro.kind == "record":
        return {each.name: _member(each, plain, arrow) for each in avro.fields}
    wanted: Any = {"boolean": bool, "string": str, "enum": str}.get(avro.kind, (int, float))
    if not isinstance(plain, wanted) or (wanted is not bool and isinstance(plain, bool)):
        raise TypeError
    return plain


def _member(each: Any, plain: Any, arrow: pa.DataType) -> Any:
    value = plain.get(each.name, each.default)
    if value is NO_DEFAULT:
        raise LookupError
    return default_value(each.type, value, arrow.field(each.name))
