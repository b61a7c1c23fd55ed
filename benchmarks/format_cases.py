"""Formats beside the loops one would write by hand: rows per second of CPU, and peak memory."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import formats, formats_avro
from .formats import LARGE, QUICK_ROWS, ROWS, SMALL, Comparison, portions, rate
from .measure import Case, Run, alternate
from .setting import Setting

_ROWS_IN_MEMORY = 100_000
"""With fewer the allocators' own needs would show."""


def cases(setting: Setting) -> Iterator[Case]:
    """Each format at once and in small batches, and the loop; its time is CPU time."""
    rows = QUICK_ROWS if setting.quick else ROWS
    for each in comparisons():
        yield case(each, rows, runs=2)


def comparisons() -> list[Comparison]:
    return formats.comparisons() + formats_avro.comparisons()


def case(each: Comparison, rows: int, runs: int) -> Case:
    """One comparison as a case of the runner."""
    data = each.make(rows)
    sides = {
        "streamcore": _timed(each.ours, portions(each, data, LARGE), rows),
        each.against: _timed(each.loop, portions(each, data, LARGE), rows),
        f"ours, {SMALL} at a time": _timed(each.ours, portions(each, data, SMALL), rows),
    }
    memory = peak(each.name, _ROWS_IN_MEMORY)
    what = (
        f"{each.name}: {rows:,} rows in batches of {LARGE:,}, per second of CPU; "
        f"all at once takes {memory:.1f}x of the payload in memory"
    )
    return alternate(f"format-{each.name.replace(' ', '-')}", what, sides, runs=runs, warmups=1)


def _timed(work: Callable[[Any], Any], parts: list[Any], rows: int) -> Callable[[], Run]:
    def run() -> Run:
        spent = rows / rate(work, parts, rows)
        return Run(seconds=spent, rows=rows, cpu=spent)

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
