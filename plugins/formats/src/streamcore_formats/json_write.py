"""Rows to JSON, a column at a time: every value becomes text in Arrow, never a Python object."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from . import numbers, temporal
from .arrow_texts import data_of
from .not_null import checked

_CHUNK_ROWS = 16_384
_CHUNK_BYTES = 16 * 2**20  # far below the 2 GiB that one Arrow string array can hold


class Style(NamedTuple):
    """The options that change how values are written."""

    iso: bool = False
    plain_decimals: bool = False
    ignore_nulls: bool = False


class Piece(NamedTuple):
    """A column as text, with what stands around every value that is not NULL."""

    texts: pa.StringArray
    mark: str = ""

    def closed(self) -> pa.StringArray:
        """The texts with their marks; NULL stays NULL."""
        return join(self.mark, self.texts, self.mark) if self.mark else self.texts


def slices(rows: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
    """Cut a batch into parts whose text fits an Arrow string array."""
    average = rows.nbytes // max(rows.num_rows, 1) + 1
    step = max(1, min(_CHUNK_ROWS, _CHUNK_BYTES // average))
    return [(start, rows.slice(start, step)) for start in range(0, rows.num_rows, step)]


def messages_of(texts: pa.StringArray) -> list[bytes | None]:
    """The bytes of every text."""
    messages: list[bytes | None] = texts.view(pa.binary()).to_pylist()
    return messages


def row_texts(
    rows: pa.RecordBatch, schema: pa.Schema, style: Style, start: int = 0
) -> pa.StringArray:
    """Each row as the text of a JSON object; `start` is the first row's number in errors."""
    pieces = []
    for field, column in zip(schema, rows.columns, strict=True):
        pieces.append(piece(checked(column, field, start), style))
    return _object(schema.names, pieces, rows.num_rows, style.ignore_nulls)


def piece(array: pa.Array, style: Style) -> Piece:
    """The JSON text of every value of an array."""
    kind, types = array.type, pa.types
    if types.is_string(kind):
        return Piece(escaped(array), '"')
    if types.is_integer(kind) or types.is_boolean(kind):
        return Piece(array.cast(pa.string()))
    if types.is_floating(kind):
        return Piece(_floats(array))
    if types.is_decimal(kind):
        return Piece(_decimals(array, style.plain_decimals))
    if types.is_duration(kind):
        milliseconds = pc.divide(array.cast(pa.int64()), 1000)
        return Piece(milliseconds.cast(pa.string()))
    if types.is_binary(kind):
        encoded = [None if v is None else b64encode(v) for v in array.to_pylist()]
        return Piece(pa.array(encoded, pa.binary()).view(pa.string()), '"')
    if types.is_temporal(kind):
        return Piece(temporal.texts_of(array, style.iso), '"')
    if types.is_struct(kind):
        return Piece(_struct(array, style))
    if types.is_map(kind):
        return Piece(_map(array, style))
    return Piece(_list(array, style))


# --- containers ---------------------------------------------------------------------------------


def join(*parts: Any, null: str | None = None) -> pa.StringArray:
    """The parts of each row in one text; a NULL part is written as `null`, else the row is NULL."""
    handling = "emit_null" if null is None else "replace"
    given = [_literal(part) if isinstance(part, str) else part for part in (*parts, "")]
    options = pc.JoinOptions(handling, null or "")
    return pc.call_function("binary_join_element_wise", given, options)


@lru_cache(maxsize=4096)  # making a scalar costs as much as joining a hundred of them
def _literal(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.string())


def _object(
    names: Sequence[str], pieces: Sequence[Piece], rows: int, ignore_nulls: bool
) -> pa.StringArray:
    if not pieces:
        return pa.array(["{}"] * rows, pa.string())
    keys = [quoted(name) + ":" for name in names]
    if ignore_nulls and any(each.texts.null_count for each in pieces):
        members = [
            join(key + each.mark, each.texts, each.mark + ",")
            for key, each in zip(keys, pieces, strict=True)
        ]
        return join("{", pc.ascii_rtrim(join(*members, null=""), characters=","), "}")
    parts: list[Any] = []
    literal = "{"
    for key, each in zip(keys, pieces, strict=True):
        literal += key
        if each.texts.null_count:
            parts += [literal, each.closed()]
            literal = ","
        else:
            parts += [literal + each.mark, each.texts]
            literal = each.mark + ","
    return join(*parts, literal[:-1] + "}", null="null")


def _struct(array: pa.StructArray, style: Style) -> pa.StringArray:
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    pieces = [piece(child, style) for child in array.flatten()]
    texts = _object(names, pieces, len(array), style.ignore_nulls)
    return where_valid(array, texts)


def _list(array: pa.ListArray, style: Style) -> pa.StringArray:
    items = piece(array.flatten(), style).closed().fill_null("null")
    return where_valid(array, join("[", text_groups(pc.list_value_length(array), items), "]"))


def _map(array: pa.MapArray, style: Style) -> pa.StringArray:
    pairs = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    keys, items = pairs.flatten().flatten()
    lengths = pc.list_value_length(pairs)
    texts = piece(items, style).closed().fill_null("null")
    entries = join('"', escaped(keys), '":', texts)
    return where_valid(array, join("{", text_groups(lengths, entries), "}"))


def text_groups(lengths: pa.Array, items: pa.StringArray, delimiter: str = ",") -> pa.StringArray:
    """Consecutive items joined to texts of so many items each."""
    ends = pc.cumulative_sum(lengths.fill_null(0)).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return pc.binary_join(pa.ListArray.from_arrays(offsets, items), delimiter)


def where_valid(array: pa.Array, texts: pa.StringArray) -> pa.StringArray:
    """The texts, but NULL where the array is."""
    if not array.null_count:
        return texts
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string()))


# --- scalars -------------------------------------------------------------------------------------

CONTROL = bytes(range(0x20))
_SPECIAL = CONTROL + b'"\\'
_ESCAPES = {
    **{chr(code): f"\\u{code:04X}" for code in range(0x20)},
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
}
_ESCAPED = re.compile(r'[\x00-\x1f"\\]')


def quoted(text: str) -> str:
    """One text as a JSON string."""
    return f'"{_escape(text)}"'


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], text)


def escaped(array: pa.StringArray) -> pa.StringArray:
    """Every text of a column with JSON's escapes, without the quotes."""
    data = data_of(array)
    if len(data) == len(data.translate(None, _SPECIAL)):
        return array
    if len(data) == len(data.translate(None, CONTROL)):
        array = pc.replace_substring(array, "\\", "\\\\")
        return pc.replace_substring(array, '"', '\\"')
    return _replaced(array, pc.match_substring_regex(array, _ESCAPED.pattern), _escape)


def _replaced(
    texts: pa.StringArray, mask: pa.BooleanArray, rewrite: Callable[[Any], str]
) -> pa.StringArray:
    mask = mask.fill_null(False)
    if not mask.true_count:
        return texts
    rewritten = pa.array([rewrite(v) for v in texts.filter(mask).to_pylist()], pa.string())
    return pc.replace_with_mask(texts, mask, rewritten)


def _floats(array: pa.Array) -> pa.StringArray:
    texts = array.cast(pa.string())
    ends = pc.min_max(array).as_py()
    if ends["min"] is not None and ends["min"] >= 1e-3 and ends["max"] < 1e7:
        dotted = pc.match_substring(texts, ".")
        whole = dotted.true_count < len(texts) - texts.null_count
        return pc.if_else(dotted, texts, join(texts, ".0")) if whole else texts
    size = pc.abs(array)
    plain = pc.or_(pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)), pc.equal(size, 0.0))
    whole = pc.invert(pc.match_substring(texts, "."))
    if pc.any(whole).as_py():
        texts = pc.if_else(pc.and_(whole, plain), join(texts, ".0"), texts)
    return _replaced(texts, pc.invert(plain), _unusual)


def _unusual(text: str) -> str:
    written = numbers.java_text(float(text), text)
    return quoted(written) if written[-1] in "Ny" else written


def _decimals(array: pa.Array, plain: bool) -> pa.StringArray:
    texts = array.cast(pa.string())
    scientific = pc.match_substring(texts, "E")
    if plain:
        return _replaced(texts, scientific, lambda text: f"{Decimal(text):f}")
    if array.type.scale > 0:
        short = pc.utf8_rtrim(pc.utf8_rtrim(texts, characters="0"), characters=".")
        texts = pc.if_else(scientific, texts, short)
    round_number = pc.and_(pc.ends_with(texts, "0"), pc.not_equal(texts, "0"))
    return _replaced(
        texts,
        pc.or_(scientific, round_number),
        lambda text: numbers.decimal_text(Decimal(text)),
    )
