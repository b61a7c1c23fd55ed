"""What happened to jobs: a line of JSON per event in a file, the troubles kept for the page."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..jobs import Job, JobSet, StreamJob
from .scrubbing import SECRETS

_KEPT = 100
_LARGEST = 10_000_000
_LOGGER = "streamcore"

Note = Callable[[str, Mapping[str, Any]], None]
"""Takes what a logger said and the ids that go with it: `job`, `query` and `batch`."""


class Events:
    """The log of one process; `path` is None to keep no file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.troubles: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[int, str]] = {}
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)

    def tell(self, event: str, *, level: str = "info", **fields: Any) -> None:
        """Write one line; a full disk or a lost folder never stops a job."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + "Z"
        told = SECRETS.clean({"time": stamp, "level": level, "event": event, **fields})
        if level != "info":
            self.troubles.append(told)
        if self.path is None:
            return
        with self._lock:
            try:
                if self.path.exists() and self.path.stat().st_size > _LARGEST:
                    os.replace(self.path, self.path.with_suffix(".old.jsonl"))
                descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                with open(descriptor, "a", encoding="utf-8") as file:
                    file.write(json.dumps(told, default=str) + "\n")
            except OSError:
                self.path = None

    def look(self, jobs: Sequence[Job]) -> None:
        """Tell of every batch and every change of state since the last look."""
        for job in each_query(jobs):
            found = job.metrics()
            batch, status = int(found.get("batchId", -1)), job.status
            before = self._seen.get(job.id)
            if before == (batch, status):
                continue
            self._seen[job.id] = (batch, status)
            ids: dict[str, Any] = {"job": job.name, "query": found.query}
            ids["batch"] = None if batch < 0 else batch
            if before is None:
                self.tell("started", **ids)
            if batch >= 0 and (before is None or before[0] != batch):
                figures: dict[str, Any] = {
                    "millis": found.get("batchTime"),
                    "total_in": found.total("source", "numRecordsIn"),
                    "total_out": found.total("sink", "numRecordsOut"),
                    "pending": found.total("source", "pendingRecords"),
                }
                self.tell("batch", **ids, **figures)
            if status != "running":
                failed = status == "failed"
                told = {"text": job.error} if failed else {}
                self.tell(status, level="error" if failed else "info", **ids, **told)

    @contextmanager
    def hear_loggers(self, jobs: Callable[[], Sequence[Job]], note: Note) -> Iterator[None]:
        """Take over what our own loggers say: into the file, and warnings to the user too."""
        logger, handler = logging.getLogger(_LOGGER), _Handler(self, jobs, note)
        before = logger.propagate
        logger.addHandler(handler)
        logger.propagate = False
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.propagate = before


class _Handler(logging.Handler):
    def __init__(self, events: Events, jobs: Callable[[], Sequence[Job]], note: Note) -> None:
        super().__init__(logging.INFO)
        self._events, self._jobs, self._note = events, jobs, note

    def emit(self, record: logging.LogRecord) -> None:
        text = SECRETS.scrub(record.getMessage())
        ids = self._ids(record)
        level = "info" if record.levelno < logging.WARNING else "warning"
        self._events.tell("log", level=level, logger=record.name, text=text, **ids)
        if record.levelno >= logging.WARNING:
            self._note(text, ids)

    def _ids(self, record: logging.LogRecord) -> dict[str, Any]:
        """Whose word it is; None where it is that of the whole run, or nobody can tell."""
        ids: dict[str, Any] = {"job": None, "query": None, "batch": None}
        jobs = list(each_query(self._jobs()))
        if own := getattr(record, "job", None):  # words that say whose they are
            jobs = [job for job in jobs if job.name == own]
            ids["job"] = own
        if len(jobs) == 1:
            ids["job"] = jobs[0].name
            if isinstance(jobs[0], StreamJob):
                last = jobs[0].monitor.last
                ids["query"] = jobs[0].monitor.id or None
                ids["batch"] = last["batchId"] if last else None
        if (batch := getattr(record, "batch", None)) is not None:
            ids["batch"] = batch
        return ids


def each_query(jobs: Sequence[Job]) -> Iterator[Job]:
    """The jobs that run on their own, those of sets one by one."""
    for job in jobs:
        if isinstance(job, JobSet):
            yield from each_query(job.jobs)
        else:
            yield job
