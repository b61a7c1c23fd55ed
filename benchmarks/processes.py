"""What a process and its children cost, read from /proc: CPU seconds and memory."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def tree(root: int) -> set[int]:
    """The process and all its descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                parents[int(entry.name)] = int(fields[1])
    found = {root}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def cpu_seconds(pids: set[int]) -> dict[int, float]:
    """User and system time of each process that is alive."""
    found = {pid: _stat(pid) for pid in pids}
    return {pid: (int(at[11]) + int(at[12])) / _TICKS for pid, at in found.items() if at}


class Family:
    """A process and all that it has started by now, held so that no other can be mistaken for it.

    Its children find other parents when it ends, and could not be found then.
    """

    def __init__(self, root: int) -> None:
        self._held: list[int] = []
        for pid in tree(root):
            with contextlib.suppress(ProcessLookupError):
                self._held.append(os.pidfd_open(pid))

    def end(self, patience: float) -> None:
        """Wait for all of them to end; kill those that have not by then."""
        deadline = time.monotonic() + patience
        for handle in self._held:
            if not _ended(handle, max(0.0, deadline - time.monotonic())):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                _ended(handle, 10)
            os.close(handle)


def _ended(handle: int, patience: float) -> bool:
    return bool(select.select([handle], [], [], patience)[0])


def is_python_worker(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"pyspark.daemon" in command or b"pyspark.worker" in command
    except OSError:
        return False


def resident_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 2**20
    except (OSError, IndexError):
        return 0.0


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


@dataclass
class Cost:
    """Filled in while a `watched` block runs."""

    cpu: float = 0.0
    peak_worker_mb: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)


@contextmanager
def watched(root: int, every: float = 0.2) -> Iterator[Cost]:
    """Measure what the process tree spends, and its largest Python worker, inside the block."""
    cost = Cost()
    before = cpu_seconds(tree(root))
    spent = dict(before)

    def look() -> None:
        """Process by process: what one has spent that ends is kept, and never taken off again."""
        pids = tree(root)
        spent.update(cpu_seconds(pids))
        sizes = [resident_mb(pid) for pid in pids if is_python_worker(pid)]
        cost.peak_worker_mb = max([cost.peak_worker_mb, *sizes])

    def sample() -> None:
        while not cost._stop.wait(every):
            look()

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield cost
    finally:
        cost._stop.set()
        sampler.join()
        look()
        cost.cpu = sum(spent.values()) - sum(before.values())
