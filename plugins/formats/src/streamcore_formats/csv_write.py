"""Rows to CSV, a column at a time, quoted where Flink's writer quotes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .arrow_texts import data_of
from .csv import Csv
from .json_few import FEW, values_of
from .json_write import Style, join, messages_of, piece, slices, text_groups, where_valid
from .not_null import checked

_as_json = msgspec.json.Encoder().encode
_LONG = 24  # a longer text is quoted without looking at it
_ASTRAL = bytes(range(0xF0, 0xF5))  # first bytes of characters outside the basic plane


class CsvEncoder:
    """Writes one record per row, without a line end."""

    def __init__(self, plugin: Csv, schema: pa.Schema) -> None:
        self._plugin, self._schema = plugin, schema
        self._style = Style(plain_decimals=not plugin.scientific_decimals)
        self._null = plugin.null_literal or ""
        self._quoting = _Quoting(plugin)
        self._few_cells = [
            (field, values_of(field.type, self._style), self._few_texts(field.type))
            for field in schema
        ]

    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
        if 0 < rows.num_rows <= FEW:
            few = self._few(rows)
            if few is not None:
                return few
        messages: list[bytes | None] = []
        for start, part in slices(rows):
            cells = [
                self._cells(column, field, start)
                for column, field in zip(part.columns, self._schema, strict=True)
            ]
            records = pc.binary_join_element_wise(
                *cells, self._plugin.delimiter, null_handling="replace", null_replacement=self._null
            )
            messages.extend(messages_of(records))
        return messages

    def _few(self, rows: pa.RecordBatch) -> list[bytes | None] | None:
        """The records of a few rows, one by one; None where a column is left to Arrow."""
        columns = []
        for array, (field, take, texts_of) in zip(rows.columns, self._few_cells, strict=True):
            nulls = array.null_count
            if array.type != field.type or (nulls and not field.nullable):
                return None
            values = take(array)
            if values is None:
                return None
            texts = texts_of(values)
            if nulls:
                texts = [
                    t if v is not None else self._null for t, v in zip(texts, values, strict=True)
                ]
            columns.append(texts)
        lines = map(self._plugin.delimiter.join, zip(*columns, strict=True))
        return list(map(str.encode, lines))

    def _few_texts(self, kind: pa.DataType) -> Callable[[Sequence[Any]], Iterable[str | None]]:
        """What makes the text of every value; what it is for NULL does not matter."""
        if _is_number(kind):
            return lambda values: _as_json(values)[1:-1].decode().split(",")
        if pa.types.is_timestamp(kind) and self._quoting.quotes_timestamps:
            quote = self._plugin.quote
            return lambda values: [f"{quote}{text}{quote}" for text in values]
        return self._quoting.few

    def _cells(self, column: pa.Array, field: pa.Field, start: int) -> pa.StringArray:
        array = checked(column, field, start)
        if _is_number(array.type):
            return self._plain(array)
        return self._quoting.of(self._plain(array))

    def _plain(self, array: pa.Array) -> pa.StringArray:
        """The text of every value, before any quoting."""
        kind = array.type
        if pa.types.is_string(kind):
            return array
        if pa.types.is_list(kind):
            items = self._plain(array.flatten()).fill_null(self._null)
            groups = text_groups(pc.list_value_length(array), items, self._plugin.array_delimiter)
            return where_valid(array, groups)
        if pa.types.is_struct(kind):
            parts = [self._plain(child) for child in array.flatten()]
            joined = pc.binary_join_element_wise(
                *parts,
                self._plugin.array_delimiter,
                null_handling="replace",
                null_replacement=self._null,
            )
            return where_valid(array, joined)
        texts = piece(array, self._style).texts
        if pa.types.is_floating(kind):  # JSON has no bare word for NaN, CSV does
            return pc.utf8_trim(texts, characters='"')
        return texts


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    return any(test(kind) for test in (*tests, types.is_duration))


def _units(text: str) -> int:
    """The length of a text in Java, which counts characters outside the basic plane twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


class _Quoting:
    """Which texts are quoted: long ones, and those with a character not above the marks."""

    def __init__(self, plugin: Csv) -> None:
        self._quote, self._escape = plugin.quote, plugin.escape_character
        self.quotes_timestamps = False
        if self._quote is None:
            return
        highest = max(ord(plugin.delimiter), ord(self._quote))
        extra = {self._quote, self._escape or "\\"}
        triggers = sorted({*map(chr, range(highest + 1)), *extra})
        self._bytes = "".join(triggers).encode()
        self._pattern = "[" + "".join(f"\\x{{{ord(c):x}}}" for c in triggers) + "]"
        self._trigger = re.compile("[" + "".join(map(re.escape, triggers)) + "]").search
        # all of them hold a blank; what they may hold besides must not need doubling
        doubled = {self._quote, self._escape} & set("0123456789+-:. TZ")
        self.quotes_timestamps = not doubled and self._trigger(" ") is not None

    def of(self, texts: pa.StringArray) -> pa.StringArray:
        if self._quote is None:
            return texts
        data = data_of(texts)
        if any(byte in data for byte in _ASTRAL):  # which count twice in Java's lengths
            return pa.array([self.one(text) for text in texts.to_pylist()], pa.string())
        needy = pc.greater(pc.utf8_length(texts), _LONG)
        if len(data) != len(data.translate(None, self._bytes)):
            needy = pc.or_(needy, pc.match_substring_regex(texts, self._pattern))
        if not pc.any(needy, min_count=0).as_py():
            return texts
        quoted = texts
        for mark in (self._escape, self._quote):
            if mark is not None and mark.encode() in data:
                quoted = pc.replace_substring(quoted, mark, mark * 2)
        return pc.if_else(needy, join(self._quote, quoted, self._quote), texts)

    def few(self, texts: Sequence[str | None]) -> Sequence[str | None]:
        """The same for a few texts."""
        quote = self._quote
        known = [text for text in texts if text is not None]
        whole = "".join(known)
        if quote is None or not whole:
            return texts
        doubles = quote in whole or (self._escape or quote) in whole
        if doubles or _units(whole) != len(whole):
            return list(map(self.one, texts))
        long = max(map(len, known)) > _LONG
        if not long and not self._trigger(whole):
            return texts
        search = self._trigger
        cells = {  # of each text once, for in many columns they repeat
            text: text
            if text is None or (len(text) <= _LONG and not search(text))
            else f"{quote}{text}{quote}"
            for text in set(texts)
        }
        return [cells[text] for text in texts]

    def one(self, text: str | None) -> str | None:
        """One text, quoted if it has to be."""
        quote, escape = self._quote, self._escape
        if text is None or quote is None:
            return text
        if _units(text) <= _LONG and not self._trigger(text):
            return text
        if escape is not None:
            text = text.replace(escape, escape * 2)
        return quote + text.replace(quote, quote * 2) + quote
