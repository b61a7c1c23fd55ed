"""What happens to a record that is no row: one policy for every connector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from .errors import RecordError

_NOTES = 5


class FailureHandler(Enum):
    """The choices of `scan.deser.failure-handler`."""

    FAIL = "fail"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


@dataclass(frozen=True)
class BadRecord:
    """A record that was rejected: where it is, why, and its own bytes."""

    position: str
    reason: str
    key: bytes | None
    value: bytes | None
    origin: tuple[tuple[str, str], ...] = ()
    """The position's parts by name, for the headers of a dead letter."""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """What the record itself had for headers, if its system knows such."""


class FailurePolicy:
    """Applies the chosen handler; lives as long as a task, and counts what it let go."""

    def __init__(
        self,
        handler: FailureHandler,
        send: Callable[[Sequence[BadRecord]], None] | None = None,
    ) -> None:
        self._handler, self._send = handler, send
        self.skipped = 0
        self.dead_lettered = 0
        self.notes: list[str] = []
        """Where some of them were, and why they are no rows."""

    def apply(self, bad: Sequence[BadRecord]) -> None:
        """Raise, count, or send away; a dead letter that cannot be sent raises too."""
        if not bad:
            return
        noted = bad[: _NOTES - len(self.notes)]
        self.notes += [f"{each.position}: {each.reason}" for each in noted]
        if self._handler is FailureHandler.SKIP:
            self.skipped += len(bad)
        elif self._handler is FailureHandler.DEAD_LETTER and self._send:
            self._send(bad)
            self.dead_lettered += len(bad)
        else:
            more = f" ({len(bad) - 1} more in this batch)" if len(bad) > 1 else ""
            raise RecordError(
                f"{bad[0].position}: {bad[0].reason}{more}. Set "
                "'scan.deser.failure-handler' to 'skip' or 'dead-letter' to go on without it."
            )
