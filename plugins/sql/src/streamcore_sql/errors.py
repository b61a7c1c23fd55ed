"""What is wrong with a statement, where, and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from streamcore.errors import StreamcoreError

from .source import NOWHERE, Place

_SHOWN = 20


class SqlError(StreamcoreError):
    """A statement that cannot be understood or run; the text shows the line and a caret."""

    def __init__(self, trouble: str, place: Place = NOWHERE, hint: str = "") -> None:
        self.trouble, self.place, self.hint = trouble, place, hint
        self.line, self.column = place.line, place.column
        self.problems: Sequence[SqlError] = (self,)
        text = "\n".join(part for part in self._parts() if part)
        super().__init__(text if place is NOWHERE else place.source.mask(text))

    def _parts(self) -> Iterable[str]:
        if self.place is NOWHERE:
            yield self.trouble
        else:
            name = self.place.source.name
            where = f"line {self.line}, column {self.column}"
            yield f"{name + ', ' if name else ''}{where}: {self.trouble}"
            yield self.place.excerpt()
        yield self.hint

    @classmethod
    def together(cls, problems: Sequence[SqlError]) -> SqlError:
        """One error that tells of all problems; `.line` and `.column` are the first one's."""
        problems = [each for problem in problems for each in problem.problems]
        first = problems[0]
        error = cls(first.trouble, first.place, first.hint)
        error.problems = tuple(problems)
        paragraphs = [str(problem) for problem in problems[:_SHOWN]]
        if (more := len(problems) - _SHOWN) > 0:
            paragraphs.append(f"... and {more} more")
        error.args = ("\n\n".join(paragraphs),)
        return error

    def __reduce__(self) -> tuple[object, ...]:
        if len(self.problems) > 1:
            return SqlError.together, (list(self.problems),)
        return type(self), (self.trouble, self.place, self.hint)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or nothing."""
    names = {name.upper(): name for name in known}
    close = difflib.get_close_matches(word.upper(), names, n=1, cutoff=0.7)
    return f"Did you mean '{names[close[0]]}'?" if close else ""
