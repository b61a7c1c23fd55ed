"""One value per message, or one per line: bytes to a single column and back."""

from __future__ import annotations

import codecs
import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from streamcore import RecordError
from streamcore.types import sql_text

from .decoding import (
    NO_ROWS,
    Columns,
    Fast,
    Messages,
    Rows,
    TwoPathDecoder,
    doubt_everything,
    wanted_fields,
    weigh,
)
from .not_null import checked
from .raw import Endianness, Raw
from .unreadable import Unreadable

# The codes of `struct` and of `array` agree on these.
_CODES = {
    pa.int8(): "b",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.int64(): "q",
    pa.float32(): "f",
    pa.float64(): "d",
}


def carries(field: pa.Field) -> bool:
    """Whether raw has bytes for this type."""
    kind = field.type
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_boolean(kind)):
        return kind in _CODES and not sql_text(field).startswith("INTERVAL")
    return True


# --- reading ----------------------------------------------------------------------------


def raw_decoder(plugin: Raw, schema: pa.Schema, columns: Sequence[str] | None) -> TwoPathDecoder:
    """A decoder of the one column, or of nothing but its rows."""
    wanted = wanted_fields(schema, columns)
    field = schema.field(0)
    read = _reader(plugin, field)
    delimiter = plugin.delimiter
    decode = _text_reader(plugin.charset)

    def row(message: bytes | None) -> list[Any]:
        value = None if message is None else read(message)
        if value is None and not field.nullable:
            raise Unreadable("NULL, but the column is NOT NULL", field.name)
        return [value] * len(wanted)

    def exact(message: bytes | None) -> Rows:
        if delimiter is None:
            return Rows([row(message)])
        if message is None:
            return NO_ROWS
        parts = decode(message).split(delimiter)
        if not parts[-1]:
            parts.pop()
        return Rows([row(_encoded(part, plugin.charset)) for part in parts])

    fast = _fast(plugin, field) if wanted and delimiter is None else None
    fast = fast or doubt_everything(wanted)
    return TwoPathDecoder(pa.schema(wanted), fast, exact, ignoring=False)


def _fast(plugin: Raw, field: pa.Field) -> Fast | None:
    kind = field.type
    if pa.types.is_binary(kind) or (
        pa.types.is_string(kind) and codecs.lookup(plugin.charset).name == "utf-8"
    ):
        return lambda messages: _texts(messages, field)
    if kind in _CODES:
        return lambda messages: _numbers(messages, field, plugin.endianness is Endianness.LITTLE)
    return None


def _texts(messages: Messages, field: pa.Field) -> Columns:
    weigh(messages)
    values = pa.array(messages, pa.binary())
    if values.null_count and not field.nullable:
        return _all_in_doubt(field, len(messages))
    try:
        return Columns([values.cast(field.type)])
    except pa.ArrowInvalid:
        return _all_in_doubt(field, len(messages))


def _numbers(messages: Messages, field: pa.Field, little: bool) -> Columns:
    if None in messages:
        return _all_in_doubt(field, len(messages))
    numbers = array(_CODES[field.type])
    if set(map(len, messages)) != {numbers.itemsize}:  # type: ignore[arg-type]
        return _all_in_doubt(field, len(messages))
    numbers.frombytes(b"".join(messages))  # type: ignore[arg-type]
    if little != (sys.byteorder == "little"):
        numbers.byteswap()
    buffer = pa.py_buffer(numbers)
    return Columns([pa.Array.from_buffers(field.type, len(numbers), [None, buffer])])


def _all_in_doubt(field: pa.Field, count: int) -> Columns:
    return Columns([pa.nulls(count, field.type)], range(count))


def _reader(plugin: Raw, field: pa.Field) -> Callable[[bytes], Any]:
    kind, name = field.type, field.name
    if pa.types.is_binary(kind):
        return bytes
    if pa.types.is_string(kind):
        decode = _text_reader(plugin.charset)
        return lambda message: _named(decode, message, name)
    unpack = _struct(plugin, kind)

    def read(message: bytes) -> Any:
        if len(message) != unpack.size:
            size = "1 byte" if unpack.size == 1 else f"{unpack.size} bytes"
            takes = f"{sql_text(field)} takes {size}, the message has {len(message)}"
            raise Unreadable(takes, name)
        [value] = unpack.unpack(message)
        return value

    return read


def _struct(plugin: Raw, kind: pa.DataType) -> struct.Struct:
    order = "<" if plugin.endianness is Endianness.LITTLE else ">"
    return struct.Struct(order + ("?" if pa.types.is_boolean(kind) else _CODES[kind]))


def _named(decode: Callable[[bytes], str], message: bytes, name: str) -> str:
    try:
        return decode(message)
    except Unreadable as error:
        raise error.inside(name) from None


def _text_reader(charset: str) -> Callable[[bytes], str]:
    def decode(message: bytes) -> str:
        name = charset
        if _is_utf16(charset) and message[:2] not in (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE):
            name = "utf-16-be"  # Java's choice where no mark says otherwise
        try:
            text = message.decode(name)
            text.encode()
        except UnicodeDecodeError as error:
            raise Unreadable(f"byte {error.start} is not {charset}") from error
        except UnicodeEncodeError as error:
            raise Unreadable(f"character {error.start} is half a surrogate pair") from error
        return text

    return decode


def _is_utf16(charset: str) -> bool:
    return codecs.lookup(charset).name == "utf-16"


def _encoded(text: str, charset: str) -> bytes:
    if _is_utf16(charset):  # Java writes big-endian with a mark, Python would write little-endian
        return codecs.BOM_UTF16_BE + text.encode("utf-16-be")
    return text.encode(charset)


# --- writing ----------------------------------------------------------------------------


class RawEncoder:
    """Writes the one column; NULL is a message without a value, unless it is NOT NULL."""

    def __init__(self, plugin: Raw, schema: pa.Schema) -> None:
        self._plugin, self._field = plugin, schema.field(0)
        self._delimiter = plugin.delimiter or ""

    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
        kind = self._field.type
        values = checked(rows.column(0), self._field).to_pylist()
        if pa.types.is_string(kind):
            return [self._text(row, value) for row, value in enumerate(values)]
        tail = _encoded(self._delimiter, self._plugin.charset) if self._delimiter else b""
        if pa.types.is_binary(kind):
            return [None if value is None else value + tail for value in values]
        pack = _struct(self._plugin, kind).pack
        return [None if value is None else pack(value) + tail for value in values]

    def _text(self, row: int, value: str | None) -> bytes | None:
        if value is None:
            return None
        try:
            return _encoded(value + self._delimiter, self._plugin.charset)
        except UnicodeEncodeError as error:
            raise RecordError(
                f"row {row}, column '{self._field.name}': {value[error.start]!r} is not in "
                f"charset {self._plugin.charset}"
            ) from error
