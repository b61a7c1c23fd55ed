"""Queries, INSERT and statement sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from .cursor import Cursor
from .errors import SqlError
from .pieces import QUERY_STARTS, columns, hint_options, query, table_name
from .statements import Insert, PartitionValue, Select, StatementSet


def select(cursor: Cursor) -> Select:
    """Read a query."""
    return Select(query(cursor))


def insert(cursor: Cursor) -> Insert:
    """Read an INSERT, with the EXECUTE that may stand before it already read."""
    cursor.expect("INSERT")
    overwrite = cursor.one_of("INTO", "OVERWRITE") == "OVERWRITE"
    if cursor.at("TABLE"):
        hint = "Leave the word TABLE out."
        raise SqlError("INSERT names the table directly", cursor.place(cursor.token), hint)
    table = table_name(cursor)
    hinted = hint_options(cursor)
    partition: tuple[PartitionValue, ...] = ()
    if cursor.accept("PARTITION"):
        partition = cursor.listed(lambda: _partition_value(cursor))
    # `INSERT INTO t (SELECT ...)` is a query in parentheses, not a list of columns.
    is_list = cursor.at("(") and cursor.peek(1).word not in (*QUERY_STARTS, "(")
    labels = columns(cursor) if is_list else ()
    body = query(cursor, stops=("ON CONFLICT",))
    conflict = None
    if cursor.accept("ON", "CONFLICT"):
        cursor.expect("DO")
        conflict = cast(Any, cursor.one_of("NOTHING", "ERROR", "DEDUPLICATE"))
    return Insert(table, body, labels, partition, hinted, overwrite, conflict)


def _partition_value(cursor: Cursor) -> PartitionValue:
    first = cursor.token
    key = cursor.identifier("a partition column")
    if not cursor.accept("="):
        hint = "Partition values are constants: PARTITION (day = '2024-01-01')."
        cursor.fail("'='", hint=hint)
    return PartitionValue(key, cursor.verbatim("a value"), place=cursor.since(first))


def statement_set(cursor: Cursor) -> StatementSet:
    """Read `STATEMENT SET BEGIN insert; ... END` or `BEGIN STATEMENT SET; insert; ... END`."""
    if cursor.accept("BEGIN"):
        cursor.expect("STATEMENT", "SET", ";")
    else:
        cursor.expect("STATEMENT", "SET", "BEGIN")
    inserts: list[Insert] = []
    problems: list[SqlError] = []
    while not cursor.accept("END"):
        if cursor.at_end():
            cursor.fail("'END'", hint="A statement set closes with END;")
        first = cursor.token
        try:
            cursor.accept("EXECUTE")
            inserts.append(replace(insert(cursor), place=cursor.since(first)))
            cursor.expect(";")
        except SqlError as problem:
            problems.append(problem)
            cursor.skip_statement()
    if problems:
        raise SqlError.together(problems)
    if not inserts:
        raise SqlError("this statement set holds no INSERT", cursor.place(cursor.previous))
    return StatementSet(tuple(inserts))
