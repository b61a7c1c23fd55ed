"""A CREATE TABLE that reads what was sampled, with its doubts as comments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from streamcore.values import is_sensitive, masked

from ..lexer import text_literal
from ..monitoring.wording import span
from .detection import ColumnGuess, Guess
from .sampling import Message
from .shapes import quoted

_TIME_NAME = re.compile(r"(^|_)(ts|time|timestamp|date|at)$|time$", re.IGNORECASE)
_MILLIS, _SECONDS = range(10**12, 4 * 10**12), range(10**9, 4 * 10**9)
_DELAYS = (1, 5, 10, 30, 60, 300, 900, 3600)
_RECORD_TIME = "record_time"


@dataclass(frozen=True)
class KeyGuess:
    """How keys are written: the options for it, and a column of its own if they need one."""

    options: dict[str, str]
    column: str = ""
    doubt: str = ""


def create_table(
    name: str, options: Mapping[str, str], guess: Guess, messages: Sequence[Message]
) -> str:
    """The statement; whatever follows `--` is for the reader."""
    guess = _nameable(guess)
    key = _key(messages, guess)
    upserts = options.get("connector") == "upsert-kafka"
    lines = [_line(quoted(c.name), c.type, c.doubt) for c in guess.columns]
    if key.column:
        lines.append(_line(quoted(key.column), "STRING", key.doubt))
    computed, moment = _event_time(guess)
    lines += computed
    record_time = _free(_RECORD_TIME, guess)
    taken = f"{quoted(record_time)} TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL"
    lines.append((taken, "when the record was written"))
    if any(message.headers for message in messages):
        headers = f"{quoted(_free('headers', guess))} MAP<STRING, BYTES> METADATA FROM 'headers'"
        names = sorted({ascii(name) for each in messages for name in each.headers})
        lines.append((f"{headers} VIRTUAL", f"seen: {', '.join(names[:5])}"))
    rowtime, delay, doubt = _watermark(moment or record_time, moment, guess, messages)
    lines.append((f"WATERMARK FOR {quoted(rowtime)} AS {quoted(rowtime)} - {delay}", doubt))
    if upserts:
        lines.append(_primary_key(key))
    doubts = [f"-- {_in_a_line(doubt)}" for doubt in guess.doubts]
    body = _commented(lines)
    given = {**options, **_format_options(guess, key, upserts)}
    with_options = _commented([_option(*each) for each in given.items()])
    head = f"CREATE TABLE {quoted(name)} ("
    return "\n".join([*doubts, head, *body, ") WITH (", *with_options, ");"])


def _option(key: str, value: str) -> tuple[str, str]:
    shown = "..." if is_sensitive(key) else masked(key, value)
    return f"{text_literal(key)} = {text_literal(shown)}", "fill in" if shown != value else ""


def _line(name: str, kind: str, doubt: str) -> tuple[str, str]:
    return f"{name} {kind}", doubt


def _commented(lines: Sequence[tuple[str, str]]) -> list[str]:
    """Lines with commas where they belong: before the comment."""
    last = len(lines) - 1
    return [
        f"  {text}{',' if at < last else ''}" + (f"  -- {_in_a_line(comment)}" if comment else "")
        for at, (text, comment) in enumerate(lines)
    ]


def _in_a_line(comment: str) -> str:
    """A comment that no character of somebody's data ends early."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in comment)


def _nameable(guess: Guess) -> Guess:
    """The columns that a table can have: each with a name, and no two told apart by case alone."""
    columns: dict[str, ColumnGuess] = {}
    doubts = list(guess.doubts)
    for column in guess.columns:
        other = columns.setdefault(column.name.lower(), column)
        if not column.name:
            del columns[""]
            doubts.append("a field without a name is left out")
        elif other is not column:
            doubts.append(
                f"field '{column.name}' is left out: names ignore case, see '{other.name}'"
            )
    return replace(guess, columns=list(columns.values()), doubts=doubts)


def _format_options(guess: Guess, key: KeyGuess, upserts: bool) -> dict[str, str]:
    prefix = "value." if key.options or upserts else ""
    renamed = {f"{prefix}{k}": v for k, v in guess.options.items()}
    own = {k: v for k, v in key.options.items() if not (upserts and k == "key.fields")}
    return {**own, f"{prefix}format": guess.format, **renamed}


def _primary_key(key: KeyGuess) -> tuple[str, str]:
    names = [quoted(name) for name in key.options["key.fields"].split(";")]
    return f"PRIMARY KEY ({', '.join(names)}) NOT ENFORCED", ""


# --- keys ------------------------------------------------------------------------------------


def _key(messages: Sequence[Message], guess: Guess) -> KeyGuess:
    keys = [message.key for message in messages]
    if all(key is None for key in keys):
        return KeyGuess({})
    names = [column.name for column in guess.columns]
    documents = [_object(key) for key in keys if key is not None]
    if all(document is not None for document in documents):
        fields = list(documents[0] or ())
        if all(field in names for field in fields):
            return KeyGuess({"key.format": "json", "key.fields": ";".join(fields)})
    texts = [_decoded(key) for key in keys]
    for column in guess.columns:
        values = [_decoded(message.value) for message in messages]
        if column.shape.values and _same(texts, column, values):
            written = "raw" if column.type == "STRING" else "csv"
            return KeyGuess({"key.format": written, "key.fields": column.name})
    own = _free("message_key", guess)
    options = {"key.format": "raw", "key.fields": own, "value.fields-include": "EXCEPT_KEY"}
    doubt = "" if all(text is not None for text in texts) else "keys are not all text"
    return KeyGuess(options, own, doubt)


def _same(keys: list[str | None], column: ColumnGuess, values: list[str | None]) -> bool:
    """Whether every key is what its own value says for a column."""
    for key, value in zip(keys, values, strict=True):
        document = _object((value or "").encode())
        if key is None or document is None or str(document.get(column.name)) != key:
            return False
    return True


def _object(payload: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(payload)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _decoded(payload: bytes | None) -> str | None:
    try:
        return None if payload is None else payload.decode()
    except UnicodeDecodeError:
        return None


# --- time ------------------------------------------------------------------------------------


def _event_time(guess: Guess) -> tuple[list[tuple[str, str]], str]:
    """A column that tells when things happened, computed from a number if need be."""
    stamps = [column for column in guess.columns if column.type.startswith("TIMESTAMP")]
    if stamps:
        likely = [column for column in stamps if _TIME_NAME.search(column.name)]
        return [], (likely or stamps)[0].name
    for column in guess.columns:
        numbers = [value for value in column.shape.values if isinstance(value, int)]
        if column.type == "BIGINT" and numbers and _TIME_NAME.search(column.name):
            for digits, span in ((3, _MILLIS), (0, _SECONDS)):
                if all(number in span for number in numbers):
                    name = _free(f"{column.name}_time", guess)
                    source = quoted(column.name)
                    text = f"{quoted(name)} AS TO_TIMESTAMP_LTZ({source}, {digits})"
                    unit = "milliseconds" if digits else "seconds"
                    return [(text, f"'{column.name}' looks like {unit} since 1970")], name
    return [], ""


def _watermark(
    rowtime: str, moment: str, guess: Guess, messages: Sequence[Message]
) -> tuple[str, str, str]:
    """The rowtime, how long to wait for rows out of order, and why."""
    lanes = _times(moment, guess, messages)
    late = max(map(_lateness, lanes), default=timedelta())
    seconds = next((s for s in _DELAYS if s >= late.total_seconds()), _DELAYS[-1])
    seconds = max(seconds, 5)
    unit, count = ("MINUTE", seconds // 60) if seconds >= 60 else ("SECOND", seconds)
    doubt = f"the latest row in the sample was {span(late.total_seconds())} behind"
    if late.total_seconds() > seconds:
        doubt += ": windows would leave it out"
    return (
        rowtime,
        f"INTERVAL '{count}' {unit}",
        doubt if lanes else "how late rows come is a guess",
    )


def _times(moment: str, guess: Guess, messages: Sequence[Message]) -> list[list[datetime]]:
    """The event times of each partition in its order; partitions have none between them."""
    lanes: dict[str, list[datetime]] = {}
    for message in messages:
        document = _object(message.value or b"") or {}
        if (time := _moment(document.get(moment))) is not None:
            lanes.setdefault(message.position.rpartition(":")[0], []).append(time)
    if lanes:
        return list(lanes.values())
    column = next((c for c in guess.columns if c.name == moment), None)
    times = [_moment(text) for text in column.shape.values] if column else []
    known = [time for time in times if time is not None]
    return [known] if known else []


def _lateness(times: Sequence[datetime]) -> timedelta:
    """The most any row was behind the newest one before it."""
    late, highest = timedelta(), times[0]
    for time in times:
        highest = max(highest, time)
        late = max(late, highest - time)
    return late


def _moment(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00")).replace(tzinfo=None)
    except ValueError:
        return None


def _free(name: str, guess: Guess) -> str:
    taken = {column.name.lower() for column in guess.columns}
    while name.lower() in taken:
        name = f"_{name}"
    return name
