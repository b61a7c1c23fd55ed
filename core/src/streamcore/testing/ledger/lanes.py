"""A pytest plugin: soaks shared out among processes begin with what took longest last time.

Otherwise the test of an hour may begin when all others are done.
"""

from __future__ import annotations

import os
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
        slow_first = sorted(items, key=lambda item: _took(item, known), reverse=True)
        items[:] = dealt(slow_first, given["workercount"])


def _took(item: pytest.Item, known: dict[str, int]) -> int:
    return known.get(report.name_of(item), 0) if hasattr(item, "callspec") else 0


def dealt(tests: list[Test], lanes: int) -> list[Test]:
    """Tests, the longest first, as one part for each lane, in which a short one comes second.

    Each process gets such a part, and gives away what it has not begun, except the next test: that
    one waits however long the first may take.
    """
    ordered: list[Test] = []
    for lane in reversed(range(lanes)):  # the last ones have one test less, which comes first
        mine = tests[lane::lanes]
        ordered += [*mine[:1], *mine[-1:], *mine[1:-1]] if len(mine) > 1 else mine
    return ordered
