"""A pytest plugin: soaks shared out among processes begin with what took longest last time.

Otherwise the test of an hour may begin when all others are done.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from . import report

Test = TypeVar("Test")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests into the order in which pytest-xdist's `worksteal` deals them out."""
    given: dict[str, int] = getattr(config, "workerinput", {})
    target = os.environ.get(report.FILE)
    if "workercount" in given and target:
        known = report.seconds(Path(target))
        items[:] = dealt(items, [_took(item, known) for item in items], given["workercount"])


def _took(item: pytest.Item, known: dict[str, int]) -> int:
    return known.get(report.name_of(item), 0) if hasattr(item, "callspec") else 0


def dealt(tests: Sequence[Test], seconds: Sequence[int], lanes: int) -> list[Test]:
    """The tests in as many parts, of which each takes about as long.

    Each process gets such a part, and gives away what it has not begun, except the next test: that
    one waits however long the first may take, so the first is the longest and the next the
    shortest of its part.
    """
    sizes = [(len(tests) + lane) // lanes for lane in range(lanes)]  # as they are cut
    parts: list[list[Test]] = [[] for _ in sizes]
    full = [0] * lanes
    for place in sorted(range(len(tests)), key=lambda place: -seconds[place]):
        open_lanes = [lane for lane in range(lanes) if len(parts[lane]) < sizes[lane]]
        lane = min(open_lanes, key=lambda lane: full[lane])
        parts[lane].append(tests[place])
        full[lane] += seconds[place]
    return [test for part in parts for test in (*part[:1], *part[1:][-1:], *part[1:-1])]
