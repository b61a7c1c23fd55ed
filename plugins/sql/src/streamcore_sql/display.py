"""Shows how jobs go: a live table on a terminal, lines elsewhere, JSON for programs."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import click

from .connectors.row_text import value_text
from .live import Change
from .monitoring import wording
from .monitoring.metrics import untold
from .monitoring.scrubbing import SECRETS
from .progress import Progress, now
from .results import Done, Listing, Rows, Text

if TYPE_CHECKING:
    from rich.live import Live

_EVERY = 10.0
_TOPICS = 4

Ids = Mapping[str, Any]
"""Whose word it is: `job`, `query` and `batch`, None where there is no such thing."""


class Display(Protocol):
    """Where a command's words go."""

    def say(self, text: str) -> None: ...
    def note(self, text: str, ids: Ids | None = None) -> None: ...
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
        click.echo(SECRETS.scrub(text), err=True)

    def note(self, text: str, ids: Ids | None = None) -> None:
        self.say(f"note: {_whose(ids or {})}{text}")

    def error(self, text: str) -> None:
        self.say(f"streamcore: {text}")

    def result(self, outcome: Done | Listing | Text | Rows) -> None:
        if isinstance(outcome, Done):
            self.say(outcome.message)
            for each in outcome.notes:
                self.note(each)
        else:
            text = str(outcome)
            click.echo(text if isinstance(outcome, Rows) else SECRETS.scrub(text))

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
        """By job: the last batch and the state that were told."""

    def say(self, text: str) -> None:
        self._event("message", text=SECRETS.scrub(text))

    def note(self, text: str, ids: Ids | None = None) -> None:
        self._event("note", text=SECRETS.scrub(text), **(ids or {}))

    def error(self, text: str) -> None:
        self._event("error", text=SECRETS.scrub(text))

    def result(self, outcome: Done | Listing | Text | Rows) -> None:
        if isinstance(outcome, (Listing, Rows)):
            rows = outcome.rows if isinstance(outcome, Listing) else outcome.collect()
            for row in rows:
                fields = dict(zip(_told_apart(outcome.columns), row, strict=True))
                self._event(
                    "row", row=fields if isinstance(outcome, Rows) else SECRETS.clean(fields)
                )
        else:
            self._event(
                "done" if isinstance(outcome, Done) else "text", text=SECRETS.scrub(str(outcome))
            )

    def change(self, change: Change) -> None:
        self._event("change", kind=change.kind, row=change.row)

    def progress(self, looks: Sequence[Progress]) -> None:
        for look in looks:
            last, status = self._shown.get(look.job, (None, ""))
            batches, passed_over = untold(look.batches, last)
            last = batches[-1].number if batches else last
            self._shown[look.job] = (last, look.status)
            told = [look.of(each) for each in batches[:-1]]
            if batches or status != look.status:
                told.append(look)
            for each in told:
                more = {"passed_over": passed_over} if passed_over else {}
                self._event("progress", **each.to_json(), **more)
                passed_over = 0

    def close(self) -> None:
        """Nothing is left to show."""

    def _event(self, event: str, **fields: Any) -> None:
        text = json.dumps({"time": now(), "event": event, **fields}, default=str)
        click.echo(text)


def _whose(ids: Ids) -> str:
    """The job and the batch, as a line about a job begins."""
    if ids.get("job") is None:
        return ""
    batch = "" if ids.get("batch") is None else f", batch {ids['batch']}"
    return f"{ids['job']}{batch}: "


def _told_apart(names: Sequence[str]) -> list[str]:
    """Names of columns, numbered where a query gave one twice: an object has each name once."""
    found: list[str] = []
    for name in names:
        number, unique = 1, name
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found


class LiveDisplay(LineDisplay):
    """A table on a terminal that changes in place; what is said scrolls above it."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console

        self._console = Console(stderr=True)
        self._live: Live | None = None

    def say(self, text: str) -> None:
        if self._live is not None:
            self._console.print(SECRETS.scrub(text), markup=False, highlight=False)
        else:
            super().say(text)

    def progress(self, looks: Sequence[Progress]) -> None:
        from rich.live import Live

        if self._live is None:  # a new one: started again, it would wipe out what was said since
            self._live = Live(console=self._console, refresh_per_second=2, transient=False)
            self._live.start()
        self._live.update(view(looks, self._console.height))

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def line(look: Progress) -> str:
    """A job in one line."""
    parts = [f"{look.job}: {look.status}"]
    if look.done is not None:
        parts.append(f"{look.done:.0%} of its tasks done")
    if look.batch is not None:
        parts += [f"batch {look.batch}", f"{look.rows_in:,} rows in"]
    parts += [f"{name} {text}" for name, text in figures(look).items() if text]
    return ", ".join(parts)


def figures(look: Progress) -> dict[str, str]:
    """What is known of a job, each in a few words; empty where nothing is."""
    return {
        "in": wording.rate(look.rate_in, look.bytes_in),
        "out": wording.rate(look.rate_out, look.bytes_out),
        "lag": wording.lag(look),
        "took": ""
        if look.batch_seconds is None
        else wording.batch(look.batch_seconds, look.phases),
        "time": wording.times(look),
        "let go": wording.let_go(look),
    }


_COLOURS = {"running": "green", "failed": "red", "stopped": "yellow", "finished": "cyan"}


def view(looks: Sequence[Progress], height: int) -> Any:
    """Every job as a block of lines; as a line each if they would not fit."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text as RichText

    blocks: list[Any] = []
    for look in looks:
        status = RichText.assemble((look.job, "bold"), "  ", (look.status, _COLOURS[look.status]))
        if look.batch is not None:
            status.append(f"  batch {look.batch}  {look.rows_in:,} rows", "dim")
        grid = Table.grid(padding=(0, 1))
        grid.add_column(style="dim", width=11)
        grid.add_column(overflow="fold")
        told = {name: text for name, text in figures(look).items() if text}
        for name, text in told.items():
            grid.add_row(f"  {name}", RichText(text, "yellow" if _is_worrying(name, text) else ""))
            if name == "lag":
                for text in _topics(look):
                    grid.add_row("", RichText(text, "dim"))
        if look.done is not None:
            grid.add_row("  done", ProgressBar(total=1.0, completed=look.done, width=30))
        blocks += [status, grid]
    lines = sum(2 + len(figures(look)) + len(_topics(look)) for look in looks)
    if lines > height:
        return Group(*(RichText(line(look), no_wrap=True, overflow="ellipsis") for look in looks))
    return Group(*blocks)


def _is_worrying(name: str, text: str) -> bool:
    return name == "let go" or (name == "lag" and "never" in text)


def _topics(look: Progress) -> list[str]:
    """A line for each topic or shard that is most behind."""
    found = wording.topics(look)
    more = [f"... and {len(found) - _TOPICS} more"] if len(found) > _TOPICS else []
    return [f"{name}: {text}" for name, text in found[:_TOPICS]] + more


def display_for(*, as_json: bool, terminal: bool) -> Display:
    """The display that fits: JSON if asked for, live on a terminal, lines elsewhere."""
    if as_json:
        return JsonDisplay()
    return LiveDisplay() if terminal else LineDisplay()
