"""What happened to jobs: a line of JSON per event in a file, the troubles kept for the page."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ..jobs import Job, JobSet, StreamJob
from .metrics import untold
from .scrubbing import SECRETS
from .wording import stamp

_KEPT = 50
"""Errors, and as many warnings: many of one kind leave those of the other where they are."""
_LARGEST = 10_000_000
_LOGGER = "streamcore"

Note = Callable[[str, Mapping[str, Any]], None]
"""Takes what a logger said and the ids that go with it: `job`, `query` and `batch`."""


class Events:
    """The log of one process; `path` is None to keep no file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._troubles: dict[str, deque[dict[str, Any]]] = {
            level: deque(maxlen=_KEPT) for level in ("warning", "error")
        }
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[int | None, str]] = {}
        """By id of a query: the last batch and the state that were told."""
        self._handler: _Handler | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)

    def tell(self, event: str, *, level: str = "info", **fields: Any) -> None:
        """Write one line; a full disk or a lost folder never stops a job."""
        told = SECRETS.clean({"time": stamp(time.time()), "level": level, "event": event, **fields})
        if level in self._troubles:
            self._troubles[level].append(told)
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

    @property
    def troubles(self) -> list[dict[str, Any]]:
        """The last errors and the last warnings."""
        return [each for kept in self._troubles.values() for each in list(kept)]

    def look(self, jobs: Sequence[Job]) -> None:
        """Tell of every batch and every change of state since the last look."""
        for job in each_query(jobs):
            found = job.metrics()
            last, before = self._seen.get(job.id, (None, ""))
            batches, passed_over = untold(found.batches, last)
            last = batches[-1].number if batches else last
            self._seen[job.id] = (last, found.status)
            ids: dict[str, Any] = {"job": job.name, "query": found.query}
            if not before:
                self.tell("started", **ids, batch=None)
            now = {
                "total_in": found.total("source", "numRecordsIn"),
                "total_out": found.total("sink", "numRecordsOut"),
                "pending": found.total("source", "pendingRecords"),
            }
            for each in batches:
                about: dict[str, Any] = {"rows": each.rows, "millis": each.millis, **now}
                if passed_over:
                    about["passed_over"], passed_over = passed_over, 0
                self.tell("batch", **ids, batch=each.number, **about)
            if found.status not in ("running", before):
                failed = found.status == "failed"
                told = {"text": job.error} if failed else {}
                level = "error" if failed else "info"
                self.tell(found.status, level=level, **ids, batch=last, **told)
        if self._handler is not None:
            self._handler.settle()

    @contextmanager
    def hear_loggers(self, jobs: Callable[[], Sequence[Job]], note: Note) -> Iterator[None]:
        """Take over what our own loggers say: into the file, and warnings to the user too."""
        logger, handler = logging.getLogger(_LOGGER), _Handler(self, jobs, note)
        self._handler = handler
        before = logger.propagate
        logger.addHandler(handler)
        logger.propagate = False
        try:
            yield
        finally:
            logger.removeHandler(handler)
            handler.settle(at_last=True)
            logger.propagate = before


class _Handler(logging.Handler):
    def __init__(self, events: Events, jobs: Callable[[], Sequence[Job]], note: Note) -> None:
        super().__init__(logging.INFO)
        self._events, self._jobs, self._note = events, jobs, note
        self._early: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "job", None) and not self._known(record):
            self._early.append(record)  # a source may speak before its query is listed
        else:
            self._tell(record, last_batch=True)

    def settle(self, *, at_last: bool = False) -> None:
        """Tell what was said before its query was known; at last, even if that never came."""
        with self.lock or nullcontext():
            early, self._early = self._early, []
            for record in early:
                if at_last or self._known(record):
                    self._tell(record, last_batch=False)
                else:
                    self._early.append(record)

    def _tell(self, record: logging.LogRecord, *, last_batch: bool) -> None:
        text, ids = SECRETS.scrub(record.getMessage()), self._ids(record, last_batch=last_batch)
        level = "info" if record.levelno < logging.WARNING else "warning"
        fields = {"time": stamp(record.created), "logger": record.name, "text": text}
        self._events.tell("log", level=level, **fields, **ids)
        if record.levelno >= logging.WARNING:
            self._note(text, ids)

    def _ids(self, record: logging.LogRecord, *, last_batch: bool) -> dict[str, Any]:
        """Whose word it is; None where it is that of the whole run, or nobody can tell."""
        own = (getattr(record, name, None) or None for name in ("job", "query"))
        ids = {**dict(zip(("job", "query"), own, strict=True)), "batch": None}
        jobs = self._of(record)
        if len(jobs) == 1:
            ids["job"] = jobs[0].name
            if isinstance(jobs[0], StreamJob):
                last = jobs[0].monitor.last
                ids["query"] = jobs[0].monitor.id or ids["query"]
                ids["batch"] = last["batchId"] if last and last_batch else None
        if (batch := getattr(record, "batch", None)) is not None:
            ids["batch"] = batch
        return ids

    def _of(self, record: logging.LogRecord) -> list[Job]:
        """The jobs a word may be of: it says whose it is, or else it may be anybody's."""
        name, query = getattr(record, "job", None), getattr(record, "query", None)
        jobs = list(each_query(self._jobs()))
        if name:
            return [job for job in jobs if job.name == name]
        if query:
            return [job for job in jobs if isinstance(job, StreamJob) and job.monitor.id == query]
        return jobs

    def _known(self, record: logging.LogRecord) -> bool:
        jobs = self._of(record)
        return bool(jobs) and all(job.monitor.id for job in jobs if isinstance(job, StreamJob))


def each_query(jobs: Sequence[Job]) -> Iterator[Job]:
    """The jobs that run on their own, those of sets one by one."""
    for job in jobs:
        if isinstance(job, JobSet):
            yield from each_query(job.jobs)
        else:
            yield job
