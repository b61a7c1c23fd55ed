"""Texts, names and types as Spark SQL writes them."""

from __future__ import annotations

import re

from ..lexer import name_literal
from ..typename import TypeName

_SAME = {"CHAR": "STRING", "VARCHAR": "STRING", "BYTES": "BINARY", "VARBINARY": "BINARY"}
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_SIMPLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def spark_literal(value: str) -> str:
    """A string literal; in Spark, unlike in Flink, a backslash escapes."""
    return "'" + "".join(_ESCAPES.get(character, character) for character in value) + "'"


def spark_name(name: str) -> str:
    """An identifier, quoted only where it must be."""
    return name if _SIMPLE.fullmatch(name) else name_literal(name)


def spark_type(kind: TypeName) -> str:
    """A type in a CAST; lengths and the precision of points in time have no counterpart."""
    if kind.name == "TIMESTAMP":
        return "TIMESTAMP_NTZ"
    if kind.name == "TIMESTAMP_LTZ":
        return "TIMESTAMP"
    if kind.name == "TIME":
        return f"TIME({min(kind.args[0], 6)})"
    if kind.name == "DECIMAL":
        return f"DECIMAL({kind.args[0]}, {kind.args[1]})"
    if kind.name == "ROW":
        fields = (f"{spark_name(f.name)}: {spark_type(f.type)}" for f in kind.fields)
        return f"STRUCT<{', '.join(fields)}>"
    if kind.name == "MULTISET":
        return f"MAP<{spark_type(kind.items[0])}, INT>"
    if kind.items:
        return f"{kind.name}<{', '.join(map(spark_type, kind.items))}>"
    return "BINARY" if kind.name == "BINARY" else _SAME.get(kind.name, kind.name)
