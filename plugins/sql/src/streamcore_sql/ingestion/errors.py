"""What can be wrong with a job file, and with the rows that a job meets later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamcore import StreamcoreError

from ..errors import SqlError, did_you_mean

if TYPE_CHECKING:
    from .document import Node


class JobFileError(SqlError):
    """A job file that cannot be run; tells every mistake with its line and column."""

    exit_code = 2


class SchemaChanged(StreamcoreError):  # noqa: N818 - says what happened
    """Rows with columns that `schema.change.behavior` does not allow; none of them was written."""


class RowRefused(StreamcoreError):  # noqa: N818 - says what happened
    """A row that does not fit its table; nothing of its batch was written by this task."""


def noted(text: str, at: Node, *, key: bool = False) -> str:
    """A note about a node, or about the key it stands under, that tells its place."""
    place = at.key_place if key and at.key_place else at.place
    return f"{place.source.name}, line {place.line}, column {place.column}: {text}"


class Problems:
    """Collects what is wrong with a file, to tell all of it at once."""

    def __init__(self) -> None:
        self._found: list[SqlError] = []

    def add(self, trouble: str, at: Node, hint: str = "", *, key: bool = False) -> None:
        """Complain about a node, or about the key it stands under."""
        if at.unfilled and not key:  # it is not this value that will be read
            return
        place = at.key_place if key and at.key_place else at.place
        self._found.append(JobFileError(trouble, place, hint))

    def unknown(self, what: str, node: Node, known: Sequence[str]) -> None:
        """Complain about a key that nobody reads."""
        hint = did_you_mean(what.rpartition(" ")[2].strip("'"), known)
        self.add(what, node, hint or f"Known here: {', '.join(known)}.", key=True)

    def take(self, error: SqlError) -> None:
        """Keep an error that already has its place."""
        self._found.extend(error.problems)

    def __len__(self) -> int:
        return len(self._found)

    def together(self) -> SqlError:
        """One error for all that was found, in the order of the file."""
        ordered = sorted(self._found, key=lambda error: error.place.start)
        return JobFileError.together(ordered)

    def raise_any(self) -> None:
        """Raise that error, if anything was found."""
        if self._found:
            raise self.together()
