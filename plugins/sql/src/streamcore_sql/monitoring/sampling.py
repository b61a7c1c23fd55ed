"""One thread that looks at every running query once a second, so that no batch goes uncounted."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..jobs import StreamJob

_EVERY = 1.0
_LOG = logging.getLogger("streamcore.monitoring")
_jobs: list[StreamJob] = []
_lock = threading.Lock()
_thread: list[threading.Thread] = []


def sampled(job: StreamJob) -> StreamJob:
    """The job, looked at from now on until it is over."""
    with _lock:
        _jobs.append(job)
        if not _thread:
            _thread.append(threading.Thread(target=_run, name="streamcore-sampling", daemon=True))
            _thread[0].start()
    return job


def _run() -> None:
    wait = threading.Event()
    while True:
        wait.wait(_EVERY)
        with _lock:
            jobs = list(_jobs)
            if not jobs:
                _thread.clear()
                return
        for job in jobs:
            if not _look(job):
                with _lock:
                    _jobs.remove(job)


def _look(job: StreamJob) -> bool:
    """Whether to look again."""
    try:
        active = bool(job.query.isActive)
        job.monitor.sample(now=True)
    except Exception as error:  # Spark may be shut down at any moment; a job never fails for this
        _LOG.debug("query of job '%s' cannot be looked at any more: %s", job.name, error)
        return False
    return active
