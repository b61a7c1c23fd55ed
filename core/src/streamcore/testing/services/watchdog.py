"""Ends the services of a process that died without ending them itself."""

# Runs as a script of its own, so it imports the standard library alone. Its parent writes lines of
# a sign and a pid or a directory; when the pipe closes, what is still listed is killed and removed.

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path


def birth(pid: int) -> str | None:
    """When the process started, as text to compare; None if there is no such process.

    A pid alone may have gone to another process in the meantime; a pid with its birth never.
    """
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
    else:
        return None if after_name[0] == "Z" else after_name[19]
    listed = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return listed.stdout.strip() or None


def watch(lines: Iterable[str]) -> None:
    """Follow the lines until they end, then clean up."""
    processes: dict[int, str | None] = {}
    directories: set[str] = set()
    for line in lines:
        sign, name = line[0], line[1:].rstrip("\n")
        if name.isdigit():
            if sign == "+":
                processes[int(name)] = birth(int(name))
            else:
                processes.pop(int(name), None)
        elif sign == "+":
            directories.add(name)
        else:
            directories.discard(name)
    for pid, born in processes.items():
        if born is not None and birth(pid) == born:
            os.kill(pid, signal.SIGKILL)
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watch(sys.stdin)
