"""Which format a sample of payloads is written in, and with which columns."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .avro_schema import avro_columns
from .shapes import Shape, shape_of

_ENOUGH = 0.9
_DELIMITERS = (",", ";", "|", "\t")
_CHANGELOGS: tuple[tuple[str, frozenset[str]], ...] = (
    ("debezium-json", frozenset({"before", "after", "op"})),
    ("ogg-json", frozenset({"op_type", "op_ts"})),
    ("canal-json", frozenset({"data", "type", "es"})),
    ("maxwell-json", frozenset({"data", "type", "xid"})),
    ("maxwell-json", frozenset({"data", "type", "database", "ts"})),
)
Registry = Callable[[int], Mapping[str, Any] | None]


@dataclass
class ColumnGuess:
    """A column, its type, and what is unsure about it."""

    name: str
    type: str
    doubt: str = ""
    shape: Shape = field(default_factory=Shape)


@dataclass
class Guess:
    """A format, its options, its columns, and what is unsure about all of it."""

    format: str
    columns: list[ColumnGuess]
    options: dict[str, str] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)


def detect(payloads: Sequence[bytes | None], registry: Registry | None = None) -> Guess:
    """The best guess for these payloads."""
    given = [payload for payload in payloads if payload is not None]
    if not given:
        text = "no value in the sample; the columns are a guess"
        return Guess("raw", [ColumnGuess("payload", "BYTES")], doubts=[text])
    if all(payload[:1] == b"\0" and len(payload) > 5 for payload in given):
        return _framed(given, registry)
    documents = [_json(payload) for payload in given]
    objects = [each for each in documents if isinstance(each, dict)]
    if len(objects) >= _ENOUGH * len(given):
        guess = _json_guess(objects)
        if len(objects) < len(given):
            guess.doubts.append(f"{len(given) - len(objects)} of {len(given)} are no JSON objects")
        return guess
    texts = [_text(payload) for payload in given]
    if all(text is not None for text in texts):
        return _text_guess([text for text in texts if text is not None])
    doubt = "neither JSON, CSV nor text; Avro or Protobuf without a registry looks like this"
    return Guess("raw", [ColumnGuess("payload", "BYTES")], doubts=[doubt])


def _json(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        return None


def _text(payload: bytes) -> str | None:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return None
    return text if all(c.isprintable() or c in "\t\r\n" for c in text) else None


# --- JSON ----------------------------------------------------------------------------------


def _json_guess(objects: list[dict[str, Any]]) -> Guess:
    options: dict[str, str] = {}
    if all(set(each) == {"schema", "payload"} for each in objects):
        objects = [each["payload"] or {} for each in objects]
        options["debezium-json.schema-include"] = "true"
    for name, marks in _CHANGELOGS:
        if all(marks <= set(each) for each in objects):
            return _json_columns(name, _rows_of(name, objects), options)
    return _json_columns("json", objects, {})


def _rows_of(name: str, objects: list[dict[str, Any]]) -> list[Any]:
    """The rows inside change events."""
    if name in ("debezium-json", "ogg-json"):
        sides = [each.get(side) for each in objects for side in ("before", "after")]
        return [side for side in sides if isinstance(side, dict)]
    data = [each["data"] for each in objects]
    return [row for each in data for row in (each if isinstance(each, list) else [each]) if row]


def _json_columns(name: str, rows: list[Any], options: dict[str, str]) -> Guess:
    shape = shape_of(rows)
    doubts = []
    styles = shape.styles()
    if "ISO-8601" in styles:
        options[f"{name}.timestamp-format.standard"] = "ISO-8601"
        if "SQL" in styles:
            shape.demote_times("ISO-8601")
            doubts.append("timestamps are written in two ways; those with a blank are read as text")
    columns = [
        ColumnGuess(label, inner.type(), inner.doubt(), inner)
        for label, inner in shape.fields.items()
    ]
    return Guess(name, columns, options, doubts)


# --- text ----------------------------------------------------------------------------------


def _text_guess(texts: list[str]) -> Guess:
    for delimiter in _DELIMITERS:
        try:
            cells = list(csv.reader(texts, delimiter=delimiter, strict=True))
        except csv.Error:
            continue
        widths = {len(row) for row in cells}
        if len(cells) == len(texts) and len(widths) == 1 and widths != {1}:
            return _csv_guess(cells, delimiter)
    return Guess("raw", [ColumnGuess("payload", "STRING")])


def _csv_guess(cells: list[list[str]], delimiter: str) -> Guess:
    columns = []
    for number, values in enumerate(zip(*cells, strict=True), 1):
        shape = shape_of(_number(value) for value in values if value != "")
        columns.append(ColumnGuess(f"f{number}", shape.type(), shape.doubt(), shape))
    written = {"\t": "\\t"}.get(delimiter, delimiter)
    options = {} if delimiter == "," else {"csv.field-delimiter": written}
    return Guess("csv", columns, options, ["CSV has no names: rename f1, f2, ... as you like"])


def _number(text: str) -> Any:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)


# --- a registry ----------------------------------------------------------------------------


def _framed(payloads: list[bytes], registry: Registry | None) -> Guess:
    ids = sorted({int.from_bytes(payload[1:5], "big") for payload in payloads})
    if registry is None:
        doubt = f"these are messages of a schema registry (schema ids {ids}); pass --registry URL"
        return Guess("raw", [ColumnGuess("payload", "BYTES")], doubts=[doubt])
    schema = registry(ids[-1])
    if schema is None:
        doubt = f"the registry does not know schema id {ids[-1]}"
        return Guess("raw", [ColumnGuess("payload", "BYTES")], doubts=[doubt])
    if schema.get("schemaType", "AVRO") != "AVRO":
        doubt = f"schema {ids[-1]} is {schema['schemaType']}, and only Avro is read by its registry"
        return Guess("raw", [ColumnGuess("payload", "BYTES")], doubts=[doubt])
    name, columns = avro_columns(json.loads(schema["schema"]))
    guesses = [ColumnGuess(label, kind, doubt) for label, kind, doubt in columns]
    doubts = [f"written with schemas {ids}; columns are those of {ids[-1]}"] if len(ids) > 1 else []
    return Guess(name, guesses, {}, doubts)
