"""JSON whose messages all look alike, read as the table it nearly is.

A producer writes every message from one template: the same keys, in the same order, with the same
blanks. The template is learned from one message; Arrow then splits all others at their commas, and
each piece must be the template's own text around one plain scalar. Pieces that are, put together,
make exactly the object that a JSON parser would see; a message with any other piece is left to the
typed reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from .decoding import Columns, Fast, Messages, in_one_piece, joined, weigh
from .json_exact import Rules
from .json_pieces import NUMBER, TEXT, Doubt, Piece, both, piece_reader, unwanted

_MANY = 2000
"""Messages from which on the fixed cost of Arrow's parser is earned back."""
_PAUSE = 32
"""Chunks left to the typed reader after one that had little in common with its template."""

_MEMBER = re.compile(
    rf'([ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*)'
    rf"({TEXT}|{NUMBER}|true|false|null)([ \t\n\r]*)".encode()
)


def template(message: bytes) -> list[Piece] | None:
    """The pieces of a flat object with distinct keys; None for any other message."""
    pieces: list[Piece] = []
    opening = re.match(rb"[ \t\n\r]*\{", message)
    if not opening:
        return None
    at, before = opening.end(), opening[0]
    while member := _MEMBER.match(message, at):
        at = member.end()
        last = message[at : at + 1] == b"}"
        try:
            key = member[2].decode()
        except UnicodeDecodeError:
            return None
        after = member[4] + message[at:] if last else member[4]
        pieces.append(Piece(key, before + member[1], after))
        before = b""
        if last:
            plain = not message[at + 1 :].strip(b" \t\r")
            distinct = len({piece.key for piece in pieces}) == len(pieces)
            return pieces if plain and distinct else None
        if message[at : at + 1] != b",":
            return None
        at += 1
    return None


class LayoutReader:
    """Reads the messages that follow the template, and gives the typed reader the rest."""

    def __init__(self, fields: Sequence[pa.Field], rules: Rules, typed: Fast) -> None:
        self._fields, self._typed = fields, typed
        self._readers = {field.name: piece_reader(field, rules) for field in fields}
        self._pieces: list[Piece] | None = None
        self._pause = 0

    def __call__(self, messages: Messages) -> Columns:
        if not self.is_due(len(messages)):
            return self._typed(messages)
        try:
            arrays, sure = self._by_template(messages)
        except Doubt:
            self._pause, self._pieces = _PAUSE, None
            return self._typed(messages)
        if len(sure) == len(messages):
            return Columns(arrays)
        if 2 * len(sure) < len(messages):
            self._pause, self._pieces = _PAUSE, None
        return self._completed(messages, arrays, sure)

    def is_due(self, count: int) -> bool:
        """Whether to try a template on so many messages; asking shortens a pause."""
        if count < _MANY or not self._pause:
            return count >= _MANY
        self._pause -= 1
        return False

    def _completed(
        self, messages: Messages, arrays: Sequence[pa.Array], sure: Sequence[int]
    ) -> Columns:
        known = set(sure)
        rest = [index for index in range(len(messages)) if index not in known]
        others = self._typed([messages[index] for index in rest])
        order = pc.array_sort_indices(pa.array([*sure, *rest], pa.int32()))
        both = [
            pa.concat_arrays([ours, theirs]).take(order)
            for ours, theirs in zip(arrays, others.arrays, strict=True)
        ]
        return Columns(both, [rest[index] for index in others.doubtful])

    def _by_template(self, messages: Messages) -> tuple[list[pa.Array], Sequence[int]]:
        pieces = self._pieces or self._learned(messages)
        table, ragged = _split(messages, len(pieces))
        count = table.num_rows
        fine: pa.BooleanArray | None = None
        found: dict[str, pa.Array] = {}
        for piece, column in zip(pieces, table.columns, strict=True):
            read = self._readers.get(piece.key, unwanted)
            found[piece.key], good = read(in_one_piece(column), piece)
            fine = both(fine, good)
        arrays = [
            found[field.name] if field.name in found else pa.nulls(count, field.type)
            for field in self._fields
        ]
        kept: Sequence[int] = range(len(messages))
        if ragged:
            kept = [index for index in kept if index not in ragged]
        if fine is not None:
            places = pc.indices_nonzero(fine)
            arrays = [array.take(places) for array in arrays]
            kept = [kept[place] for place in places.to_pylist()]
        return arrays, kept

    def _learned(self, messages: Messages) -> list[Piece]:
        for message in filter(None, messages[:3]):
            pieces = template(bytes(message))
            if pieces is not None and self._suits(pieces):
                self._pieces = pieces
                return pieces
        raise Doubt

    def _suits(self, pieces: Sequence[Piece]) -> bool:
        """Whether this way is worth it: checking what nobody wants is not."""
        keys = {piece.key for piece in pieces}
        missing = [field for field in self._fields if field.name not in keys]
        unwanted = len(keys) - (len(self._fields) - len(missing))
        return all(field.nullable for field in missing) and 2 * unwanted <= len(self._fields)


def layout_reader(fields: Sequence[pa.Field], rules: Rules, typed: Fast) -> Fast:
    """The typed reader, with this one before it where the columns are plain scalars."""
    plain = fields and not any(pa.types.is_nested(field.type) for field in fields)
    return LayoutReader(fields, rules, typed) if plain and not rules.fail_on_missing else typed


def _split(messages: Messages, count: int) -> tuple[pa.Table, set[int]]:
    """The messages cut at their commas, and the places of those with more or fewer pieces.

    Lines are as many as messages and line feeds in messages together; so as many as messages
    means that every message is a line.
    """
    try:
        whole = joined(messages)
    except TypeError:  # there is a None among them, which makes an odd line
        whole = b"\n".join(message or b"" for message in messages)
    weigh(messages, len(whole))
    ragged: set[int] = set()

    def skip(row: Any) -> str:
        ragged.add(row.number - 1)
        return "skip" if 2 * len(ragged) < len(messages) else "error"

    try:
        try:
            table = _cut(whole, count, None)
        except pa.ArrowInvalid:
            whole.decode()  # Arrow shows the odd lines to `skip` as text
            table = _cut(whole, count, skip)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise Doubt from error
    if table.num_rows + len(ragged) != len(messages):
        raise Doubt
    return table, ragged


def _cut(whole: bytes, count: int, skip: Callable[[Any], str] | None) -> pa.Table:
    names = [str(position) for position in range(count)]
    return arrow_csv.read_csv(
        pa.py_buffer(whole),
        read_options=arrow_csv.ReadOptions(
            use_threads=False, column_names=names, block_size=len(whole) + 1
        ),
        parse_options=arrow_csv.ParseOptions(
            quote_char=False, ignore_empty_lines=False, invalid_row_handler=skip
        ),
        convert_options=arrow_csv.ConvertOptions(
            check_utf8=False, column_types=dict.fromkeys(names, pa.binary()), null_values=[]
        ),
    )
