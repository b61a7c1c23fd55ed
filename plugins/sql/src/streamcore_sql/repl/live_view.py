"""A streaming SELECT on the terminal: the result as it is now, until a key is pressed."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live

from ..live import Change, LiveRows
from .tables import rich_table, row_count

_LOOK = 0.25
_LEAVE = {"q", "Q", "\x1b", "\x03", "\x04"}


class View:
    """What is known of a result: the latest row of each key, or the latest changes."""

    def __init__(self, rows: LiveRows, height: int, *, changes: bool = False) -> None:
        self._columns, self._key, self._height = rows.columns, rows.key, max(height, 5)
        self._as_table = rows.plan.mode == "append" or bool(self._key)
        self._as_table = self._as_table and not changes
        self._current: dict[Any, tuple[Any, ...]] = {}
        self._latest: deque[Change] = deque(maxlen=self._height)
        self._count = 0

    def add(self, batch: list[Change]) -> None:
        for change in batch:
            self._count += 1
            self._latest.append(change)
            if self._as_table and self._key:
                key = tuple(change.row[at] for at in self._key)
                if change.kind == "-D":
                    self._current.pop(key, None)
                else:
                    self._current[key] = change.row

    def table(self, note: str = "") -> RenderableType:
        """The view as a table with what to press below it."""
        if self._as_table and self._key:
            rows = list(self._current.values())[: self._height]
            hidden = len(self._current) - len(rows)
            more = f", {hidden:,} more" if hidden > 0 else ""
            caption = f"{row_count(len(self._current))}{more} after {self._count:,} changes"
            return rich_table(self._columns, rows, f"{caption}{note}")
        if self._as_table:
            caption = f"{row_count(self._count)} so far, the latest shown{note}"
            return rich_table(self._columns, [change.row for change in self._latest], caption)
        caption = f"{self._count:,} changes so far, the latest shown{note}"
        marked = [(change.kind, *change.row) for change in self._latest]
        return rich_table(("op", *self._columns), marked, caption)


def watch(rows: LiveRows, console: Console, *, changes: bool = False) -> None:
    """Show a running SELECT until it ends or a key is pressed; it is stopped then."""
    view = View(rows, console.height - 6, changes=changes)
    pressed = False
    with keys() as key, Live(console=console, refresh_per_second=4) as live:
        try:
            for batch in rows.batches(timeout=_LOOK):
                view.add(batch)
                live.update(view.table("; q to leave"))
                if key() in _LEAVE:
                    pressed = True
                    break
        except KeyboardInterrupt:
            pressed = True
        live.update(view.table("; left" if pressed else "; done"))
    rows.stop()


@contextlib.contextmanager
def keys() -> Iterator[Any]:
    """Read single keys without waiting; the terminal is as before afterwards."""
    if not sys.stdin.isatty():
        yield lambda: ""
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def read() -> str:
        ready, _, _ = select.select([descriptor], [], [], 0)
        return os.read(descriptor, 1).decode(errors="replace") if ready else ""

    try:
        tty.setcbreak(descriptor)
        yield read
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
