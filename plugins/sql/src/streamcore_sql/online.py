"""Asks the system behind a table whether the table is there and may be read."""

from __future__ import annotations

import threading

from streamcore import StreamcoreError

from .errors import SqlError
from .planner.binding import Bound

_SECONDS = 30.0


def ask(bound: Bound) -> None:
    """Raise SqlError with the reason if the system does not answer, or not kindly."""
    connector, table = bound.connector, bound.table
    if not connector.can("stream_reader"):
        return
    outcome: list[BaseException | None] = []

    def look() -> None:
        try:
            connector.stream_reader(table).initialOffset()
            outcome.append(None)
        except BaseException as error:  # handed over to whoever waits
            outcome.append(error)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    if not outcome:
        trouble = f"table '{bound.name}': no answer within {_SECONDS:.0f} s"
    elif outcome[0] is None:
        return
    elif isinstance(outcome[0], StreamcoreError):
        trouble = f"table '{bound.name}': {outcome[0]}"
    else:
        trouble = f"table '{bound.name}': {type(outcome[0]).__name__}: {outcome[0]}"
    raise SqlError(trouble, bound.statement.name.place)
