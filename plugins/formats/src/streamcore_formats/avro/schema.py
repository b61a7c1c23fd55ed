"""Avro schemas as small objects: names resolved, aliases and defaults kept, nesting bounded."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

PRIMITIVES = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string"),
)
NO_DEFAULT = object()
"""Marks a field without default; None is a default of its own."""

_DEEPEST = 200
_LARGEST_FIXED = 1 << 24


class SchemaError(ValueError):
    """A text that is no Avro schema."""


@dataclasses.dataclass(eq=False, slots=True)
class Type:
    """One Avro type; a named type that refers to itself is the same object again."""

    kind: str
    logical: str = ""
    precision: int = 0
    scale: int = 0
    name: str = ""
    fields: list[Field] = dataclasses.field(default_factory=list)
    symbols: list[str] = dataclasses.field(default_factory=list)
    symbol_default: str | None = None
    branches: list[Type] = dataclasses.field(default_factory=list)
    size: int = 0
    _items: Type | None = None

    @property
    def items(self) -> Type:
        """What an array holds, or the values of a map."""
        assert self._items is not None
        return self._items

    @property
    def label(self) -> str:
        """How this type is called in a message to the user."""
        if self.kind == "union":
            return "[" + ", ".join(branch.label for branch in self.branches) + "]"
        return f"{self.kind} '{self.name}'" if self.name else self.logical or self.kind

    def without_null(self) -> tuple[Type, bool]:
        """Split a union of one type, with or without null, into that type and its nullability."""
        if self.kind != "union":
            return self, self.kind == "null"
        others = [branch for branch in self.branches if branch.kind != "null"]
        nullable = len(others) < len(self.branches)
        return (others[0], nullable) if len(others) == 1 else (self, nullable)


@dataclasses.dataclass(eq=False, slots=True)
class Field:
    """A field of a record."""

    name: str
    type: Type
    aliases: tuple[str, ...] = ()
    default: Any = NO_DEFAULT


def parse(text: str, others: Sequence[str] = ()) -> Type:
    """Read a schema, which may name types of `others`; SchemaError says where it goes wrong."""
    parser = _Parser()
    for other in others:
        parser.type(_json(other), "", "", 0)
    return parser.type(_json(text), "", "", 0)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise SchemaError(f"nested deeper than {_DEEPEST} levels") from None
    except ValueError as error:
        # Registries hand out a bare primitive both as `"string"` and as `string`.
        if text.strip() not in PRIMITIVES:
            raise SchemaError(f"not JSON: {error}") from None
        return text.strip()


class _Parser:
    """Knows the named types seen so far."""

    def __init__(self) -> None:
        self.named: dict[str, Type] = {}

    def type(self, plain: Any, space: str, where: str, depth: int) -> Type:
        if depth > _DEEPEST:
            raise SchemaError(f"nested deeper than {_DEEPEST} levels")
        if isinstance(plain, str):
            return self._reference(plain, space, where)
        if isinstance(plain, list):
            return self._union(plain, space, where, depth)
        if not isinstance(plain, dict):
            raise SchemaError(f"{where or 'the schema'}: expected a type, found '{plain}'")
        kind = plain.get("type")
        if isinstance(kind, dict | list):
            return self.type(kind, space, where, depth + 1)
        build = {
            "record": self._record,
            "error": self._record,
            "enum": self._enum,
            "fixed": self._fixed,
            "array": self._array,
            "map": self._map,
        }.get(str(kind))
        if build is None:
            found = self._reference(kind, space, where)
            return self._annotated(found, plain) if kind in PRIMITIVES else found
        return build(plain, space, where, depth)

    def _reference(self, name: Any, space: str, where: str) -> Type:
        if name in PRIMITIVES:
            return Type(name)
        full = name if not isinstance(name, str) or "." in name or not space else f"{space}.{name}"
        found = self.named.get(full) or self.named.get(name)
        if found is None:
            raise SchemaError(f"{where or 'the schema'}: unknown type '{name}'")
        return found

    def _union(self, plain: list[Any], space: str, where: str, depth: int) -> Type:
        union = Type("union")
        for branch in plain:
            found = self.type(branch, space, where, depth + 1)
            if found.kind == "union":
                raise SchemaError(f"{where or 'the schema'}: a union directly inside a union")
            union.branches.append(found)
        if not union.branches:
            raise SchemaError(f"{where or 'the schema'}: a union without branches")
        return union

    def _record(self, plain: dict[str, Any], space: str, where: str, depth: int) -> Type:
        record, space = self._named("record", plain, space, where)
        fields = plain.get("fields")
        if not isinstance(fields, list):
            raise SchemaError(f"{record.label}: has no list of fields")
        seen = set()
        for field in fields:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise SchemaError(f"{record.label}: a field without name")
            name = field["name"]
            inside = f"{where}.{name}" if where else name
            if name in seen:
                raise SchemaError(f"{inside}: declared twice")
            seen.add(name)
            found = self.type(field.get("type"), space, inside, depth + 1)
            aliases = tuple(field.get("aliases") or ())
            default = field.get("default", NO_DEFAULT)
            record.fields.append(Field(name, found, aliases, default))
        return record

    def _enum(self, plain: dict[str, Any], space: str, where: str, depth: int) -> Type:
        enum, _ = self._named("enum", plain, space, where)
        symbols = plain.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(s, str) for s in symbols):
            raise SchemaError(f"{enum.label}: has no list of symbols")
        enum.symbols = symbols
        enum.symbol_default = plain.get("default")
        return enum

    def _fixed(self, plain: dict[str, Any], space: str, where: str, depth: int) -> Type:
        fixed, _ = self._named("fixed", plain, space, where)
        size = plain.get("size")
        if not isinstance(size, int) or not 0 <= size <= _LARGEST_FIXED:
            raise SchemaError(f"{fixed.label}: size '{size}' is not from 0 to {_LARGEST_FIXED}")
        fixed.size = size
        return self._annotated(fixed, plain)

    def _array(self, plain: dict[str, Any], space: str, where: str, depth: int) -> Type:
        return Type("array", _items=self.type(plain.get("items"), space, where, depth + 1))

    def _map(self, plain: dict[str, Any], space: str, where: str, depth: int) -> Type:
        return Type("map", _items=self.type(plain.get("values"), space, where, depth + 1))

    def _named(self, kind: str, plain: dict[str, Any], space: str, where: str) -> tuple[Type, str]:
        name = plain.get("name")
        if not isinstance(name, str) or not name:
            raise SchemaError(f"{where or 'the schema'}: {kind} without name")
        if "." not in name:
            space = plain["namespace"] if isinstance(plain.get("namespace"), str) else space
            name = f"{space}.{name}" if space else name
        space = name.rpartition(".")[0]
        if name in self.named:
            raise SchemaError(f"{where or 'the schema'}: '{name}' is defined twice")
        found = self.named[name] = Type(kind, name=name)
        return found, space

    def _annotated(self, found: Type, plain: dict[str, Any]) -> Type:
        """Note the logical type; one that does not fit its type is ignored, as Avro asks."""
        logical = plain.get("logicalType")
        if logical == "decimal" and found.kind in ("bytes", "fixed"):
            precision, scale = plain.get("precision"), plain.get("scale", 0)
            if not isinstance(precision, int) or not isinstance(scale, int):
                return found
            if not 0 <= scale <= precision or precision < 1:
                return found
            found.logical, found.precision, found.scale = "decimal", precision, scale
        elif isinstance(logical, str) and LOGICAL.get(logical) == found.kind:
            found.logical = logical
        return found


LOGICAL = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "uuid": "string",
}
"""The logical types that matter here, with the type each must annotate."""


def least_bytes(avro: Type, known: dict[int, int] | None = None) -> int:
    """How few bytes a datum of this type can take."""
    known = {} if known is None else known
    if avro.kind == "null":
        return 0
    if avro.kind == "fixed":
        return avro.size
    if avro.kind != "record":
        return 1
    if id(avro) not in known:
        known[id(avro)] = 1  # what a record inside itself counts for
        known[id(avro)] = sum(least_bytes(field.type, known) for field in avro.fields)
    return known[id(avro)]
