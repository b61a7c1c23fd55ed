"""Asks the systems behind a table whether it is there, and may be read or written."""

from __future__ import annotations

import threading

from streamcore import StreamcoreError

from .errors import SqlError
from .planner.binding import Bound

_SECONDS = 45.0


def ask(bound: Bound, *, writing: bool) -> str:
    """Say that all is well; raise SqlError with every reason if it is not."""
    connector, table = bound.connector, bound.table
    problems: list[str] = []
    failures: list[BaseException] = []

    def look() -> None:
        try:
            problems.extend(map(str, connector.online_problems(table, writing=writing)))
        except BaseException as error:  # handed over to whoever waits
            failures.append(error)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    if thread.is_alive():
        problems = [f"no answer within {_SECONDS:.0f} s"]
    for failure in failures:
        ours = isinstance(failure, StreamcoreError)
        problems.append(str(failure) if ours else f"{type(failure).__name__}: {failure}")
    if problems:
        trouble = "\n".join(f"table '{bound.name}': {problem}" for problem in problems)
        raise SqlError(trouble, bound.statement.name.place)
    return f"'{bound.name}' is there to be {'written' if writing else 'read'}"
