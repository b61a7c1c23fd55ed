"""What the placeholders in the parser's text stand for, and where they were written."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from ..lexer import Token
from ..source import Place, Source
from ..statements import Name, Option


@dataclass(frozen=True)
class Call:
    """A function call; `name` is upper case, `written` as the user wrote it."""

    name: str
    written: str
    place: Place


@dataclass(frozen=True)
class Reference:
    """A table that the parser sees as `__t<n>`."""

    name: Name
    options: tuple[Option, ...] = ()
    partition_by: tuple[str, ...] = ()


@dataclass
class Aside:
    """What the placeholders of all texts of one query stand for."""

    calls: list[Call] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    hints: list[Place] = field(default_factory=list)  # those that Spark's planner does not know


@dataclass(frozen=True)
class Prepared:
    """Text for the parser, and the way back from its offsets."""

    text: str
    source: Source
    starts: list[int]
    origins: list[Token]

    def place(self, start: int, end: int) -> Place:
        """The place of the tokens at two offsets (the second included) of `text`."""
        first = self.origins[max(bisect_right(self.starts, start) - 1, 0)]
        last = self.origins[max(bisect_right(self.starts, end) - 1, 0)]
        return Place(self.source, first.start, max(last.end, first.start))
