"""CSV read in columns, once every line is known to be one record of the plain grammar."""

from __future__ import annotations

import csv
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from . import texts
from .csv import Csv
from .csv_exact import cell_reader, exact_reader
from .csv_few import MOST, FewLines
from .decoding import (
    Columns,
    Fast,
    Messages,
    TwoPathDecoder,
    doubt_everything,
    in_one_piece,
    joined,
    wanted_fields,
    weigh,
)
from .texts import Finished, each_value

_MANY = MOST
_LARGE = 2**16

_BOM = b"\xef\xbb\xbf"

Cells = Any  # an array of strings, or a sequence of few
Split = tuple[Sequence[Cells], set[int]]


def csv_decoder(plugin: Csv, schema: pa.Schema, columns: Sequence[str] | None) -> TwoPathDecoder:
    """A decoder of the wanted columns."""
    wanted = wanted_fields(schema, columns)
    fast: Fast = doubt_everything(wanted)
    if _is_plain(plugin):
        fast = _LineReader(plugin, schema, wanted)
    exact = exact_reader(plugin, schema, wanted)
    return TwoPathDecoder(pa.schema(wanted), fast, exact, ignoring=plugin.ignore_parse_errors)


def _is_plain(plugin: Csv) -> bool:
    """Whether all parsers speak of the same characters."""
    marks = [plugin.delimiter, plugin.quote, plugin.escape_character]
    given = [mark for mark in marks if mark is not None]
    usual = all(mark.isascii() and mark not in "\r\n\0" for mark in given)
    return usual and len(set(given)) == len(given)


class _LineReader:
    """Reads messages that are one well-formed line each, and doubts all others."""

    def __init__(self, plugin: Csv, schema: pa.Schema, wanted: Sequence[pa.Field]) -> None:
        self._plugin, self._count = plugin, len(schema)
        literals = _literals(plugin)
        self._finishers = [_finisher(field, plugin, literals) for field in wanted]
        self._few = FewLines(plugin, schema, wanted, self._finishers, literals)
        self._places = [schema.names.index(field.name) for field in wanted]
        self._nothing = doubt_everything(wanted)
        self._grammar = _line_grammar(plugin)
        quote, escape = (mark and mark.encode() for mark in (plugin.quote, plugin.escape_character))
        self._special = [mark for mark in (b"\r", escape, quote) if mark]
        self._special_to_few = [mark for mark in (b"\r", escape) if mark]
        self._starts_anyhow = not plugin.allow_comments and not plugin.trim_spaces

    def __call__(self, messages: Messages) -> Columns:
        whole = self._plain_text(messages)
        columns = None
        if whole is not None:
            columns = self._columns(whole, range(len(messages)), len(messages))
        if columns is None:
            kept, lines = self._well_formed(messages)
            columns = self._columns(b"\n".join(lines), kept, len(messages)) if lines else None
        return self._nothing(messages) if columns is None else columns

    def _columns(self, whole: bytes, kept: Sequence[int], count: int) -> Columns | None:
        """What the lines of the messages that were kept hold; None if they are no such lines."""
        lines = len(kept)
        ragged: set[int] = set()
        finished = None
        if lines < _MANY and lines <= MOST and _is_text(whole):
            finished = self._few(whole, lines)
        if finished is None:
            split = self._split(whole, lines)
            if split is None:
                return None
            cells, ragged = split
            finished = [finish(each) for finish, each in zip(self._finishers, cells, strict=True)]
        return _placed(finished, ragged, kept, count)

    # --- which messages are lines ---------------------------------------------------------

    def _plain_text(self, messages: Messages) -> bytes | None:
        """The lines, if there is nothing to understand but delimiters, and quotes in few lines.

        Python's strict reader takes and refuses quotes as the grammar does, Arrow's does not.
        """
        if not self._starts_anyhow or not all(messages):
            return None
        whole = joined(messages)
        weigh(messages, len(whole))
        for mark in self._special if len(messages) >= _MANY else self._special_to_few:
            if mark in whole:
                return None
        return None if _BOM[:1] in whole and _BOM in whole else whole

    def _well_formed(self, messages: Messages) -> tuple[Sequence[int], Sequence[bytes]]:
        """The messages that are one line of the plain grammar, and where they stand."""
        weigh(messages)
        lines = pa.array([m if m and _is_text(m) else None for m in messages], pa.binary())
        fine = pc.match_substring_regex(lines, self._grammar)
        for start in (_BOM, *((b"#", b" ") if self._plugin.allow_comments else ())):
            fine = pc.and_not(fine, pc.starts_with(lines, start))
        kept = pc.indices_nonzero(fine).to_pylist()
        return kept, [messages[index] for index in kept]

    # --- from lines to cells ----------------------------------------------------------------
    # A line makes one record at most, so as many records as lines means that each made its own.

    def _split(self, whole: bytes, count: int) -> Split | None:
        by_arrow = self._by_arrow(whole, count) if count >= _MANY else None
        return by_arrow or self._by_python(whole, count)

    def _by_arrow(self, whole: bytes, count: int) -> Split | None:
        ragged: set[int] = set()
        is_text = _is_text(whole)  # all of it at once: Arrow looks at cell by cell

        def skip(row: Any) -> str:
            ragged.add(row.number - 1)
            return "skip"

        try:
            table = self._table(whole, is_text, None)
        except pa.ArrowInvalid:  # some lines have more or fewer cells, or are no UTF-8
            if not is_text:  # which `skip` could not be shown
                return None
            table = self._table(whole, is_text, skip)
        if table.num_rows + len(ragged) != count:
            return None
        columns = [in_one_piece(column) for column in table.columns]
        return columns[: len(self._places)], ragged

    def _table(self, whole: bytes, is_text: bool, skip: Callable[[Any], str] | None) -> pa.Table:
        wanted = [str(place) for place in self._places or [0]]
        return arrow_csv.read_csv(
            pa.py_buffer(whole),
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                column_names=[str(place) for place in range(self._count)],
                block_size=len(whole) + 1,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._plugin.delimiter,
                quote_char=self._plugin.quote or False,
                ignore_empty_lines=False,
                invalid_row_handler=skip,
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, pa.string()),
                null_values=[],
                check_utf8=not is_text,
            ),
        )

    def _by_python(self, whole: bytes, count: int) -> Split | None:
        delimiter, quote = self._plugin.delimiter, self._plugin.quote
        if whole.count(b"\n") != count - 1 or not _is_text(whole):  # some line holds a line feed
            return None
        lines = whole.decode().split("\n")
        if quote is None or quote.encode() not in whole:
            rows = [line.split(delimiter) for line in lines]
        else:
            try:
                rows = list(csv.reader(lines, delimiter=delimiter, quotechar=quote, strict=True))
            except csv.Error:
                return None
        if len(rows) != count:
            return None
        ragged = {place for place, row in enumerate(rows) if len(row) != self._count}
        if ragged:
            rows = [row for row in rows if len(row) == self._count]
        by_place: list[Any] = list(zip(*rows, strict=True)) or [()] * self._count
        return [by_place[place] for place in self._places], ragged


def _placed(
    finished: Sequence[Finished], ragged: set[int], kept: Sequence[int], count: int
) -> Columns:
    """The columns of lines that are not ragged; all other messages are in doubt."""
    arrays = [array for array, _ in finished]
    if ragged:
        kept = [index for place, index in enumerate(kept) if place not in ragged]
    bad = set().union(*[doubts for _, doubts in finished])
    if not bad and len(kept) == count:
        return Columns(arrays)
    if bad:
        mask = pa.array([place not in bad for place in range(len(kept))], pa.bool_())
        arrays = [array.filter(mask) for array in arrays]
        kept = [index for place, index in enumerate(kept) if place not in bad]
    sure = set(kept)
    doubtful = [index for index in range(count) if index not in sure]
    return Columns(arrays, doubtful, origin=pa.array(kept, pa.int32()))


def _is_text(data: bytes) -> bool:
    """Whether it is UTF-8; Python makes a copy to tell, which costs more than Arrow's call."""
    if data.isascii():
        return True
    try:
        if len(data) < _LARGE:
            data.decode()
        else:
            offsets = pa.py_buffer(struct.pack("2i", 0, len(data)))
            whole = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(data)], 0)
            whole.validate(full=True)
    except (UnicodeDecodeError, pa.ArrowInvalid):
        return False
    return True


def _line_grammar(plugin: Csv) -> str:
    """Lines that all parsers read alike: no escapes, and quotes only around whole cells."""
    delimiter = re.escape(plugin.delimiter)
    escape = re.escape(plugin.escape_character or "")
    quote = re.escape(plugin.quote or "")
    ends = delimiter + r"\r\n" + escape
    if plugin.trim_spaces:
        blank = r"\x00-\x20"
        cell = f"[^{ends}{quote}{blank}](?:[^{ends}]*[^{ends}{blank}])?"
    else:
        cell = f"[^{ends}{quote}][^{ends}]*"
    if quote:
        cell = rf"{quote}(?:[^\r\n{escape}{quote}]|{quote}{quote})*{quote}|{cell}"
    return rf"\A(?:{cell}|)(?:{delimiter}(?:{cell}|))*\z"


def _literals(plugin: Csv) -> list[str]:
    """The texts that stand for NULL."""
    literals = [] if plugin.null_literal is None else [plugin.null_literal]
    return literals + ([""] if plugin.empty_is_null else [])


def _finisher(field: pa.Field, plugin: Csv, literals: Sequence[str]) -> Callable[[Cells], Finished]:
    at_once = texts.column_of(field)
    few = texts.short_column_of(field)
    one = cell_reader(field, plugin)
    forgiving = plugin.ignore_parse_errors and field.nullable

    def finish(cells: Cells) -> Finished:
        if not isinstance(cells, pa.Array):
            if not literals or not any(literal in cells for literal in literals):
                array = few(cells)
                if array is not None:
                    return array, ()
            cells = pa.array(cells, pa.string())
        strings: pa.StringArray = cells
        for literal in literals:
            absent = pc.equal(strings, literal)
            if absent.true_count:
                strings = pc.if_else(absent, pa.scalar(None, pa.string()), strings)
        if strings.null_count and not field.nullable:
            return pa.nulls(len(strings), field.type), range(len(strings))
        array = at_once(strings)
        if array is not None:
            return array, ()
        return each_value(strings.to_pylist(), one, field, forgiving)

    return finish
