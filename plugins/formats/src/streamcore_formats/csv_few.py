"""Few lines read at once: one kernel cuts all cells, and columns of one type are read as one.

What a hundred rows cost is how many kernels are called, not how many values these see.
"""

from __future__ import annotations

import math
import re
import struct
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from streamcore.types import sql_text

from . import temporal, texts
from .csv import Csv
from .texts import Finished

MOST = 3000
"""Lines from which on the fixed cost of Arrow's parser is earned back."""

# Called as functions, with options made once: the wrappers around them cost as much as the work.
_SPLIT, _TAKE, _CAST, _EQUAL = map(
    pc.get_function, ("split_pattern", "array_take", "cast", "equal")
)
_IN_BOUNDS = pc.TakeOptions(boundscheck=False)
_STAND_INS = (b"\x1f", b"\x1e", b"\x1d", b"\x1c")

Finish = Callable[[pa.StringArray], Finished]
Read = Callable[[pa.StringArray, bytes], "pa.Array | None"]
"""Reads cells, of which it is also given the text in one piece; None where it is not sure."""


class _Group(NamedTuple):
    """Columns of one type: their places among the wanted ones, and who reads them all at once."""

    places: list[int]
    read: Read


class FewLines:
    """Reads lines that have a cell for every column, and quotes only around whole cells."""

    def __init__(
        self,
        plugin: Csv,
        schema: pa.Schema,
        wanted: Sequence[pa.Field],
        finishers: Sequence[Finish],
        literals: Sequence[str],
    ) -> None:
        self._delimiter, self._width = plugin.delimiter.encode(), len(schema) + 1
        self._split = pc.SplitPatternOptions(plugin.delimiter)
        self._quote = plugin.quote and plugin.quote.encode()
        self._misplaced = _misplaced(plugin.delimiter, plugin.quote) if plugin.quote else None
        self._finishers = finishers
        self._literals = [pa.scalar(literal, pa.string()) for literal in literals]
        self._groups = _groups(wanted)
        places = [at for each in self._groups for at in each.places]
        self._order = [schema.names.index(wanted[at].name) for at in places]
        self._turns, self._reach = [b""] * (len(places) + 1), 0
        self._last = -1, pa.array([], pa.int32())

    def __call__(self, whole: bytes, count: int) -> list[Finished] | None:
        """The columns of `count` lines of UTF-8; None if a line is not of that kind."""
        cells = self._cells(whole, count)
        if cells is None:
            return None
        _, ends, held = cells.buffers()
        ends, data = memoryview(ends).cast("i"), held.to_pybytes()
        last = ends[count * len(self._order)]
        if data[last:] != b"\n" * (count - 1):
            return None
        may_be_null = self._literals and self._has_literal(cells)
        found: list[Finished] = [(cells, ())] * len(self._finishers)
        start = 0
        for places, read in self._groups:
            size = count * len(places)
            part = cells.slice(start, size)
            column = None
            if not may_be_null or not self._has_literal(part):
                column = read(part, data[ends[start] : ends[start + size]])
            if column is not None and len(places) == 1:
                found[places[0]] = column, ()
            elif column is not None:
                for at, place in enumerate(places):
                    found[place] = column.slice(at * count, count), ()
            else:
                for at, place in enumerate(places):
                    found[place] = self._finishers[place](part.slice(at * count, count))
            start += size
        return found

    def _has_literal(self, cells: pa.StringArray) -> bool:
        return any(_EQUAL.call([cells, literal]).true_count for literal in self._literals)

    def _cells(self, whole: bytes, count: int) -> pa.StringArray | None:
        """Column after column, those of one group side by side, and line ends after all of them.

        Line ends become cells of their own, which have to stand behind every last cell.
        """
        delimiter, hidden = self._delimiter, b""
        if self._quote and self._quote in whole:
            bare = self._unquoted(whole, self._quote)
            if bare is None:
                return None
            whole, hidden = bare
        marked = whole.replace(b"\n", delimiter + b"\n" + delimiter)
        if len(marked) - len(whole) != 2 * (count - 1):  # some line holds a line feed
            return None
        cells = _SPLIT.call([_strings(1, struct.pack("2i", 0, len(marked)), marked)], self._split)
        cells = cells.values
        if len(cells) != count * self._width - 1:
            return None
        cells = _TAKE.call([cells, self._turned(count)], _IN_BOUNDS)
        if not hidden:
            return cells
        _, offsets, data = cells.buffers()
        return _strings(len(cells), offsets, data.to_pybytes().translate(hidden))

    def _turned(self, count: int) -> pa.Int32Array:
        """Where the cells of columns are among those of lines."""
        if self._last[0] != count:  # batches of one size come in a row
            if count > self._reach:  # no more than is needed: a task may have one batch only
                self._reach = 2 * count
                line_ends = self._width - 1
                self._turns = [_every(self._width, n, 2 * count) for n in (*self._order, line_ends)]
            *turns, ends = self._turns
            parts = [turn[: 4 * count] for turn in turns]
            data = pa.py_buffer(b"".join([*parts, ends[: 4 * (count - 1)]]))
            self._last = count, pa.Array.from_buffers(pa.int32(), data.size // 4, [None, data], 0)
        return self._last[1]

    def _unquoted(self, whole: bytes, quote: bytes) -> tuple[bytes, bytes] | None:
        """The lines without quotes, and the table that brings back what they hid."""
        free = [mark for mark in _STAND_INS if mark not in whole][:2]
        if len(free) < 2:
            return None
        bare = self._bare(whole, quote, *free)
        if bare is None:
            bare = self._bare(whole.replace(quote * 2, free[1]), quote, *free)
        table = bytes.maketrans(b"".join(free), self._delimiter + quote)
        return None if bare is None else (bare, table)

    def _bare(self, whole: bytes, quote: bytes, inner: bytes, doubled: bytes) -> bytes | None:
        """Lines whose inner delimiters are `inner`, if doubled quotes stand between others only."""
        parts = whole.split(quote)
        outside, inside = (quote.join(parts[at::2]) for at in (0, 1))
        if len(parts) % 2 == 0 or b"\n" in inside or doubled in outside:
            return None
        if self._misplaced is None or self._misplaced(b"\n" + outside + b"\n"):
            return None
        parts[1::2] = inside.replace(self._delimiter, inner).split(quote)
        return b"".join(parts)


def _misplaced(delimiter: str, quote: str) -> Callable[[bytes], object]:
    """Finds a cell in quotes, each shrunk to one quote, that is not all there is of its cell."""
    end, mark = f"[{re.escape(delimiter)}\\n]", re.escape(quote)
    return re.compile(f"{mark}(?:(?!{end})|(?<!{end}{mark}))".encode()).search


def _every(width: int, place: int, count: int) -> bytes:
    return array("i", range(place, width * count, width)).tobytes()


def _strings(count: int, offsets: bytes | pa.Buffer, data: bytes) -> pa.StringArray:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), count, buffers, 0)


# --- from cells to columns ------------------------------------------------------------------


def _groups(wanted: Sequence[pa.Field]) -> list[_Group]:
    found: dict[str, _Group] = {}
    for place, field in enumerate(wanted):
        kind = sql_text(field)
        if kind not in found:
            found[kind] = _Group([], _reader(field))
        found[kind].places.append(place)
    return list(found.values())


def _reader(field: pa.Field) -> Read:
    """The same as `texts.column_of`, by fewer kernels."""
    kind, types = field.type, pa.types
    if types.is_string(kind):
        return lambda cells, data: cells
    cast = _caster(kind)
    if types.is_integer(kind):  # Arrow reads hex, Java does not
        return lambda cells, data: None if b"x" in data or b"X" in data else cast(cells)
    if types.is_boolean(kind):  # Arrow also reads '1', '0' and capitals
        return lambda cells, data: None if data.translate(None, b"truefals") else cast(cells)
    if kind == pa.float64():
        return lambda cells, data: _finite(cast(cells))
    if types.is_timestamp(kind) and kind.tz is None and temporal.fills_unit(field):
        return lambda cells, data: cast(cells) if _has_seconds(data, len(cells)) else None
    at_once = texts.column_of(field)
    return lambda cells, data: at_once(cells)


def _caster(kind: pa.DataType) -> Callable[[pa.StringArray], pa.Array | None]:
    """Arrow's own parser; it answers None where it refuses any of the texts."""
    options = pc.CastOptions.safe(kind)

    def cast(cells: pa.StringArray) -> pa.Array | None:
        try:
            return _CAST.call([cells], options)
        except pa.ArrowInvalid:
            return None

    return cast


def _finite(numbers: pa.Array | None) -> pa.Array | None:
    """The numbers, if none is 'inf' or 'nan', which are Arrow's spellings."""
    if numbers is None:
        return None
    data = numbers.buffers()[1].to_pybytes()[: 8 * len(numbers)]
    highest = data[7::8]  # sign and upper bits of the exponent, all set where it is the largest
    if 0x7F not in highest and 0xFF not in highest:
        return numbers
    return numbers if all(map(math.isfinite, memoryview(data).cast("d"))) else None


def _has_seconds(data: bytes, count: int) -> bool:
    """Whether this many timestamps are written in full; Arrow needs no seconds, and takes a T."""
    return b"T" not in data and data.count(b":") == 2 * count
