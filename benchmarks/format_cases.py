"""Formats beside the loops one would write by hand: rows per second of CPU, and peak memory."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from . import formats, formats_avro
from .formats import LARGE, QUICK_ROWS, ROWS, SMALL, Comparison, portions, rate
from .measure import Plan, Run
from .setting import Setting

_ROWS_IN_MEMORY = 100_000
"""With fewer the allocators' own needs would show."""


def cases(setting: Setting) -> Iterator[Plan]:
    """Each format at once and in small batches, and the loop; its time is CPU time."""
    rows = QUICK_ROWS if setting.quick else ROWS
    for each in comparisons():
        yield Plan(
            f"format-{each.name.replace(',', '').replace(' ', '-')}",
            f"{each.name}: {rows:,} rows in batches of {LARGE:,}, per second of CPU",
            partial(_sides, each, rows),
            setting.runs,
            setting.warmups,
            note="Memory is what all rows at once take, in multiples of their messages.",
        )


def comparisons() -> list[Comparison]:
    return formats.comparisons() + formats_avro.comparisons()


def _sides(each: Comparison, rows: int) -> dict[str, Callable[[], Run]]:
    data = each.make(rows)
    memory = {"memory": peak(each.name, _ROWS_IN_MEMORY)}
    return {
        "streamcore": _timed(each.ours, portions(each, data, LARGE), rows, memory),
        each.against: _timed(each.loop, _some(portions(each, data, LARGE)), rows),
        f"ours, {SMALL} at a time": _timed(each.ours, portions(each, data, SMALL), rows),
    }


def _some(parts: list[Any]) -> list[Any]:
    """A quarter of the batches: a loop takes as long for each row, and far longer than ours."""
    return parts[: max(1, len(parts) // 4)]


def _timed(
    work: Callable[[Any], Any],
    parts: list[Any],
    rows: int,
    extra: dict[str, float] | None = None,
) -> Callable[[], Run]:
    def run() -> Run:
        spent = rows / rate(work, parts, sum(map(len, parts)))
        return Run(seconds=spent, rows=rows, cpu=spent, extra=dict(extra or {}))

    return run


def peak(name: str, count: int) -> float:
    """How much memory everything at once takes, in multiples of the payload."""
    command = [sys.executable, "-m", "benchmarks.format_cases", name, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def print_peak(name: str, count: int) -> None:
    """Measure in this process, which has to be a fresh one."""
    each = next(each for each in comparisons() if each.name == name)
    data = each.make(count)
    payload = sum(map(len, data if each.decodes else each.loop(data[0])))
    each.ours(portions(each, data, LARGE)[0])
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = _memory("VmRSS")
    kept = each.ours(data if each.decodes else data[0])
    print((_memory("VmHWM") - before) / payload)
    del kept


def _memory(what: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


if __name__ == "__main__":
    print_peak(sys.argv[1], int(sys.argv[2]))
