"""Asks the systems behind a table whether it is there, and may be read or written."""

from __future__ import annotations

import threading
import time

from streamcore import StreamcoreError

from .errors import SqlError
from .planner.binding import Bound

_SECONDS = 45.0


class Question:
    """Whether a table is there for us; asked from the moment this is made, beside others."""

    def __init__(self, bound: Bound, *, writing: bool) -> None:
        self._bound, self._writing = bound, writing
        self._problems: list[str] = []
        self._failure: BaseException | None = None
        self._until = time.monotonic() + _SECONDS
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        bound, writing = self._bound, self._writing
        try:
            found = bound.connector.online_problems(bound.table, writing=writing)
            self._problems.extend(map(str, found))
        except BaseException as error:  # handed over to whoever waits
            self._failure = error

    def answer(self) -> str:
        """Say that all is well; raise SqlError with every reason if it is not."""
        name, problems = self._bound.name, self._problems
        self._thread.join(max(0.0, self._until - time.monotonic()))
        if self._thread.is_alive():
            problems = [f"no answer within {_SECONDS:.0f} s"]
        elif (failure := self._failure) is not None:
            ours = isinstance(failure, StreamcoreError)
            problems.append(str(failure) if ours else f"{type(failure).__name__}: {failure}")
        if problems:
            trouble = "\n".join(f"table '{name}': {problem}" for problem in problems)
            raise SqlError(trouble, self._bound.statement.name.place)
        return f"'{name}' is there to be {'written' if self._writing else 'read'}"
