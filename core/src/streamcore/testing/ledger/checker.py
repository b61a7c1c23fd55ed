"""Compares what was sent with what readers saw: lost, duplicated, reordered, aborted or unknown."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

SHOWN = 5


class Seen(NamedTuple):
    """One row as a reader got it; `place` is its partition and offset, or any other position."""

    key: str
    sequence: int
    place: tuple[object, ...] = ()


@dataclass
class Findings:
    """Everything that is wrong; empty if nothing is."""

    lost: list[Seen] = field(default_factory=list)
    duplicated: list[Seen] = field(default_factory=list)
    reordered: list[Seen] = field(default_factory=list)
    aborted: list[Seen] = field(default_factory=list)
    unknown: list[Seen] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(vars(self).values())

    def __str__(self) -> str:
        kinds = {kind: rows for kind, rows in vars(self).items() if rows}
        return "; ".join(_count(kind, rows) for kind, rows in kinds.items()) or "nothing wrong"


def _count(kind: str, rows: Sequence[Seen]) -> str:
    shown = ", ".join(
        f"{row.key}/{row.sequence}" + (f" at {row.place}" if row.place else "")
        for row in rows[:SHOWN]
    )
    return f"{len(rows)} {kind} ({shown}{', …' if len(rows) > SHOWN else ''})"


def compare(
    sent: Mapping[str, int],
    final: Iterable[Seen],
    live: Iterable[Seen] = (),
    *,
    ordered: bool = True,
) -> Findings:
    """Check that the rows 0…n-1 of every key were seen once and in order.

    `final` was read after everything had ended, `live` while it went on: what the latter has and
    the former lacks was shown to a reader and then taken back. Negative numbers are rows of
    transactions that were aborted on purpose.
    """
    found, final, live = Findings(), list(final), list(live)
    kept = {(row.key, row.sequence) for row in final}
    for row in final:
        _judge(row, sent, found)
    found.lost = [
        Seen(key, number)
        for key, count in sent.items()
        for number in range(count)
        if (key, number) not in kept
    ]
    found.aborted += [row for row in live if (row.key, row.sequence) not in kept]
    for rows in (final, live):
        twice = _twice(rows)
        found.duplicated += [row for row in twice if row not in found.duplicated]
        if ordered:
            found.reordered += _reordered(rows)
    return found


def _judge(row: Seen, sent: Mapping[str, int], found: Findings) -> None:
    if row.sequence < 0:
        found.aborted.append(row)
    elif row.sequence >= sent.get(row.key, 0):
        found.unknown.append(row)


def _twice(rows: Sequence[Seen]) -> list[Seen]:
    counted: Counter[tuple[str, int]] = Counter()
    twice = []
    for row in rows:
        counted[row.key, row.sequence] += 1
        if counted[row.key, row.sequence] == 2:
            twice.append(row)
    return twice


def _reordered(rows: Sequence[Seen]) -> list[Seen]:
    """Rows that come after a later one of their key; repetitions are not meant here."""
    last: dict[str, int] = defaultdict(lambda: -1)
    wrong = []
    for row in rows:
        if 0 <= row.sequence < last[row.key]:
            wrong.append(row)
        last[row.key] = max(last[row.key], row.sequence)
    return wrong
