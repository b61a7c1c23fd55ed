"""What went wrong inside Spark, in one paragraph: no Java stack, no plan, our own words first."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from .cursor import SqlText
from .errors import SqlError, did_you_mean
from .source import NOWHERE, Place

_OURS = re.compile(r"streamcore[\w.]*\.errors\.\w+: |(?m:^)streamcore\w*(?:\.\w+)*\.[A-Z]\w*: ")
_RAISED = re.compile(r"(?m)^(?:[\w.]+\.)?(\w*(?:Error|Exception|Failed|Interrupt)\w*): ")
_CONDITION = re.compile(r"^\s*\[[A-Z0-9_.]+\]\s*")
_NAMED_BY_SPARK = re.compile(r"\[(?!STREAM_FAILED)[A-Z][A-Z0-9]*_[A-Z0-9_.]+\]")
_STATE = re.compile(r"\s*SQLSTATE: \w{5}.*", re.DOTALL)
_JAVA = re.compile(
    r"\n\s*(?:at [\w$.]+\(|\.\.\. \d+ (?:more|elided)|Driver stacktrace|JVM stacktrace)"
)
_CALLED = "An error occurred while calling "
_FROM_JAVA = re.compile(rf"(?m)^(?:Caused by|{_CALLED}[\w.]+\n): (?:[\w$]+\.)*([\w$]+): (?=\S)")
_SOURCES = re.compile(
    r"There are \[(\d+)\] sources in the checkpoint offsets and now there are \[(\d+)\]"
)
_REMEMBERED = re.compile(
    r"(?i)checkpoint|checksum|state ?store|snapshot|changelog|log file|Invalid UUID"
)
"""What Spark says of the files of a checkpoint."""
_REMEMBERING = re.compile(
    r"MetadataLog|StreamMetadata|UUID\.fromString|OffsetSeq|CommitLog|RocksDB|StateSchema"
    r"|SchemaHelper|CheckpointFile"
)
"""Where it reads and writes them."""
_PLAN = re.compile(r";\n(?=['~!]?\w)")
_PREFIX = re.compile(r"\b_q\d+_")
_NONE: Mapping[str, SqlError] = MappingProxyType({})
_SUBQUERY = re.compile(r"(?i)\b((?:NOT\s+)?(?:IN|EXISTS))\s*\(\s*SELECT\b")
_NAMED = re.compile(r"`((?:[^`]|``)+)`")


@contextmanager
def spark_errors(
    query: SqlText, columns: Iterable[str] = (), broken: Mapping[str, SqlError] = _NONE
) -> Iterator[None]:
    """Tell of what Spark finds wrong with a query in the terms of the query as it was written.

    `columns` are those of every table in it: Spark itself only sees the ones that are read.
    `broken` are functions it was not told of, and why.
    """
    from pyspark.errors import PySparkException

    # We tell the error ourselves; Spark would print it a second time, with its Java stack.
    logger = logging.getLogger("SQLQueryContextLogger")
    was_disabled, logger.disabled = logger.disabled, True
    try:
        yield
    except PySparkException as error:
        raise located(error, query, columns, broken) from error
    finally:
        logger.disabled = was_disabled


def located(
    error: BaseException,
    query: SqlText,
    columns: Iterable[str] = (),
    broken: Mapping[str, SqlError] = _NONE,
) -> SqlError:
    """The error with the place in the query that Spark complains about, as far as it shows."""
    place = _place(error, query)
    condition = str(getattr(error, "getCondition", lambda: "")() or "")
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = next(_suspects(error), "")
        hint = did_you_mean(name, columns) or f"Columns: {', '.join(dict.fromkeys(columns))}."
        return SqlError(f"no column called '{name}'", place, hint)
    if condition.startswith("UNRESOLVED_ROUTINE"):
        name = next(_suspects(error), "")
        if known := broken.get(name.lower()):
            return known
        hint = "Both Flink's functions and Spark's are known; CREATE FUNCTION adds one in Python."
        nearest = did_you_mean(name, _functions())
        return SqlError(f"no function called '{name}'", place, f"{nearest} {hint}".strip())
    if condition == "UNRESOLVABLE_TABLE_VALUED_FUNCTION":
        name = next(_suspects(error), "")
        hint = (
            f"CREATE FUNCTION one that returns an array, and CROSS JOIN UNNEST({name}(x)) AS t (y)."
        )
        return SqlError(f"no table function called '{name}'", place, hint)
    if "Streaming query is not allowed in subquery" in str(error):
        asked = _SUBQUERY.search(query.text)
        place = (
            query.place.within(*asked.span(1)) if asked and query.place is not NOWHERE else place
        )
        hint = "Join it, such as JOIN (SELECT DISTINCT k FROM b) AS b ON a.k = b.k, or bound it."
        return SqlError("Spark cannot look a row up in a subquery of a stream", place, hint)
    return SqlError(message_of(error), place)


def _functions() -> Iterator[str]:
    from pyspark.sql import functions

    from .rewrite.function_table import TEMPLATES
    from .rewrite.special_calls import SPECIAL

    yield from (name.partition("/")[0] for name in TEMPLATES)
    yield from SPECIAL
    yield from (name.upper() for name in functions.__all__)


def message_of(error: BaseException) -> str:
    """The last cause, in its own words."""
    text = _text(error)
    if counts := _SOURCES.search(text):
        return (
            f"the checkpoint has {counts[1]} sources, and the query {counts[2]}. A table with "
            "'scan.watermark.per-partition' has one for each partition: if partitions were added, "
            "set its 'scan.watermark.lanes' to the number there was"
        )
    if ours := list(_OURS.finditer(text)):
        return _tidy(text[ours[-1].end() :])
    if "Traceback (most recent call last)" in text:
        tail = text[text.rindex("Traceback (most recent call last)") :]
        if raised := list(_RAISED.finditer(tail)):
            last = raised[-1]
            return _java_cause(tail) or _tidy(f"{last[1]}: {tail[last.end() :]}")
    text = text.split("=== Streaming Query ===")[0]
    return _java_cause(text) or _tidy(text)


def _java_cause(text: str) -> str:
    """The last cause of what Java says to Python; empty where it is not Java that speaks."""
    found = list(_FROM_JAVA.finditer(text))
    if not found or _CALLED not in text:
        return ""
    at = found[-1].end()
    return _tidy(text[at:] if text[at] == "[" else text[found[-1].start(1) :])


def is_of_checkpoint(error: BaseException) -> bool:
    """Whether a failure is about what a query remembers: Spark's files, or a sink's markers."""
    text, told = _text(error), message_of(error)
    from_java = "Traceback (most recent call last)" not in text or "Py4JJavaError: " in text
    if _OURS.search(text) or not from_java:
        return "TransactionRefused: " in text or "checkpoint" in told
    return bool(_REMEMBERED.search(told) or _REMEMBERING.search(text + _stacks(error)))


def with_checkpoint(error: BaseException, folder: str | None) -> str:
    """What went wrong, with the checkpoint's folder where the failure has to do with that."""
    told = message_of(error)
    if folder is None or not (is_of_checkpoint(error) or _is_unexpected(error)):
        return told
    shown = folder.removeprefix("file://")
    return told if shown in told else f"{told.rstrip('.')}. The checkpoint is in '{shown}'."


def _is_unexpected(error: BaseException) -> bool:
    """Whether a running query failed by what Spark has no name for, as where files are missing."""
    text = _text(error)
    told = _OURS.search(text) or "Traceback (most recent call last)" in text
    return not told and bool(_stacks(error)) and not _NAMED_BY_SPARK.search(text)


def _causes(error: BaseException) -> Iterator[Any]:
    cause: Any = error
    for _ in range(10):
        if cause is None:
            return
        yield cause
        cause = getattr(cause, "_cause", None) or getattr(cause, "__cause__", None)


def _stacks(error: BaseException) -> str:
    return "\n".join(str(getattr(each, "_stackTrace", "")) for each in _causes(error))


def _text(error: BaseException) -> str:
    return "\n".join(map(str, _causes(error)))


def _tidy(text: str) -> str:
    for end in (_JAVA, _PLAN):
        if found := end.search(text):
            text = text[: found.start()]
    text = _STATE.sub("", _CONDITION.sub("", text.strip()))
    return _PREFIX.sub("", text).strip()


def _place(error: BaseException, query: SqlText) -> Place:
    if query.place is NOWHERE:
        return NOWHERE
    for word in _suspects(error):
        match = re.search(rf"(?<![\w$]){re.escape(word)}(?![\w$])", query.text, re.IGNORECASE)
        if match:
            return query.place.within(*match.span())
    return query.place


def _suspects(error: BaseException) -> Iterator[str]:
    """Names that the error is about, the surest first."""
    parameters: dict[str, str] = getattr(error, "getMessageParameters", dict)() or {}
    for key in ("objectName", "routineName", "name", "sqlExpr", "fieldName", "expression"):
        if value := parameters.get(key, "").strip('"'):
            for match in reversed(_NAMED.findall(value)):
                yield match.replace("``", "`")
            yield value
