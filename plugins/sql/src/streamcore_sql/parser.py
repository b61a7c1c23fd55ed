"""`parse(text)`: a script to statements, or one SqlError that tells of every mistake in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .cursor import Cursor
from .ddl import alter, create, drop
from .dml import insert, select, statement_set
from .errors import SqlError, did_you_mean
from .session_statements import describe, reset, set_option, show, stop_job, use
from .source import Source
from .statements import Explain, Statement

_DETAILS = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")
_UNSUPPORTED = {
    "ADD": "streamcore needs no jars: install a plugin with pip.",
    "REMOVE": "streamcore needs no jars: uninstall a plugin with pip.",
    "LOAD": "There are no modules: install a package, or CREATE FUNCTION ... LANGUAGE PYTHON.",
    "UNLOAD": "There are no modules.",
    "UPDATE": "A stream is changed by what is inserted: INSERT INTO an upsert table.",
    "DELETE": "A stream is changed by what is inserted: write a delete to an upsert table.",
    "TRUNCATE": "Delete the topic's records with the system's own tools.",
    "MERGE": "INSERT INTO an upsert table keeps the last row of each key.",
    "ANALYZE": "Spark needs no table statistics for a stream.",
    "CALL": "There are no procedures.",
    "COMPILE": "Run the INSERT itself: EXECUTE is not needed.",
}


def parse(script: str | Source) -> list[Statement]:
    """Read every statement of a script."""
    source = Source(script) if isinstance(script, str) else script
    cursor = Cursor(source)
    statements: list[Statement] = []
    problems: list[SqlError] = []
    while True:
        try:
            while cursor.accept(";"):
                cursor.forget()
            if cursor.at_end():
                break
            statements.append(_statement(cursor))
            if not cursor.at_end():
                cursor.expect(";")
        except SqlError as problem:
            problems.append(problem)
            try:
                cursor.skip_statement()
            except SqlError as unclosed:
                problems.append(unclosed)
    if problems:
        raise SqlError.together(problems)
    return statements


def _statement(cursor: Cursor) -> Statement:
    first = cursor.token
    found = _read(cursor)
    return replace(found, place=cursor.since(first))


def _read(cursor: Cursor) -> Statement:
    token = cursor.token
    if token.word in _READ_WHOLE or token.word == "(":
        return _READ_WHOLE.get(token.word, select)(cursor)
    if token.word in _READ_REST:
        cursor.advance()
        return _READ_REST[token.word](cursor)
    place = cursor.place(token)
    if token.word in _UNSUPPORTED:
        raise SqlError(f"{token.word} is not supported", place, _UNSUPPORTED[token.word])
    shown = cursor.source.quote(token.start, token.end)
    hint = did_you_mean(token.word, (*_READ_WHOLE, *_READ_REST))
    raise SqlError(f"'{shown}' does not start a statement", place, hint)


def _execute(cursor: Cursor) -> Statement:
    if cursor.at("STATEMENT"):
        return statement_set(cursor)
    if cursor.at("INSERT"):
        return insert(cursor)
    if cursor.at("SELECT"):
        return select(cursor)
    cursor.fail("'STATEMENT SET', 'INSERT' or 'SELECT'", words=("STATEMENT", "INSERT", "SELECT"))


def _explain(cursor: Cursor) -> Statement:
    details: list[str] = []
    if not cursor.accept("PLAN", "FOR") and cursor.token.word in _DETAILS:
        details.append(cursor.advance().word)
        while cursor.accept(","):
            details.append(cursor.one_of(*_DETAILS))
    first = cursor.token
    is_set = cursor.at("STATEMENT", "SET")
    inner = statement_set(cursor) if is_set else _read(cursor)
    return Explain(replace(inner, place=cursor.since(first)), tuple(details))


_READ_WHOLE: dict[str, Callable[[Cursor], Statement]] = {
    "SELECT": select,
    "WITH": select,
    "VALUES": select,
    "INSERT": insert,
    "BEGIN": statement_set,
}
_READ_REST: dict[str, Callable[[Cursor], Statement]] = {
    "CREATE": create,
    "DROP": drop,
    "ALTER": alter,
    "EXECUTE": _execute,
    "EXPLAIN": _explain,
    "SHOW": show,
    "DESCRIBE": describe,
    "DESC": describe,
    "SET": set_option,
    "RESET": reset,
    "USE": use,
    "STOP": stop_job,
}
