"""Figures in few words: `4.2 M behind, draining 18 k/s, current at 14:07`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..progress import Progress

_PHASES = {
    "addBatch": "work",
    "commitOffsets": "commit",
    "walCommit": "log",
    "queryPlanning": "plan",
    "latestOffset": "look",
    "getBatch": "fetch plan",
}
_DAY = 86400.0


def short(number: float) -> str:
    """A number in two or three figures."""
    for size, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= size * 0.9995:
            scaled = number / size
            return f"{scaled:.0f}{unit}" if abs(scaled) >= 9.95 else f"{scaled:.1f}{unit}"
    return f"{number:.0f}" if number == round(number) or abs(number) >= 100 else f"{number:.1f}"


def span(seconds: float) -> str:
    """A length of time, in its largest unit or two."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:.0f} days"


def lag(look: Progress) -> str:
    """How far a job is behind, and when it will be current at this pace."""
    return _lag(look.lag_rows, look.lag_seconds, look.drain, look.catch_up_seconds)


def topics(look: Progress) -> list[tuple[str, str]]:
    """How far each topic or shard is behind, the worst first; none if there is but one."""
    rows, late = look.lag_by_topic, look.lag_seconds_by_topic
    worst = sorted({**late, **rows}, key=lambda name: (-rows.get(name, 0), -late.get(name, 0)))
    if len(worst) < 2:
        return []
    drains, ends = look.drain_by_topic, look.catch_up_seconds_by_topic
    return [
        (name, _lag(rows.get(name), late.get(name), drains.get(name), ends.get(name)))
        for name in worst
    ]


def _lag(
    rows: int | None, seconds: float | None, drain: float | None, catch_up: float | None
) -> str:
    if rows is None and seconds is None:
        return ""
    if not rows and not (rows is None and seconds):
        return "none"
    parts = [f"{behind(rows, seconds)} behind"]
    if drain is not None and drain > 0 and rows:
        parts.append(f"draining {short(drain)}/s")
    if catch_up == float("inf"):
        parts.append("never at this rate")
    elif catch_up is not None:
        parts.append(f"current at {moment(catch_up)}")
    return ", ".join(parts)


def behind(rows: float | None, seconds: float | None) -> str:
    """A lag in rows and in time, as far as they are known."""
    late = span(seconds) if seconds else ""
    if not rows:
        return late or "none"
    return f"{short(rows)} ({late})" if late else short(rows)


def moment(seconds: float) -> str:
    """The time of day in so many seconds, as exactly as that can be meant."""
    if seconds > 365 * _DAY:
        return "a time over a year from now"
    form = "%H:%M:%S" if seconds < 300 else "%H:%M" if seconds < _DAY / 2 else "%Y-%m-%d %H:%M"
    return time.strftime(form, time.localtime(time.time() + seconds))


def stamp(seconds: float) -> str:
    """A moment as logs and the page tell it: texts of them sort as the moments do."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def batch(seconds: float, phases: Mapping[str, float]) -> str:
    """The time of a batch and what it was spent on, the longest first."""
    named = sorted(((millis, _PHASES.get(name, name)) for name, millis in phases.items()))
    told = [f"{name} {millis / 1000:.1f}" for millis, name in named[::-1] if millis >= 50]
    return f"{seconds:.1f} s" + (f" ({', '.join(told)})" if told else "")


def rate(rows: float | None, size: float | None) -> str:
    """Rows and bytes in a second."""
    parts = [] if rows is None else [f"{short(rows)} rows/s"]
    parts += [] if size is None else [f"{short(size)}B/s" if size >= 1000 else f"{size:.0f} B/s"]
    return ", ".join(parts)


def let_go(look: Progress) -> str:
    """What did not become rows, and what had to be tried again."""
    counts = (
        (look.rejected, "rejected"),
        (look.dead_lettered, "dead-lettered"),
        (look.late_rows, "late"),
        (look.retries, "retry" if look.retries == 1 else "retries"),
    )
    return ", ".join(f"{count:,} {name}" for count, name in counts if count)


def times(look: Progress) -> str:
    """The watermark, and how old events are when they come."""
    parts = []
    if look.watermark:
        shown = look.watermark.replace("T", " ").removesuffix("Z").removesuffix(".000")
        behind = look.watermark_seconds
        parts.append(
            f"watermark {shown}"
            + ("" if behind is None or behind < 0 else f" ({span(behind)} ago)")
        )
    if look.event_seconds is not None:
        parts.append(f"events {span(max(look.event_seconds, 0))} old")
    return ", ".join(parts)
