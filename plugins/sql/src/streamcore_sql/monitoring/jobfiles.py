"""What runs and ran on this machine: one small file per job name, in the user's state folder."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..settings import state_folder
from .scrubbing import SECRETS

_KEPT = 30 * 86400.0
"""Seconds for which a run that has ended is remembered; one that runs writes every few."""


@dataclass
class JobFile:
    """A run of a script or a job file, as other processes may see it."""

    name: str
    pid: int
    born: str
    """When the process began, as the system counts: a pid that was used again has another."""
    started: float
    status: str = "running"
    script: str = ""
    path: str = ""
    """The file that was run; empty if its statements came from elsewhere."""
    updated: float = 0.0
    ended: float | None = None
    error: str = ""
    web: str = ""
    metrics: str = ""
    log: str = ""
    queries: list[dict[str, Any]] = field(default_factory=list)
    """The last figures of each query: name, id, checkpoint, batch, tables with their lag."""

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        return self.ended is None and born(self.pid) == self.born != ""

    @property
    def state(self) -> str:
        """How it stands; a run that left no word of its end has died."""
        return self.status if self.ended is not None or self.alive else "died"

    def write(self) -> None:
        """Replace the file at once, so that nobody reads half of it."""
        self.updated = time.time()
        path = _path(self.name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f".{path.name}.{os.getpid()}")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                json.dump(SECRETS.clean(asdict(self)), file, default=str)
            os.replace(draft, path)
        except OSError:
            return  # a job runs on where nothing can be kept

    def end(self, status: str, error: str = "") -> None:
        self.status, self.error, self.ended = status, error, time.time()
        self.write()


def begin(name: str, script: str, path: str = "") -> JobFile:
    """Make a run known to other processes; a name that runs elsewhere gets our pid added."""
    other = find(name)
    if other is not None and other.alive and other.pid != os.getpid():
        name = f"{name}-{os.getpid()}"
    _forget_old()
    made = JobFile(name, os.getpid(), born(os.getpid()), time.time(), script=script, path=path)
    made.write()
    return made


def every() -> list[JobFile]:
    """All runs that are known, the latest first."""
    return sorted(_read(), key=lambda job: -job.started)


def find(name: str) -> JobFile | None:
    """The run of this name."""
    return next((job for job in _read() if job.name == name), None)


def _read() -> Iterator[JobFile]:
    known = {each.name for each in fields(JobFile)}
    for path in sorted(_folder().glob("*.json")):
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
            yield JobFile(**{key: value for key, value in plain.items() if key in known})
        except (OSError, ValueError, TypeError, AttributeError):
            continue  # half a file, or a stranger's


def _forget_old() -> None:
    for path in _folder().glob("*.json"):
        try:
            if time.time() - path.stat().st_mtime > _KEPT:
                path.unlink()
        except OSError:
            continue  # another process was faster


def _folder() -> Path:
    return state_folder() / "runs"


def _path(name: str) -> Path:
    return _folder() / f"{quote(name, safe='')}.json"


def born(pid: int) -> str:
    """A text by which two processes that had the same pid differ; empty if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]  # ended, and only its parent's to forget
    except (OSError, IndexError):
        return _born_elsewhere(pid)


def _born_elsewhere(pid: int) -> str:
    """Where there is no /proc, the system's own list of processes knows."""
    import subprocess

    if Path("/proc/self/stat").exists():
        return ""
    try:
        listed = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return listed.stdout.strip()
