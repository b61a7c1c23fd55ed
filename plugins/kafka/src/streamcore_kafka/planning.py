"""How much a batch reads and how its tasks share it: functions of numbers alone."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping, Sequence

from .progress import Partition, Range

ROWS_PER_TASK = 20_000
"""Below this a second task costs more than it saves: each one is some 40 ms of hand-over."""
ROWS_PER_EXTRA_TASK = 500_000
"""From here on, a task per partition costs nothing that is felt, even beyond the cores we know."""


def admit(backlog: Mapping[Partition, int], limit: int) -> dict[Partition, int]:
    """Share a limited number of rows out, by what waits in each partition; none waits for ever."""
    total = sum(backlog.values())
    if total <= limit:
        return dict(backlog)
    least = 1 if limit >= len(backlog) else 0
    rest = {each: waiting - least for each, waiting in backlog.items()}
    total, room = sum(rest.values()), limit - least * len(backlog)
    shares = {each: least + waiting * room // total for each, waiting in rest.items()}
    left = limit - sum(shares.values())
    # The largest fractions first; by name then, so that equal input gives equal output.
    for each in sorted(rest, key=lambda each: (-(rest[each] * room % total), each))[:left]:
        shares[each] += 1
    return shares


def task_count(rows: int, partitions: int, cores: int, parallelism: int | None) -> int:
    """How many tasks are worth their cost for so many rows."""
    useful = max(1, -(-rows // ROWS_PER_TASK))
    if parallelism is not None:
        return min(parallelism, useful)
    beyond = min(partitions, rows // ROWS_PER_EXTRA_TASK)
    return min(partitions, max(min(cores, useful), beyond)) or 1


def plan(ranges: Sequence[Range], tasks: int, split: bool) -> list[tuple[Range, ...]]:
    """Deal ranges out to at most `tasks` tasks of about equal size."""
    pieces = _pieces(ranges, tasks) if split else list(ranges)
    loads: list[tuple[int, int]] = [(0, at) for at in range(min(tasks, len(pieces)))]
    shares: list[list[Range]] = [[] for _ in loads]
    for piece in sorted(pieces, key=lambda r: (-r.size, r)):
        load, at = heapq.heappop(loads)
        shares[at].append(piece)
        heapq.heappush(loads, (load + piece.size, at))
    return [_joined(share) for share in shares]


def _joined(share: Sequence[Range]) -> tuple[Range, ...]:
    """Put pieces together again that met in one task."""
    joined: list[Range] = []
    for piece in sorted(share):
        if joined and joined[-1].partition == piece.partition and joined[-1].end == piece.start:
            piece = joined.pop()._replace(end=piece.end)
        joined.append(piece)
    return tuple(joined)


def _pieces(ranges: Sequence[Range], tasks: int) -> list[Range]:
    """Cut ranges that are longer than a task's fair share into equal pieces."""
    fair = max(1, -(-sum(each.size for each in ranges) // tasks))
    pieces = []
    for each in ranges:
        count = -(-each.size // fair)
        cuts = [each.start + each.size * at // count for at in range(count + 1)]
        pieces += [each._replace(start=a, end=b) for a, b in itertools.pairwise(cuts)]
    return pieces
