"""Faults on purpose: tests set STREAMCORE_FAILPOINT to break a process at a named point.

`commit:kill`, `marker:raise`, `flush:sleep=2`; `@3` behind it means the third time, and several
are separated by commas. Without the variable this costs one comparison.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter

_PLAN = os.environ.get("STREAMCORE_FAILPOINT", "")
_reached: Counter[str] = Counter()


class Failpoint(Exception):  # noqa: N818 - the name of the thing, which no user ever meets
    """Raised where a test asked for it."""


def reach(point: str) -> None:
    """Pass a point at which a test may want the process to break."""
    if _PLAN:
        _act(point)


def _act(point: str) -> None:
    _reached[point] += 1
    for entry in _PLAN.split(","):
        name, _, action = entry.strip().partition(":")
        action, _, times = action.partition("@")
        if name != point or (times and int(times) != _reached[point]):
            continue
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif action.startswith("sleep="):
            time.sleep(float(action.removeprefix("sleep=")))
        else:
            raise Failpoint(f"failpoint '{point}'")
