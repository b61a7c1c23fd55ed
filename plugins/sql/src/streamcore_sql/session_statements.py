"""SHOW, DESCRIBE, SET, RESET, USE and STOP JOB."""

from __future__ import annotations

from .cursor import Cursor
from .errors import SqlError
from .lexer import Kind
from .pieces import name, option, table_name
from .statements import Describe, Option, Reset, Set, Show, StopJob, Use

_LISTS = ("TABLES", "VIEWS", "FUNCTIONS", "JOBS", "CATALOGS", "DATABASES")
_UNSUPPORTED = {
    "JARS": "There are no jars; 'streamcore list-plugins' shows what is installed.",
    "MODULES": "There are no modules; 'streamcore list-plugins' shows what is installed.",
    "PARTITIONS": "A stream has no partitions the catalog knows of.",
    "PROCEDURES": "There are no procedures.",
}


def show(cursor: Cursor) -> Show:
    """Read what follows SHOW."""
    word = cursor.token.word
    if word in _UNSUPPORTED:
        trouble = f"SHOW {word} is not supported"
        raise SqlError(trouble, cursor.place(cursor.token), _UNSUPPORTED[word])
    if cursor.accept("CREATE"):
        return Show("CREATE " + cursor.one_of("TABLE", "VIEW"), table_name(cursor))
    if cursor.accept("CURRENT"):
        return Show("CURRENT " + cursor.one_of("CATALOG", "DATABASE"))
    if cursor.accept("COLUMNS"):
        cursor.one_of("FROM", "IN")
        table = table_name(cursor)
        return Show("COLUMNS", table, *_like(cursor))
    if cursor.accept("USER"):
        cursor.expect("FUNCTIONS")
        return Show("USER FUNCTIONS", None, *_like(cursor))
    what = cursor.one_of(*_LISTS, "COLUMNS", "CREATE", "CURRENT", "USER")
    within = name(cursor) if cursor.accept("FROM") or cursor.accept("IN") else None
    return Show(what, within, *_like(cursor))


def _like(cursor: Cursor) -> tuple[str | None, bool]:
    negated = cursor.accept("NOT")
    if negated:
        cursor.expect("LIKE")
    elif not cursor.accept("LIKE"):
        return None, False
    return cursor.string("a pattern in single quotes"), negated


def describe(cursor: Cursor) -> Describe:
    """Read what follows DESCRIBE."""
    extended = cursor.accept("EXTENDED")
    cursor.accept("TABLE")
    return Describe(table_name(cursor), extended)


def set_option(cursor: Cursor) -> Set:
    """Read what follows SET: nothing, `'key' = 'value'`, or `key = value` without quotes."""
    if cursor.at_statement_end():
        return Set()
    if cursor.token.kind is Kind.STRING:
        return Set(option(cursor))
    first = cursor.token
    key = _bare_key(cursor)
    cursor.expect("=")
    at = cursor.token
    if at.kind is Kind.STRING:
        value = cursor.string()
    else:
        value = cursor.verbatim("a value", query=True).text
    secret = cursor.source.is_secret(at.start, cursor.previous.end)
    return Set(Option(key, value, secret, place=cursor.since(first)))


def reset(cursor: Cursor) -> Reset:
    """Read what follows RESET."""
    if cursor.at_statement_end():
        return Reset()
    return Reset(cursor.string() if cursor.token.kind is Kind.STRING else _bare_key(cursor))


def _bare_key(cursor: Cursor) -> str:
    """A key without quotes; its dashes are symbols of their own."""
    first = cursor.token
    cursor.identifier("a key")
    while cursor.token.start == cursor.previous.end and (
        cursor.token.word in (".", "-") or cursor.previous.word in (".", "-")
    ):
        cursor.advance()
    place = cursor.since(first)
    return cursor.source.text[place.start : place.end]


def use(cursor: Cursor) -> Use:
    """Read what follows USE."""
    if cursor.at("MODULES"):
        raise SqlError("USE MODULES is not supported", cursor.place(cursor.token), "Leave it out.")
    catalog = cursor.accept("CATALOG")
    return Use(name(cursor, "the name of a catalog or database"), catalog)


def stop_job(cursor: Cursor) -> StopJob:
    """Read what follows STOP."""
    cursor.expect("JOB")
    job = cursor.string("the job's id in single quotes")
    savepoint = cursor.accept("WITH", "SAVEPOINT")
    drain = cursor.accept("WITH", "DRAIN")
    return StopJob(job, savepoint, drain)
