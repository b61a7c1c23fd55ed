"""Rows to CSV, a column at a time, quoted where Flink's writer quotes."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from streamcore import RecordError

from .arrow_texts import data_of
from .csv import Csv
from .json_write import Style, join, messages_of, piece, slices, text_groups, where_valid

_LONG = 24  # a longer text is quoted without looking at it
_ASTRAL = bytes(range(0xF0, 0xF5))  # first bytes of characters outside the basic plane


class CsvEncoder:
    """Writes one record per row, without a line end."""

    def __init__(self, plugin: Csv, schema: pa.Schema) -> None:
        self._plugin, self._schema = plugin, schema
        self._style = Style(plain_decimals=not plugin.scientific_decimals)
        self._null = plugin.null_literal or ""
        self._quoting = _Quoting(plugin)

    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
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

    def _cells(self, column: pa.Array, field: pa.Field, start: int) -> pa.StringArray:
        array = column if column.type == field.type else column.cast(field.type)
        if array.null_count and not field.nullable:
            row = start + pc.index(array.is_null(), True).as_py()
            raise RecordError(f"row {row}, column '{field.name}': NULL, but it is NOT NULL")
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


class _Quoting:
    """Which texts are quoted: long ones, and those with a character not above the marks."""

    def __init__(self, plugin: Csv) -> None:
        self._quote, self._escape = plugin.quote, plugin.escape_character
        if self._quote is None:
            return
        highest = max(ord(plugin.delimiter), ord(self._quote))
        extra = {self._quote, self._escape or "\\"}
        self._triggers = frozenset(map(chr, range(highest + 1))) | extra
        self._bytes = "".join(self._triggers).encode()
        self._pattern = "[" + "".join(f"\\x{{{ord(c):x}}}" for c in sorted(self._triggers)) + "]"

    def of(self, texts: pa.StringArray) -> pa.StringArray:
        if self._quote is None:
            return texts
        data = data_of(texts)
        if any(byte in data for byte in _ASTRAL):  # which count twice in Java's lengths
            return pa.array([self._one(text) for text in texts.to_pylist()], pa.string())
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

    def _one(self, text: str | None) -> str | None:
        if text is None:
            return None
        units = len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
        if units <= _LONG and self._triggers.isdisjoint(text):
            return text
        quote, escape = self._quote, self._escape
        assert quote is not None
        if escape is not None:
            text = text.replace(escape, escape * 2)
        return quote + text.replace(quote, quote * 2) + quote
