"""SQL type text to Arrow types and back; precision rides in Arrow's own time units.

What Arrow cannot say (CHAR lengths, MULTISET, year-month intervals, precisions between its units)
is kept in field metadata under `SQL_TYPE`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from .errors import StreamcoreError

SQL_TYPE = b"streamcore.type"

_SIMPLE = {
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BYTES": pa.binary(),
    "DATE": pa.date32(),
}
_DECIMAL = {"DECIMAL", "DEC", "NUMERIC"}
_LENGTHS = {
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
}
_MONTHS = {"YEAR", "MONTH"}


class TypeTextError(StreamcoreError, ValueError):
    """A SQL type that is misspelt or that no Arrow type can carry."""

    exit_code = 2


def arrow_field(name: str, text: str, nullable: bool = True) -> pa.Field:
    """The Arrow field for a column of this SQL type."""
    parser = _Parser(text)
    field = parser.type(name)
    parser.end()
    return field if nullable else field.with_nullable(False)


def arrow_schema(columns: Mapping[str, str]) -> pa.Schema:
    """The Arrow schema of columns given by name and SQL type; `NOT NULL` is understood."""
    return pa.schema([arrow_field(name, text) for name, text in columns.items()])


def sql_text(field: pa.Field) -> str:
    """The SQL type of an Arrow field, without its nullability."""
    declared = (field.metadata or {}).get(SQL_TYPE)
    return declared.decode() if declared else _text(field.type)


def nullable_inside(arrow: pa.DataType) -> pa.DataType:
    """The same type with nothing NOT NULL inside; Arrow casts no NULL row to one that has such."""
    if pa.types.is_struct(arrow):
        return pa.struct([_nullable(field) for field in arrow])
    if pa.types.is_list(arrow):
        return pa.list_(_nullable(arrow.value_field))
    if pa.types.is_map(arrow):
        return pa.map_(arrow.key_field, _nullable(arrow.item_field))
    return arrow


def _nullable(field: pa.Field) -> pa.Field:
    return field.with_type(nullable_inside(field.type)).with_nullable(True)


class _Parser:
    """Recursive descent over the tokens of one type."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = re.findall(r"`(?:[^`]|``)*`|'(?:[^']|'')*'|[\w$]+|[^\s\w]", text)
        self.at = 0

    def type(self, name: str) -> pa.Field:
        word = self._word()
        metadata = None
        if word in _SIMPLE:
            arrow = _SIMPLE[word]
            if word == "DOUBLE":
                self._accept("PRECISION")
        elif word in _LENGTHS:
            length = self._numbers([1 if word in ("CHAR", "BINARY") else 2**31 - 1])[0]
            arrow, metadata = _LENGTHS[word], {SQL_TYPE: f"{word}({length})".encode()}
        elif word in _DECIMAL:
            precision, scale = self._numbers([10, 0])
            if not 1 <= precision <= 38 or not 0 <= scale <= precision:
                raise TypeTextError(f"'{self.text}': precision is 1 to 38, scale 0 to precision")
            arrow = pa.decimal128(precision, scale)
        elif word == "TIME":
            precision = self._precision(0)
            arrow, metadata = _time(precision), _between_units("TIME", precision)
            self._accept("WITHOUT", "TIME", "ZONE")
        elif word in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            arrow, metadata = self._timestamp(word)
        elif word == "INTERVAL":
            arrow, metadata = self._interval()
        elif word in ("ARRAY", "MULTISET", "MAP"):
            arrow, metadata = self._collection(word)
        elif word == "ROW":
            arrow = self._row()
        else:
            raise TypeTextError(f"'{self.text}': type '{word}' is not supported")
        nullable = not self._accept("NOT", "NULL")
        self._accept("NULL")
        field = pa.field(name, arrow, nullable, metadata)
        while self._peek() in ("ARRAY", "MULTISET"):
            field = self._suffixed(name, field)
        return field

    def end(self) -> None:
        if self.at < len(self.tokens):
            raise TypeTextError(f"'{self.text}': did not expect '{self.tokens[self.at]}'")

    def _suffixed(self, name: str, item: pa.Field) -> pa.Field:
        word = self._word()
        arrow, metadata = _collection_of(word, [item])
        return pa.field(name, arrow, not self._accept("NOT", "NULL"), metadata)

    def _timestamp(self, word: str) -> tuple[pa.DataType, dict[bytes, bytes] | None]:
        precision = self._precision(6)
        local = word == "TIMESTAMP_LTZ"
        if self._accept("WITH", "LOCAL", "TIME", "ZONE"):
            local = True
        elif self._accept("WITH", "TIME", "ZONE"):
            raise TypeTextError(f"'{self.text}': write TIMESTAMP_LTZ; a zone per value is not kept")
        else:
            self._accept("WITHOUT", "TIME", "ZONE")
        name = "TIMESTAMP_LTZ" if local else "TIMESTAMP"
        arrow = pa.timestamp(_unit(precision), "UTC" if local else None)
        return arrow, _between_units(name, precision)

    def _interval(self) -> tuple[pa.DataType, dict[bytes, bytes] | None]:
        start = self._word()
        self._numbers([0])
        stop = start
        if self._accept("TO"):
            stop = self._word()
            self._numbers([0])
        text = f"INTERVAL {start}" + (f" TO {stop}" if stop != start else "")
        if start in _MONTHS:
            return pa.int32(), {SQL_TYPE: text.encode()}
        return pa.duration("us"), {SQL_TYPE: text.encode()}

    def _collection(self, word: str) -> tuple[pa.DataType, dict[bytes, bytes] | None]:
        self._expect("<")
        items = [self.type("element")]
        if word == "MAP":
            self._expect(",")
            items.append(self.type("value"))
        self._expect(">")
        return _collection_of(word, items)

    def _row(self) -> pa.DataType:
        close = ")" if self._peek() == "(" else ">"
        self._expect("(" if close == ")" else "<")
        fields = []
        while not self._accept(close):
            name = self._identifier()
            fields.append(self.type(name))
            if self._peek().startswith("'"):  # a field's comment
                self.at += 1
            if not self._accept(","):
                self._expect(close)
                break
        return pa.struct(fields)

    def _precision(self, default: int) -> int:
        precision = self._numbers([default])[0]
        if not 0 <= precision <= 9:
            raise TypeTextError(f"'{self.text}': precision is 0 to 9")
        return precision

    def _numbers(self, defaults: list[int]) -> list[int]:
        numbers: list[int] = []
        if self._accept("("):
            while not self._accept(")"):
                word = self._word()
                if not word.isdigit():
                    raise TypeTextError(f"'{self.text}': expected a number, found '{word}'")
                numbers.append(int(word))
                self._accept(",")
        return numbers + defaults[len(numbers) :]

    def _identifier(self) -> str:
        if self.at >= len(self.tokens):
            raise TypeTextError(f"'{self.text}': expected a field name")
        token = self.tokens[self.at]
        self.at += 1
        return str(token[1:-1].replace("``", "`") if token.startswith("`") else token)

    def _peek(self) -> str:
        return self.tokens[self.at].upper() if self.at < len(self.tokens) else ""

    def _word(self) -> str:
        if self.at >= len(self.tokens):
            raise TypeTextError(f"'{self.text}': the type ends too early")
        self.at += 1
        return str(self.tokens[self.at - 1]).upper()

    def _accept(self, *words: str) -> bool:
        ahead = [token.upper() for token in self.tokens[self.at : self.at + len(words)]]
        if ahead != list(words):
            return False
        self.at += len(words)
        return True

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            raise TypeTextError(f"'{self.text}': expected '{word}', found '{self._peek()}'")


def _collection_of(
    word: str, items: list[pa.Field]
) -> tuple[pa.DataType, dict[bytes, bytes] | None]:
    if word == "ARRAY":
        return pa.list_(items[0].with_name("element")), None
    key = items[0].with_name("key").with_nullable(False)
    if word == "MAP":
        return pa.map_(key, items[1].with_name("value")), None
    text = f"MULTISET<{_described(items[0])}>"
    return pa.map_(key, pa.field("value", pa.int32())), {SQL_TYPE: text.encode()}


def _unit(precision: int) -> str:
    return ("s", "ms", "us", "ns")[-(-precision // 3)]


def _between_units(name: str, precision: int) -> dict[bytes, bytes] | None:
    """What notes a precision that no unit of Arrow's has."""
    return {SQL_TYPE: f"{name}({precision})".encode()} if precision % 3 else None


def _time(precision: int) -> pa.DataType:
    unit = _unit(precision)
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_NAMES = {arrow: name for name, arrow in reversed(_SIMPLE.items())}


def _text(arrow: pa.DataType) -> str:
    is_type: Any = pa.types
    if arrow in _NAMES:
        return _NAMES[arrow]
    if is_type.is_decimal(arrow):
        return f"DECIMAL({arrow.precision}, {arrow.scale})"
    if is_type.is_timestamp(arrow):
        return f"{'TIMESTAMP_LTZ' if arrow.tz else 'TIMESTAMP'}({_DIGITS[arrow.unit]})"
    if is_type.is_time(arrow):
        return f"TIME({_DIGITS[arrow.unit]})"
    if is_type.is_duration(arrow):
        return "INTERVAL DAY TO SECOND"
    if is_type.is_list(arrow):
        return f"ARRAY<{_described(arrow.value_field)}>"
    if is_type.is_map(arrow):
        key = sql_text(arrow.key_field)
        return f"MAP<{key}, {_described(arrow.item_field)}>"
    if is_type.is_struct(arrow):
        fields = (f"`{f.name}` {_described(f)}" for f in arrow)
        return f"ROW<{', '.join(fields)}>"
    if is_type.is_large_string(arrow):
        return "STRING"
    if is_type.is_large_binary(arrow) or is_type.is_fixed_size_binary(arrow):
        return "BYTES"
    raise TypeTextError(f"Arrow type '{arrow}' has no SQL type here")


def _described(field: pa.Field) -> str:
    return sql_text(field) + ("" if field.nullable else " NOT NULL")
