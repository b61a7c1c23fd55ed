"""The pieces several statements share: names, options, columns and what else a table declares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .cursor import Cursor, SqlText
from .errors import SqlError
from .lexer import Kind
from .source import Place
from .statements import (
    Column,
    ComputedColumn,
    MetadataColumn,
    Name,
    Option,
    PhysicalColumn,
    PrimaryKey,
    Watermark,
)
from .typename import TypeName, parse_type

_AFTER_TYPE = ("METADATA", "COMMENT", "PRIMARY", "CONSTRAINT")


def name(cursor: Cursor, what: str = "a name") -> Name:
    """Read a dotted name."""
    first = cursor.token
    parts = [cursor.identifier(what)]
    while cursor.accept("."):
        parts.append(cursor.identifier())
    return Name(tuple(parts), place=cursor.since(first))


def table_name(cursor: Cursor) -> Name:
    """Read `[[catalog.]database.]table`."""
    found = name(cursor, "a table name")
    if len(found.parts) > 3:
        hint = "A full name is catalog.database.table; quote dots in a name with backticks."
        raise SqlError(f"'{found}' has {len(found.parts)} parts", found.place, hint)
    return found


def columns(cursor: Cursor) -> tuple[Name, ...]:
    """Read `(column, ...)`."""
    return cursor.listed(lambda: name(cursor, "a column name"))


def options(cursor: Cursor) -> tuple[Option, ...]:
    """Read `('key' = 'value', ...)`; a key written twice is a mistake somebody wants to know."""
    found = cursor.listed(lambda: option(cursor)) if not cursor.at("(", ")") else ()
    if not found:
        cursor.expect("(", ")")
    seen: dict[str, Option] = {}
    twice = [
        SqlError(f"option '{each.key}' is given twice", each.place, "Keep one of them.")
        for each in found
        if seen.setdefault(each.key, each) is not each
    ]
    if twice:
        raise SqlError.together(twice)
    return found


def option(cursor: Cursor) -> Option:
    """Read `'key' = 'value'`."""
    first = cursor.token
    key = cursor.string("an option key in single quotes")
    cursor.expect("=")
    at = cursor.token
    value = cursor.string("the value in single quotes")
    secret = cursor.source.is_secret(at.start, at.end)
    return Option(key, value, secret, place=cursor.since(first))


def hint_options(cursor: Cursor) -> tuple[Option, ...]:
    """Read an `/*+ OPTIONS(...) */` hint, if one is here."""
    if cursor.token.kind is not Kind.HINT:
        return ()
    return options_of_hint(cursor.place(cursor.advance()))


def options_of_hint(hint: Place) -> tuple[Option, ...]:
    """The options in the `/*+ OPTIONS(...) */` hint at a place."""
    inner = Cursor(hint.source, hint.start + len("/*+"), hint.end - len("*/"))
    inner.expect("OPTIONS")
    found = options(inner)
    if not inner.at_end():
        inner.fail("one OPTIONS(...)")
    return found


@dataclass
class Declared:
    """What the parentheses of a table hold."""

    columns: list[Column] = field(default_factory=list)
    watermark: Watermark | None = None
    primary_key: PrimaryKey | None = None
    column_stops: tuple[str, ...] = ("COMMENT",)
    problems: list[SqlError] = field(default_factory=list)
    """Mistakes that reading could go on after."""

    @contextmanager
    def told(self) -> Iterator[None]:
        """Tell of them at the end of this, together with a mistake that ends the reading."""
        try:
            yield
        except SqlError as problem:
            raise SqlError.together([*self.problems, *problem.problems]) from None
        if self.problems:
            raise SqlError.together(self.problems)


def declare(cursor: Cursor, into: Declared) -> Column | None:
    """Read one element of a table into `into`; return it if it is a column."""
    first = cursor.token
    if cursor.at("WATERMARK", "FOR"):
        _watermark(cursor, into)
        return None
    if cursor.at("CONSTRAINT") or cursor.at("PRIMARY", "KEY"):
        label = cursor.identifier("a constraint name") if cursor.accept("CONSTRAINT") else None
        cursor.expect("PRIMARY", "KEY")
        keys = columns(cursor)
        _not_enforced(cursor, into)
        _set_key(into, PrimaryKey(keys, label, place=cursor.since(first)))
        return None
    if cursor.at("UNIQUE") and cursor.peek(1).word == "(":
        hint = "Declare PRIMARY KEY (...) NOT ENFORCED instead."
        raise SqlError("UNIQUE constraints are not supported", cursor.place(first), hint)
    column = _column(cursor, into)
    into.columns.append(column)
    return column


def _watermark(cursor: Cursor, into: Declared) -> None:
    first = cursor.token
    cursor.expect("WATERMARK", "FOR")
    column = name(cursor, "a column name")
    cursor.expect("AS")
    expression = cursor.verbatim("an expression")
    found = Watermark(column, expression, place=cursor.since(first))
    if into.watermark is not None:
        raise SqlError("a table has one WATERMARK, this is the second", found.place)
    into.watermark = found


def _column(cursor: Cursor, into: Declared) -> Column:
    first = cursor.token
    label = cursor.identifier("a column name")
    if cursor.accept("AS"):
        expression = cursor.verbatim("an expression", stops=into.column_stops)
        return ComputedColumn(label, expression, _comment(cursor), place=cursor.since(first))
    kind = _type(cursor, into)
    if cursor.accept("METADATA"):
        key = cursor.string("a metadata key in single quotes") if cursor.accept("FROM") else label
        virtual = cursor.accept("VIRTUAL")
        comment = _comment(cursor)
        place = cursor.since(first)
        return MetadataColumn(label, kind, key, virtual, comment, place=place)
    comment = _comment(cursor)
    if cursor.at("CONSTRAINT") or cursor.at("PRIMARY"):
        start = cursor.token
        owner = cursor.identifier("a constraint name") if cursor.accept("CONSTRAINT") else None
        cursor.expect("PRIMARY", "KEY")
        _not_enforced(cursor, into)
        column = Name((label,), place=cursor.place(first))
        _set_key(into, PrimaryKey((column,), owner, place=cursor.since(start)))
    comment = _comment(cursor) if comment is None else comment
    return PhysicalColumn(label, kind, comment, place=cursor.since(first))


def _type(cursor: Cursor, into: Declared) -> TypeName:
    """Read a type; one that does not exist is noted, and its size or precision passed over."""
    first = cursor.token
    try:
        return parse_type(cursor)
    except SqlError as problem:
        if cursor.previous is not first or first.word not in problem.place.text.upper():
            raise
        if cursor.accept("("):
            cursor.verbatim("a size", query=True)
            cursor.expect(")")
        cursor.accept("NOT", "NULL")
        if not (cursor.at(",") or cursor.at(")") or cursor.token.word in _AFTER_TYPE):
            raise
        into.problems.append(problem)
        return TypeName("STRING")


def _comment(cursor: Cursor) -> str | None:
    return cursor.string("a comment in single quotes") if cursor.accept("COMMENT") else None


def _not_enforced(cursor: Cursor, into: Declared) -> None:
    if cursor.accept("NOT", "ENFORCED"):
        return
    hint = "A stream cannot enforce a key: write PRIMARY KEY (...) NOT ENFORCED."
    try:
        cursor.fail("'NOT ENFORCED'", hint=hint)
    except SqlError as problem:
        if not (cursor.at(",") or cursor.at(")")):
            raise
        into.problems.append(problem)


def _set_key(into: Declared, key: PrimaryKey) -> None:
    if into.primary_key is not None:
        hint = "Several columns make one key: PRIMARY KEY (a, b) NOT ENFORCED."
        raise SqlError("a table has one PRIMARY KEY, this is the second", key.place, hint)
    into.primary_key = key


def query(cursor: Cursor, stops: tuple[str, ...] = ()) -> SqlText:
    """Read a query verbatim."""
    if not (cursor.at("(") or cursor.token.word in QUERY_STARTS):
        cursor.fail("a query", words=QUERY_STARTS)
    return cursor.verbatim("a query", stops=stops, query=True)


QUERY_STARTS = ("SELECT", "WITH", "VALUES")
