"""Column types as the user named them, in one canonical spelling."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from .cursor import Cursor
from .errors import SqlError, did_you_mean
from .lexer import Kind, name_literal, text_literal, text_value
from .source import NOWHERE, Place

_ALIASES = {"INTEGER": "INT", "DEC": "DECIMAL", "NUMERIC": "DECIMAL"}
_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_PLAIN = ("STRING", "BYTES", "BOOLEAN", *_WHOLE, "FLOAT", "DOUBLE", "DATE", "VARIANT")
LONGEST = 2**31 - 1
# name: default arguments, then the least and the greatest value of each
_SIZED: dict[str, tuple[tuple[int, ...], tuple[tuple[int, int], ...]]] = {
    "CHAR": ((1,), ((1, LONGEST),)),
    "VARCHAR": ((LONGEST,), ((1, LONGEST),)),
    "BINARY": ((1,), ((1, LONGEST),)),
    "VARBINARY": ((LONGEST,), ((1, LONGEST),)),
    "DECIMAL": ((10, 0), ((1, 38), (0, 38))),
    "TIME": ((0,), ((0, 9),)),
    "TIMESTAMP": ((6,), ((0, 9),)),
    "TIMESTAMP_LTZ": ((6,), ((0, 9),)),
}
_DEEPEST = 50  # deeper ones are no table's, and would exhaust whoever follows them down
_NESTED = {"ARRAY": 1, "MULTISET": 1, "MAP": 2}
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_LAST_UNIT = {"YEAR": ("MONTH",), "DAY": _UNITS[3:], "HOUR": _UNITS[4:], "MINUTE": _UNITS[5:]}
_UNSUPPORTED = {
    "RAW": "Declare the column as BYTES and decode it in the query.",
    "NULL": "Give the column a type, such as STRING.",
    "BITMAP": "Declare the column as BYTES.",
    "DESCRIPTOR": "A descriptor is an argument of a function, not a column.",
    "SYMBOL": "A symbol is an argument of a function, not a column.",
}
_KNOWN = (*_PLAIN, *_SIZED, *_NESTED, *_ALIASES, "ROW", "INTERVAL")
_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Field:
    """A field of a ROW."""

    name: str
    type: TypeName
    comment: str | None = None
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class TypeName:
    """A type: `items` are the types inside ARRAY, MULTISET and MAP, `fields` those of a ROW."""

    name: str
    args: tuple[int, ...] = ()
    items: tuple[TypeName, ...] = ()
    fields: tuple[Field, ...] = ()
    nullable: bool = True
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def sql(self) -> str:
        """The canonical text, such as `ROW<a INT, b ARRAY<STRING NOT NULL>>`."""
        text = self.name
        if self.args:
            text += f"({', '.join(map(str, self.args))})"
        if self.items:
            text += f"<{', '.join(item.sql() for item in self.items)}>"
        if self.name == "ROW":
            text += f"<{', '.join(map(_field_sql, self.fields))}>"
        return text if self.nullable else text + " NOT NULL"


def _field_sql(part: Field) -> str:
    name = part.name if _SIMPLE.fullmatch(part.name) else name_literal(part.name)
    comment = "" if part.comment is None else f" {text_literal(part.comment)}"
    return f"{name} {part.type.sql()}{comment}"


def parse_type(cursor: Cursor, depth: int = 0) -> TypeName:
    """Read a type, with its NOT NULL and any trailing ARRAY or MULTISET."""
    start = cursor.token
    found = _nullability(cursor, _bare_type(cursor, _deeper(cursor, depth)))
    while cursor.at("ARRAY") or cursor.at("MULTISET"):
        depth = _deeper(cursor, depth)
        name = cursor.advance().word
        found = _nullability(cursor, TypeName(name, items=(found,)))
    return replace(found, place=cursor.since(start))


def _deeper(cursor: Cursor, depth: int) -> int:
    if depth >= _DEEPEST:
        place = cursor.place(cursor.token)
        raise SqlError(f"a type is nested deeper than {_DEEPEST} levels", place)
    return depth + 1


def _nullability(cursor: Cursor, found: TypeName) -> TypeName:
    if cursor.accept("NOT", "NULL"):
        return replace(found, nullable=False)
    cursor.accept("NULL")
    return found


def _bare_type(cursor: Cursor, depth: int) -> TypeName:
    token = cursor.token
    if token.kind is not Kind.WORD:
        cursor.fail("a type")
    name = _ALIASES.get(cursor.advance().word, token.word)
    if name in _UNSUPPORTED:
        place = cursor.place(token)
        raise SqlError(f"type '{name}' has no counterpart in Spark", place, _UNSUPPORTED[name])
    if name in _PLAIN:
        if name == "DOUBLE":
            cursor.accept("PRECISION")
        return TypeName(name)
    if name in _SIZED:
        return _sized(cursor, name)
    if name in _NESTED:
        return _nested(cursor, name, depth)
    if name == "ROW":
        return TypeName(name, fields=_fields(cursor, depth))
    if name == "INTERVAL":
        return TypeName(_interval(cursor))
    place = cursor.place(token)
    raise SqlError(f"no type called '{place.text}'", place, did_you_mean(name, _KNOWN))


def _sized(cursor: Cursor, name: str) -> TypeName:
    default, bounds = _SIZED[name]
    args = list(default)
    if cursor.accept("("):
        for index, (low, high) in enumerate(bounds):
            if index and not cursor.accept(","):
                break
            token = cursor.token
            args[index] = cursor.integer()
            if not low <= args[index] <= high:
                trouble = f"{args[index]} is not between {low} and {high}"
                raise SqlError(f"{name}: {trouble}", cursor.place(token))
        cursor.expect(")")
        if name == "DECIMAL" and args[1] > args[0]:
            trouble = f"{name}: the scale {args[1]} is more than the precision {args[0]}"
            raise SqlError(trouble, cursor.place(token))
    if name in ("TIMESTAMP", "TIME"):
        name = _zone(cursor, name)
    return TypeName(name, tuple(args))


def _zone(cursor: Cursor, name: str) -> str:
    start = cursor.token
    if cursor.accept("WITH", "LOCAL", "TIME", "ZONE"):
        return "TIMESTAMP_LTZ"
    if cursor.accept("WITH", "TIME", "ZONE"):
        trouble = f"type '{name} WITH TIME ZONE' has no counterpart in Spark"
        hint = "Write TIMESTAMP_LTZ, a point in time shown in the session's zone."
        raise SqlError(trouble, cursor.since(start), hint)
    cursor.accept("WITHOUT", "TIME", "ZONE")
    return name


def _nested(cursor: Cursor, name: str, depth: int) -> TypeName:
    cursor.expect("<")
    items = [parse_type(cursor, depth)]
    while len(items) < _NESTED[name]:
        cursor.expect(",")
        items.append(parse_type(cursor, depth))
    cursor.expect(">")
    return TypeName(name, items=tuple(items))


def _fields(cursor: Cursor, depth: int) -> tuple[Field, ...]:
    if cursor.accept("<>"):
        return ()
    close = ")" if cursor.at("(") else ">"
    if not cursor.accept("("):
        cursor.expect("<")
    fields: list[Field] = []
    while not (cursor.at(close) and not fields):
        start = cursor.token
        name = cursor.identifier("a field name")
        kind = parse_type(cursor, depth)
        comment = None
        if cursor.token.kind is Kind.STRING:
            comment = text_value(cursor.text(cursor.advance()))
        fields.append(Field(name, kind, comment, cursor.since(start)))
        if not cursor.accept(","):
            break
    cursor.expect(close)
    return tuple(fields)


def _interval(cursor: Cursor) -> str:
    """Spark's intervals have one precision, so a written one is dropped."""
    first = cursor.one_of(*_UNITS)
    _skip_precision(cursor)
    if first in _LAST_UNIT and cursor.accept("TO"):
        last = cursor.one_of(*_LAST_UNIT[first])
        _skip_precision(cursor)
        return f"INTERVAL {first} TO {last}"
    return f"INTERVAL {first}"


def _skip_precision(cursor: Cursor) -> None:
    if cursor.accept("("):
        cursor.integer()
        if cursor.accept(","):
            cursor.integer()
        cursor.expect(")")
