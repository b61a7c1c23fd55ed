"""CREATE, ALTER and DROP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from .checks import problems_of
from .cursor import Cursor
from .errors import SqlError
from .pieces import (
    Declared,
    columns,
    declare,
    name,
    options,
    query,
    table_name,
)
from .statements import (
    Alteration,
    AlterTable,
    CreateFunction,
    CreateTable,
    CreateView,
    Distribution,
    Drop,
    DropParts,
    Like,
    LikeRule,
    Name,
    Placement,
    PutColumns,
    RenameColumn,
    RenameTable,
    ResetOptions,
    SetOptions,
    Statement,
)

_ELSEWHERE = {
    "CATALOG": "Tables live in one catalog; 'streamcore run --catalog DIR' keeps them on disk.",
    "DATABASE": "Databases need no creation: name a table database.table.",
    "MODEL": "Models are not supported; call the model from a Python function.",
    "MATERIALIZED": "Write the rows to a table of its own: CREATE TABLE, then INSERT INTO.",
}
_RULE_ACTIONS = ("INCLUDING", "EXCLUDING", "OVERWRITING")
_KEPT_WHOLE = ("ALL", "CONSTRAINTS", "DISTRIBUTION", "PARTITIONS")
_OVERWRITABLE = ("GENERATED", "OPTIONS", "WATERMARKS", "METADATA")


def create(cursor: Cursor) -> Statement:
    """Read what follows CREATE."""
    or_replace = cursor.accept("OR", "REPLACE")
    temporary = cursor.accept("TEMPORARY")
    system = temporary and cursor.accept("SYSTEM")
    _refuse_elsewhere(cursor, "CREATE")
    kind = cursor.one_of("FUNCTION") if system else cursor.one_of("TABLE", "VIEW", "FUNCTION")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        trouble = "OR REPLACE and IF NOT EXISTS contradict each other"
        raise SqlError(trouble, cursor.place(cursor.previous), "Keep one of them.")
    flags: dict[str, bool] = {"temporary": temporary, "if_not_exists": if_not_exists}
    if kind == "FUNCTION":
        return _function(cursor, system=system, **flags)
    if kind == "VIEW":
        return _view(cursor, or_replace=or_replace, **flags)
    return _table(cursor, or_replace=or_replace, **flags)


def _refuse_elsewhere(cursor: Cursor, verb: str) -> None:
    word = cursor.token.word
    if word in _ELSEWHERE:
        trouble = f"{verb} {word} is not supported"
        raise SqlError(trouble, cursor.place(cursor.token), _ELSEWHERE[word])


def _table(cursor: Cursor, **flags: Any) -> CreateTable:
    label = table_name(cursor)
    declared = Declared()
    with declared.told():
        if cursor.accept("("):
            declare(cursor, declared)
            while not cursor.accept(")"):
                if not cursor.accept(","):
                    cursor.fail("',' or ')'", words=("METADATA", "COMMENT", "PRIMARY"))
                declare(cursor, declared)
        clauses = _clauses(cursor)
        table = CreateTable(
            label,
            columns=tuple(declared.columns),
            watermark=declared.watermark,
            primary_key=declared.primary_key,
            **clauses,
            **flags,
        )
        declared.problems += problems_of(table)
    return table


def _clauses(cursor: Cursor) -> dict[str, Any]:
    """Read the clauses behind the columns, each at most once, in any order."""
    found: dict[str, Any] = {}
    while (word := cursor.token.word) in _CLAUSES:
        place = cursor.place(cursor.advance())
        key, read = _CLAUSES[word]
        if key in found:
            raise SqlError(f"{word} is written twice", place, "Keep one of them.")
        found[key] = read(cursor)
        if {"like", "query"} <= set(found):
            raise SqlError("a table is LIKE another or AS a query, not both", place)
    if not cursor.at_statement_end():
        cursor.fail("'WITH (...)', another clause or ';'", words=tuple(_CLAUSES))
    return found


def _comment(cursor: Cursor) -> str:
    return cursor.string("a comment in single quotes")


def _partitioned(cursor: Cursor) -> tuple[Name, ...]:
    cursor.expect("BY")
    return columns(cursor)


def _distribution(cursor: Cursor) -> Distribution:
    first = cursor.previous
    keys: tuple[Name, ...] = ()
    kind, buckets = None, None
    if cursor.accept("BY"):
        if not cursor.at("("):
            kind = cursor.one_of("HASH", "RANGE")
        keys = columns(cursor)
    if cursor.accept("INTO"):
        buckets = cursor.integer()
        cursor.expect("BUCKETS")
    if not keys and buckets is None:
        cursor.fail("'BY (columns)' or 'INTO n BUCKETS'")
    return Distribution(keys, cast(Any, kind), buckets, place=cursor.since(first))


def _like(cursor: Cursor) -> Like:
    first = cursor.previous
    table = table_name(cursor)
    rules: list[LikeRule] = []
    if cursor.accept("("):
        while not (rules and cursor.accept(")")):
            start = cursor.token
            action = cursor.one_of(*_RULE_ACTIONS)
            features = _OVERWRITABLE if action == "OVERWRITING" else _KEPT_WHOLE + _OVERWRITABLE
            feature = cursor.one_of(*features)
            rules.append(LikeRule(cast(Any, action), feature, place=cursor.since(start)))
    return Like(table, tuple(rules), place=cursor.since(first))


_CLAUSES: dict[str, tuple[str, Callable[[Cursor], Any]]] = {
    "COMMENT": ("comment", _comment),
    "DISTRIBUTED": ("distribution", _distribution),
    "PARTITIONED": ("partitioned_by", _partitioned),
    "WITH": ("options", options),
    "LIKE": ("like", _like),
    "AS": ("query", query),
}


def _view(cursor: Cursor, **flags: Any) -> CreateView:
    label = table_name(cursor)
    labels = columns(cursor) if cursor.at("(") else ()
    comment = _comment(cursor) if cursor.accept("COMMENT") else None
    cursor.expect("AS")
    return CreateView(label, query(cursor), labels, comment, **flags)


def _function(cursor: Cursor, **flags: Any) -> CreateFunction:
    label = name(cursor, "a function name")
    cursor.expect("AS")
    target = cursor.string("'module.function' in single quotes")
    hint = f"Write it in Python: CREATE FUNCTION {label} AS 'module.function' LANGUAGE PYTHON."
    if not cursor.at("LANGUAGE"):
        cursor.fail("'LANGUAGE PYTHON'", hint=hint)
    cursor.advance()
    if not cursor.accept("PYTHON"):
        cursor.fail("'PYTHON'", hint=hint)
    return CreateFunction(label, target, **flags)


def drop(cursor: Cursor) -> Drop:
    """Read what follows DROP."""
    temporary = cursor.accept("TEMPORARY")
    if temporary and cursor.at("SYSTEM", "FUNCTION"):
        cursor.advance()
    _refuse_elsewhere(cursor, "DROP")
    kind = cursor.one_of("TABLE", "VIEW", "FUNCTION")
    if_exists = cursor.accept("IF", "EXISTS")
    return Drop(cast(Any, kind), table_name(cursor), if_exists, temporary)


def alter(cursor: Cursor) -> AlterTable:
    """Read what follows ALTER."""
    if cursor.at("VIEW") or cursor.at("FUNCTION"):
        word = cursor.token.word
        hint = f"Drop the {word.lower()} and create it again."
        raise SqlError(f"ALTER {word} is not supported", cursor.place(cursor.token), hint)
    _refuse_elsewhere(cursor, "ALTER")
    cursor.expect("TABLE")
    if_exists = cursor.accept("IF", "EXISTS")
    label = table_name(cursor)
    first = cursor.token
    action = _alteration(cursor)
    return AlterTable(label, replace(action, place=cursor.since(first)), if_exists)


def _alteration(cursor: Cursor) -> Alteration:
    verb = cursor.one_of("SET", "RESET", "RENAME", "ADD", "MODIFY", "DROP")
    if verb == "SET":
        return SetOptions(options(cursor))
    if verb == "RESET":
        return ResetOptions(cursor.listed(lambda: cursor.string("an option key in single quotes")))
    if verb == "RENAME":
        if cursor.accept("TO"):
            return RenameTable(table_name(cursor))
        old = name(cursor, "a column name")
        cursor.expect("TO")
        return RenameColumn(old, cursor.identifier("a column name"))
    if verb == "DROP":
        return _drop_parts(cursor)
    return _put_columns(cursor, modify=verb == "MODIFY")


def _put_columns(cursor: Cursor, *, modify: bool) -> PutColumns:
    declared = Declared(column_stops=("COMMENT", "FIRST", "AFTER"))
    placements: list[Placement] = []

    def read() -> None:
        column = declare(cursor, declared)
        if column is not None:
            first = cursor.accept("FIRST")
            after = cursor.identifier() if not first and cursor.accept("AFTER") else None
            placements.append(Placement(column, first, after, place=column.place))

    with declared.told():
        if cursor.at("("):
            cursor.listed(read)
        else:
            read()
    return PutColumns(modify, tuple(placements), declared.watermark, declared.primary_key)


def _drop_parts(cursor: Cursor) -> DropParts:
    if cursor.accept("PRIMARY", "KEY"):
        return DropParts(primary_key=True)
    if cursor.accept("WATERMARK"):
        return DropParts(watermark=True)
    if cursor.accept("CONSTRAINT"):
        return DropParts(constraint=cursor.identifier("a constraint name"))
    if cursor.at("("):
        return DropParts(columns(cursor))
    return DropParts((name(cursor, "a column name"),))
