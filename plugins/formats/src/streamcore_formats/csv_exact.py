"""CSV read record by record: the grammar, the arity rules and every complaint."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from . import texts
from .csv import Csv
from .decoding import NO_ROWS, Rows
from .unreadable import Unreadable, shown

Cells = Callable[[str], list[str]]

_BOM = "\ufeff"
_ESCAPED = {"0": "\0", "n": "\n", "r": "\r", "t": "\t"}
_COMMENTS = re.compile(r"[ \r\n]*+(?:#[^\r\n]*+[ \r\n]*+)*+")
_BLANKS = "".join(map(chr, range(33)))


def exact_reader(
    plugin: Csv, schema: pa.Schema, wanted: Sequence[pa.Field]
) -> Callable[[bytes | None], Rows]:
    """A reader of one message: its first record is one row."""
    split = splitter(plugin)
    names = schema.names
    readers = [(names.index(field.name), _column(field, plugin)) for field in wanted]

    def exact(message: bytes | None) -> Rows:
        if message is None:
            return NO_ROWS
        text = message.decode("utf-8", "surrogateescape").removeprefix(_BOM)
        cells: list[str | None] = _fitted(split(text), len(names), plugin)
        return Rows([[read(cells[position]) for position, read in readers]])

    return exact


def _fitted(cells: list[str], count: int, plugin: Csv) -> list[str | None]:
    """As many cells as the table has columns, or the reason why not."""
    found = len(cells)
    if found > count:
        blank_end = found == count + 1 and plugin.allow_trailing_comma and not cells[-1].strip(" ")
        if not blank_end and not plugin.ignore_extra:
            raise Unreadable(f"{count} fields expected, the message has {found}")
        return list(cells[:count])
    if found < count and (plugin.fail_on_missing or not plugin.ignore_parse_errors):
        raise Unreadable(f"{count} fields expected, the message has {found}")
    return cells + [None] * (count - found)


# --- the grammar --------------------------------------------------------------------------


def splitter(plugin: Csv) -> Cells:
    """A function from the text of a message to the cells of its first record."""
    delimiter, quote, escape = plugin.delimiter, plugin.quote, plugin.escape_character
    stops = re.escape(delimiter) + "\r\n" + re.escape(escape or "")
    run = re.compile(f"[^{stops}]*")
    inner = re.compile(f"[^{re.escape((quote or delimiter) + (escape or ''))}]*")
    special = re.compile(f"[{re.escape(quote or '')}{re.escape(escape or '')}\r\n]")
    trim = plugin.trim_spaces

    def split(text: str) -> list[str]:
        if plugin.allow_comments:
            text = _after_comments(text)
        if not text:
            raise Unreadable("the message holds no record")
        if not trim and not special.search(text):
            return text.split(delimiter)
        cells: list[str] = []
        at = 0
        while True:
            cell, at = one(text, at)
            cells.append(cell)
            if at >= len(text) or text[at] != delimiter:
                return cells
            at += 1

    def one(text: str, at: int) -> tuple[str, int]:
        if trim:
            while at < len(text) and text[at] <= " " and text[at] not in "\r\n" + delimiter:
                at += 1
        if quote and text.startswith(quote, at):
            return quoted(text, at)
        parts: list[str] = []
        while True:
            plain = run.match(text, at)
            assert plain is not None
            parts.append(plain[0])
            at = plain.end()
            if escape is None or not text.startswith(escape, at):
                break
            parts.append(_unescaped(text, at))
            at += 2
        cell = "".join(parts)
        return (cell.strip(_BLANKS) if trim else cell), at

    def quoted(text: str, start: int) -> tuple[str, int]:
        parts: list[str] = []
        at = start + 1
        while True:
            plain = inner.match(text, at)
            assert plain is not None
            parts.append(plain[0])
            at = plain.end()
            if at >= len(text):
                raise Unreadable(f"the quote at character {start} is never closed")
            if text[at] == escape:
                parts.append(_unescaped(text, at))
            elif text.startswith(text[at], at + 1):
                parts.append(text[at])
            else:
                break
            at += 2
        at += 1
        while at < len(text) and text[at] <= " " and text[at] not in "\r\n" + delimiter:
            at += 1
        if at < len(text) and text[at] not in "\r\n" + delimiter:
            raise Unreadable(f"{shown(text[at])} follows a closing quote at character {at}")
        return "".join(parts), at

    return split


def _after_comments(text: str) -> str:
    return text[_COMMENTS.match(text).end() :]  # type: ignore[union-attr]


def _unescaped(text: str, at: int) -> str:
    if at + 1 >= len(text):
        raise Unreadable(f"the message ends with the escape character at character {at}")
    return _ESCAPED.get(text[at + 1], text[at + 1])


# --- the values ---------------------------------------------------------------------------


def _column(field: pa.Field, plugin: Csv) -> Callable[[str | None], Any]:
    return _nullable(field, plugin, _converter(field, plugin), field.name)


def cell_reader(field: pa.Field, plugin: Csv) -> Callable[[str], Any]:
    """A reader of a cell that is not NULL."""
    return _converter(field, plugin)


def _nullable(
    field: pa.Field, plugin: Csv, convert: Callable[[str], Any], name: str
) -> Callable[[str | None], Any]:
    forgiving = plugin.ignore_parse_errors and field.nullable
    literal, empty_is_null = plugin.null_literal, plugin.empty_is_null

    def read(cell: str | None) -> Any:
        value = None
        if cell is not None and cell != literal and (cell or not empty_is_null):
            try:
                value = convert(cell)
            except Unreadable as error:
                if forgiving:
                    return None
                raise error.inside(name) from None
        if value is None and not field.nullable:
            raise Unreadable("NULL, but the column is NOT NULL", name)
        return value

    return read


def _converter(field: pa.Field, plugin: Csv) -> Callable[[str], Any]:
    kind = field.type
    if pa.types.is_list(kind):
        return _array(kind.value_field, plugin)
    if pa.types.is_struct(kind):
        return _row(list(kind), plugin)
    return texts.value_of(field, csv=True)


def _array(element: pa.Field, plugin: Csv) -> Callable[[str], list[Any]]:
    read = _nullable(element, plugin, _converter(element, plugin), "")
    delimiter = plugin.array_delimiter

    def convert(cell: str) -> list[Any]:
        items = []
        for position, part in enumerate(cell.split(delimiter) if cell else ()):
            try:
                items.append(read(part))
            except Unreadable as error:
                raise error.inside(f"[{position}]") from None
        return items

    return convert


def _row(fields: list[pa.Field], plugin: Csv) -> Callable[[str], dict[str, Any] | None]:
    readers = [(f.name, _nullable(f, plugin, _converter(f, plugin), f.name)) for f in fields]
    delimiter, strict = plugin.array_delimiter, not plugin.ignore_parse_errors

    def convert(cell: str) -> dict[str, Any] | None:
        if not cell:
            return None
        parts: list[str | None] = list(cell.split(delimiter))
        if strict and len(parts) != len(readers):
            raise Unreadable(f"{len(readers)} fields expected in the ROW, it has {len(parts)}")
        parts += [None] * (len(readers) - len(parts))
        return {name: read(part) for (name, read), part in zip(readers, parts, strict=False)}

    return convert
