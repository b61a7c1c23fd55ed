"""A script and the places in it: offsets become lines, columns and an excerpt with a caret."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from .masking import MASK, secrets_in

_WIDEST = 100


class Filled(NamedTuple):
    """One variable that was replaced: where its value is, where it was written, if it is secret."""

    start: int
    end: int
    written_start: int
    written_end: int
    secret: str


@dataclass(frozen=True, eq=False)
class Source:
    """What is parsed (`text`) and what the user wrote (`written`: variables not filled in)."""

    text: str
    name: str = ""
    written: str = ""
    filled: Sequence[Filled] = ()

    def __post_init__(self) -> None:
        if not self.filled:
            object.__setattr__(self, "written", self.text)

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.written))]

    @cached_property
    def secrets(self) -> Sequence[tuple[int, int]]:
        """Where in `written` there is what must not be shown."""
        return secrets_in(self.written)

    @cached_property
    def _starts(self) -> list[int]:
        return [piece.start for piece in self.filled]

    def locate(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1, of an offset of `written`."""
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def origin(self, offset: int, *, end: bool = False) -> int:
        """The offset in `written` that an offset of `text` comes from."""
        index = bisect_right(self._starts, offset - end) - 1
        if index < 0:
            return offset
        piece = self.filled[index]
        if offset - end < piece.end:
            return piece.written_end if end else piece.written_start
        return offset - piece.end + piece.written_end

    def mask(self, text: str) -> str:
        """A text, such as somebody else's error, without the secret values of this script."""
        for secret in sorted({piece.secret for piece in self.filled}, key=len, reverse=True):
            text = text.replace(secret, MASK) if secret else text
        return text

    def is_secret(self, start: int, end: int) -> bool:
        """Whether a secret variable was filled in between two offsets of `text`."""
        near = self._near(start, end)
        return any(each.secret and each.start < end and start < each.end for each in near)

    def quote(self, start: int, end: int) -> str:
        """Text for an error message: shortened, secret values masked."""
        first, last = self.origin(start), self.origin(end, end=True)
        if any(secret[0] < last and first < secret[1] for secret in self.secrets):
            return MASK
        shown, at = [], start
        for piece in self._near(start, end):
            if piece.secret and piece.end > at and piece.start < end:
                shown += [self.text[at : piece.start], MASK]
                at = piece.end
        text = " ".join("".join([*shown, self.text[at:end]]).split())
        return text if len(text) <= 40 else text[:37] + "..."

    def line(self, number: int) -> str:
        """A line of `written`, without its end."""
        start = self._lines[number - 1]
        end = self._lines[number] if number < len(self._lines) else len(self.written)
        return self.written[start:end].rstrip("\r\n")

    def _near(self, start: int, end: int) -> Sequence[Filled]:
        first = max(bisect_right(self._starts, start) - 1, 0)
        return self.filled[first : bisect_right(self._starts, end)]


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of a script."""

    source: Source = field(repr=False)
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.source.locate(self.source.origin(self.start))[0]

    @property
    def column(self) -> int:
        return self.source.locate(self.source.origin(self.start))[1]

    @property
    def text(self) -> str:
        """What the user wrote there, variables not filled in."""
        origin = self.source.origin
        return self.source.written[origin(self.start) : origin(self.end, end=True)]

    def within(self, start: int, end: int) -> Place:
        """A stretch of this one, by offsets relative to its start."""
        return Place(self.source, self.start + start, self.start + end)

    def excerpt(self) -> str:
        """The line of this place with carets under it, values of secret options masked."""
        source = self.source
        start = source.origin(self.start)
        number, column = source.locate(start)
        line = source.line(number)
        left = min(column - 1, len(line))
        right = min(left + max(source.origin(self.end, end=True) - start, 1), max(len(line), 1))
        begin = start - column + 1
        within = [
            (max(first - begin, 0), min(last - begin, len(line)))
            for first, last in source.secrets
            if first < begin + len(line) and begin < last
        ]
        line, left, right = _masked(line, left, right, within)
        line, left, right = _clipped(line, left, right)
        line = re.sub(r"[^\S ]|[\x00-\x1f]", " ", line)
        blank, carets = _width(line[:left]), max(_width(line[left:right]), 1)
        return f"    {line.rstrip()}\n    {' ' * blank}{'^' * carets}"


NOWHERE = Place(Source(""), 0, 0)


def _masked(
    line: str, left: int, right: int, secrets: Sequence[tuple[int, int]]
) -> tuple[str, int, int]:
    for start, end in reversed(secrets):
        grown = len(MASK) - (end - start)
        line = line[:start] + MASK + line[end:]
        left, right = (
            at if at <= start else start + len(MASK) if at < end else at + grown
            for at in (left, right)
        )
    return line, left, max(right, left)


def _clipped(line: str, left: int, right: int) -> tuple[str, int, int]:
    if len(line) <= _WIDEST:
        return line, left, right
    first = max(0, min(left - 20, len(line) - _WIDEST))
    clip = line[first : first + _WIDEST]
    lead = "... " if first else ""
    tail = " ..." if first + _WIDEST < len(line) else ""
    return lead + clip + tail, left - first + len(lead), min(right - first, _WIDEST) + len(lead)


def _width(text: str) -> int:
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
