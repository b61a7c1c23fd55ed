"""SQL types that fit values seen: what JSON documents, CSV cells and texts have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..lexer import name_literal

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SQL_TIME = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(?:\.(\d{1,9}))?(Z?)")
_ISO_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.(\d{1,9}))?(Z?)")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass
class Shape:
    """What a place in the data held: kinds of values, and what is inside objects and arrays."""

    kinds: set[str] = field(default_factory=set)
    fields: dict[str, Shape] = field(default_factory=dict)
    items: Shape | None = None
    digits: int = 0
    times: set[str] = field(default_factory=set)
    """How timestamps are written here: 'SQL' or 'ISO-8601'."""
    values: list[Any] = field(default_factory=list)

    def add(self, value: Any) -> None:
        kind = self._kind(value)
        if kind:
            self.kinds.add(kind)
        if isinstance(value, dict):
            for name, inner in value.items():
                self.fields.setdefault(name, Shape()).add(inner)
        elif isinstance(value, list):
            self.items = self.items or Shape()
            for inner in value:
                self.items.add(inner)
        elif value is not None:
            self.values.append(value)

    def _kind(self, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, bool):
            return "BOOLEAN"
        if isinstance(value, int):
            return "BIGINT" if -(2**63) <= value < 2**63 else "DECIMAL"
        if isinstance(value, float):
            return "DOUBLE"
        if isinstance(value, dict):
            return "ROW"
        if isinstance(value, list):
            return "ARRAY"
        return self._text_kind(str(value))

    def _text_kind(self, text: str) -> str:
        if _DATE.fullmatch(text):
            return "DATE"
        for style, pattern in (("SQL", _SQL_TIME), ("ISO-8601", _ISO_TIME)):
            if match := pattern.fullmatch(text):
                self.times.add(style)
                self.digits = max(self.digits, len(match[1] or ""))
                return "TIMESTAMP_LTZ" if match[2] else "TIMESTAMP"
        return "STRING"

    # --- the answer --------------------------------------------------------------------

    def type(self) -> str:
        """The narrowest type that takes every value."""
        kinds = set(self.kinds)
        if kinds == {"BIGINT", "DOUBLE"}:
            return "DOUBLE"
        if kinds == {"DECIMAL"} or kinds == {"DECIMAL", "BIGINT"}:
            return "DECIMAL(38, 0)"
        if len(kinds) != 1:
            return "STRING"
        (kind,) = kinds
        if kind == "ROW":
            return _row(self.fields) if self.fields else "MAP<STRING, STRING>"
        if kind == "ARRAY":
            return f"ARRAY<{self.items.type() if self.items else 'STRING'}>"
        if kind in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return f"{kind}({3 if self.digits <= 3 else 6})"
        return kind

    def doubt(self) -> str:
        """What the type is unsure of; empty when it is not."""
        if not self.kinds:
            return "always null in the sample"
        if len(self.kinds) > 1 and self.type() == "STRING":
            return f"the sample has {', '.join(sorted(self.kinds))}"
        if self.kinds == {"ROW"} and not self.fields:
            return "always an empty object in the sample"
        return ""

    def styles(self) -> set[str]:
        """Every way timestamps are written here or further inside."""
        inner = [*self.fields.values(), *([self.items] if self.items else [])]
        return self.times.union(*(each.styles() for each in inner)) if inner else set(self.times)

    def demote_times(self, style: str) -> None:
        """Read timestamps of another style as text: a format knows one style only."""
        if self.times - {style}:
            self.kinds = {k for k in self.kinds if not k.startswith("TIMESTAMP")} | {"STRING"}
        for each in (*self.fields.values(), *([self.items] if self.items else [])):
            each.demote_times(style)


def _row(fields: dict[str, Shape]) -> str:
    named: dict[str, str] = {}
    for name, shape in fields.items():
        if name:  # and no two that are told apart by case alone
            named.setdefault(name.lower(), f"{quoted(name)} {shape.type()}")
    parts = named.values()
    return f"ROW<{', '.join(parts)}>" if parts else "MAP<STRING, STRING>"


def quoted(name: str) -> str:
    """A name as it is written in SQL: with backticks."""
    return name_literal(name)


def shape_of(documents: Iterable[Any]) -> Shape:
    """The shape of many values."""
    shape = Shape()
    for document in documents:
        shape.add(document)
    return shape
