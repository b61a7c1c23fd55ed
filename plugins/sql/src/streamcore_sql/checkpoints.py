"""Where a job left off: compared with the query at hand before anything starts."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import IO

from streamcore import StreamcoreError

from .fingerprint import Fingerprint, differences

_FILE = "streamcore.json"
_LOCK = "streamcore.lock"
_VERSION = 1


class CannotResume(StreamcoreError):  # noqa: N818 - says what happened
    """A query cannot go on from the checkpoint it would use; nothing was changed."""

    exit_code = 2


class Checkpoint:
    """A job's checkpoint in a local folder; other file systems are left to Spark alone."""

    def __init__(self, folder: str, job: str) -> None:
        self._folder, self._job = Path(folder.removeprefix("file://")), job
        self.is_local = "://" not in folder.removeprefix("file://")
        self._lock: IO[str] | None = None

    @property
    def has_begun(self) -> bool:
        """Whether a batch was ever planned there."""
        return self.is_local and any((self._folder / "offsets").glob("[0-9]*"))

    def check(self, now: Fingerprint) -> str:
        """Raise CannotResume with the reasons and the choices; return what there is to note."""
        if not self.has_begun:
            return ""
        try:
            kept = json.loads((self._folder / _FILE).read_text(encoding="utf-8"))
            before = Fingerprint.from_json(kept["query"])
        except (OSError, ValueError, KeyError, TypeError):
            return f"goes on from '{self._folder}', whose query is not known"
        if reasons := list(differences(before, now)):
            raise CannotResume(self._refusal(reasons))
        return f"goes on from '{self._folder}'"

    def begin(self, now: Fingerprint, *, fresh: bool = False) -> None:
        """Remember the query, and keep others off the folder while it runs.

        `fresh` moves an old checkpoint aside, to start over, unless a job runs there.
        """
        if not self.is_local:
            return
        if fresh and self._folder.exists():
            self._take_lock()
            self._set_aside()
            self.release()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        text = json.dumps({"version": _VERSION, "job": self._job, "query": now.to_json()}, indent=2)
        draft = self._folder / f".{_FILE}.draft"
        draft.write_text(text + "\n", encoding="utf-8")
        os.replace(draft, self._folder / _FILE)

    def _set_aside(self) -> None:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        self._folder.rename(self._folder.with_name(f"{self._folder.name}.old-{stamp}"))

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _take_lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # not on Windows; Spark still refuses two writers of one log
            return
        lock = (self._folder / _LOCK).open("w", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise CannotResume(
                f"job '{self._job}' already runs: another process uses its checkpoint "
                f"'{self._folder}'.\nStop that one first, or give this one another name."
            ) from None
        self._lock = lock

    def _refusal(self, reasons: list[str]) -> str:
        lines = [
            f"job '{self._job}' was changed and cannot go on from its checkpoint '{self._folder}':",
            *(f"  {reason}" for reason in reasons),
            "Nothing was started or changed. Choose one:",
            "  undo the change and run it again",
            "  --fresh           start over; the old checkpoint is moved aside, not deleted",
            "  --checkpoint DIR  start over in another folder",
        ]
        return "\n".join(lines)
