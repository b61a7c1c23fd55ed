"""The one exception of the readers: what is wrong with a value, and where in the row it sits."""

from __future__ import annotations

_SHOWN = 60


class Unreadable(ValueError):  # noqa: N818 - says what the message is
    """A value or message that is no row; `where` is the path of the column, empty for a message."""

    def __init__(self, trouble: str, where: str = "") -> None:
        super().__init__(trouble, where)
        self.trouble, self.where = trouble, where

    def inside(self, name: str) -> Unreadable:
        """The same trouble, seen from the container that holds it."""
        if not name:
            return self
        dot = "." if self.where and not self.where.startswith("[") else ""
        return Unreadable(self.trouble, f"{name}{dot}{self.where}")

    def __str__(self) -> str:
        return f"column '{self.where}': {self.trouble}" if self.where else self.trouble


def shown(text: str) -> str:
    """The user's text in quotes, short enough for one line."""
    return repr(str(text)) if len(text) <= _SHOWN else repr(str(text[:_SHOWN])) + "..."


def a(name: str) -> str:
    """A type's name with its article."""
    return f"{'an' if name[:1] in 'AEIO' else 'a'} {name}"
