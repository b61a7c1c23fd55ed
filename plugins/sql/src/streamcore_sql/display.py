"""Shows how jobs go: a live table on a terminal, lines elsewhere, JSON for programs."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, Protocol

import click

from .connectors.row_text import value_text
from .live import Change
from .progress import Progress, now
from .results import Done, Listing, Rows, Text

_EVERY = 10.0


class Display(Protocol):
    """Where a command's words go."""

    def say(self, text: str) -> None: ...
    def note(self, text: str) -> None: ...
    def error(self, text: str) -> None: ...
    def result(self, outcome: Done | Listing | Text | Rows) -> None: ...
    def change(self, change: Change) -> None: ...
    def progress(self, looks: Sequence[Progress]) -> None: ...
    def close(self) -> None: ...


class LineDisplay:
    """Plain lines: results on standard output, everything else on standard error."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._shown: dict[str, str] = {}

    def say(self, text: str) -> None:
        click.echo(text, err=True)

    def note(self, text: str) -> None:
        self.say(f"note: {text}")

    def error(self, text: str) -> None:
        self.say(f"streamcore: {text}")

    def result(self, outcome: Done | Listing | Text | Rows) -> None:
        if isinstance(outcome, Done):
            self.say(outcome.message)
            for each in outcome.notes:
                self.note(each)
        else:
            click.echo(str(outcome))

    def change(self, change: Change) -> None:
        click.echo(f"{change.kind}[{', '.join(map(value_text, change.row))}]")

    def progress(self, looks: Sequence[Progress]) -> None:
        due = time.monotonic() - self._last >= _EVERY
        self._last = time.monotonic() if due else self._last
        for look in looks:
            if due or self._shown.get(look.job, "running") != look.status:
                self.say(line(look))
            self._shown[look.job] = look.status

    def close(self) -> None:
        """Nothing is left to show."""


class JsonDisplay:
    """One JSON object per line, all on standard output."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[int | None, str]] = {}

    def say(self, text: str) -> None:
        self._event("message", text=text)

    def note(self, text: str) -> None:
        self._event("note", text=text)

    def error(self, text: str) -> None:
        self._event("error", text=text)

    def result(self, outcome: Done | Listing | Text | Rows) -> None:
        if isinstance(outcome, (Listing, Rows)):
            rows = outcome.rows if isinstance(outcome, Listing) else outcome.collect()
            for row in rows:
                self._event("row", **dict(zip(outcome.columns, row, strict=True)))
        else:
            self._event("done" if isinstance(outcome, Done) else "text", text=str(outcome))

    def change(self, change: Change) -> None:
        self._event("change", kind=change.kind, row=change.row)

    def progress(self, looks: Sequence[Progress]) -> None:
        for look in looks:
            if self._shown.get(look.job) != (look.batch, look.status):
                self._shown[look.job] = (look.batch, look.status)
                self._event("progress", **look.to_json())

    def close(self) -> None:
        """Nothing is left to show."""

    def _event(self, event: str, **fields: Any) -> None:
        text = json.dumps({"time": now(), "event": event, **fields}, default=str)
        click.echo(text)


class LiveDisplay(LineDisplay):
    """A table on a terminal that changes in place; what is said scrolls above it."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), refresh_per_second=4, transient=False)
        self._running = False

    def say(self, text: str) -> None:
        if self._running:
            self._live.console.print(text, markup=False, highlight=False)
        else:
            super().say(text)

    def progress(self, looks: Sequence[Progress]) -> None:
        if not self._running:
            self._live.start()
            self._running = True
        self._live.update(_table(looks))

    def close(self) -> None:
        if self._running:
            self._live.stop()
            self._running = False


def line(look: Progress) -> str:
    """A job in one line."""
    parts = [f"{look.job}: {look.status}"]
    if look.done is not None:
        parts.append(f"{look.done:.0%} of its tasks done")
    if look.batch is not None:
        parts += [f"batch {look.batch}", f"{look.rows_in:,} rows in"]
    parts += [f"{name} {text}" for name, text in _figures(look).items() if text]
    return ", ".join(parts)


def _figures(look: Progress) -> dict[str, str]:
    return {
        "in": _rate(look.rate_in),
        "out": _rate(look.rate_out),
        "lag": lag(look),
        "batch": "" if look.batch_seconds is None else f"{look.batch_seconds:.1f} s",
        "watermark": (look.watermark or "").replace("T", " ").removesuffix("Z"),
        "late": f"{look.late_rows:,}" if look.late_rows else "",
    }


def lag(look: Progress) -> str:
    """How far a job is behind, and when it will be current at this pace."""
    if look.lag_rows is None and look.lag_seconds is None:
        return ""
    if not look.lag_rows and not look.lag_seconds:
        return "none"
    text = f"{look.lag_rows:,} rows" if look.lag_rows else f"{look.lag_seconds:.0f} s"
    if look.catch_up_seconds is None:
        return text
    if look.catch_up_seconds == float("inf"):
        return f"{text}, growing"
    at = time.strftime("%H:%M:%S", time.localtime(time.time() + look.catch_up_seconds))
    return f"{text}, current at {at}"


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:,.0f} rows/s"


def _table(looks: Sequence[Progress]) -> Any:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text as RichText

    colours = {"running": "green", "failed": "red", "stopped": "yellow", "finished": "cyan"}
    columns = ("job", "status", "rows", *_figures(Progress("", "")))
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=True)
    for look in looks:
        status = RichText(look.status, style=colours[look.status])
        rows: Any = f"{look.rows_in:,}" if look.batch is not None else ""
        if look.done is not None:
            rows = ProgressBar(total=1.0, completed=look.done, width=20)
        table.add_row(look.job, status, rows, *_figures(look).values())
    return table


def display_for(*, as_json: bool, terminal: bool) -> Display:
    """The display that fits: JSON if asked for, live on a terminal, lines elsewhere."""
    if as_json:
        return JsonDisplay()
    return LiveDisplay() if terminal else LineDisplay()
