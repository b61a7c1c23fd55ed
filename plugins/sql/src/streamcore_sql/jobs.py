"""Handles of what runs: ask how it goes, wait for it, stop it."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from streamcore import StreamcoreError

from .failures import message_of, with_checkpoint
from .monitoring.about import About
from .monitoring.heard import batch_tables
from .monitoring.metrics import Metrics, together
from .monitoring.monitor import Monitor
from .monitoring.scrubbing import SECRETS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Status = Literal["running", "finished", "stopped", "failed"]
_numbers = itertools.count(1)
_POLL = 0.1
PATIENCE = 60.0
"""Seconds a stream may take to finish its batch before it is stopped anyway."""


class JobFailed(StreamcoreError):  # noqa: N818 - says what happened
    """A job ended with an error; the text is its cause."""


class Job:
    """Something that runs; `id` is what STOP JOB takes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.id = f"{name}-{next(_numbers)}"
        self._stopped = False
        self._at_end: list[Callable[[], None]] = []

    def when_over(self, action: Callable[[], None]) -> None:
        """Do something once the job is known to be over."""
        self._at_end.append(action)

    def metrics(self) -> Metrics:
        """Its figures as of now: records, bytes, rates, lag, times; by table and by name."""
        return Metrics(self.name, self.status)

    @property
    def status(self) -> Status:
        if not self._over():
            return "running"
        if self._failure() is not None:
            return "failed"
        return "stopped" if self._stopped else "finished"

    @property
    def error(self) -> str | None:
        """Why it failed, in one paragraph."""
        failure = self._failure() if self._over() else None
        return None if failure is None else SECRETS.scrub(self._told(failure))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; False when the time is up first. Raises JobFailed if it failed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._over():
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(_POLL)
        self._end()
        if self.error is not None:
            raise JobFailed(f"job '{self.name}' failed: {self.error}") from self._failure()
        return True

    def stop(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """Stop it after the batch it is in, or at once when `hurry` says so."""
        if not self._over():
            self._stopped = True
            self._stop(hurry)
            self._end()

    def _end(self) -> None:
        while self._at_end:
            self._at_end.pop()()

    def __repr__(self) -> str:
        return f"<job '{self.id}' {self.status}>"

    def _over(self) -> bool:
        raise NotImplementedError

    def _failure(self) -> BaseException | None:
        raise NotImplementedError

    def _told(self, failure: BaseException) -> str:
        return message_of(failure)

    def _stop(self, hurry: Callable[[], bool]) -> None:
        raise NotImplementedError


class StreamJob(Job):
    """A streaming query."""

    def __init__(self, name: str, query: Any, about: About | None = None) -> None:
        super().__init__(name)
        self.query = query
        self.monitor = Monitor(query, about)
        self._checkpoint = about.checkpoint if about else None

    def metrics(self) -> Metrics:
        status = self.status
        if status != "running":  # nothing comes after this, so nothing may be left out
            self.monitor.sample(now=True)
        return self.monitor.metrics(self.name, status)

    def _over(self) -> bool:
        return not self.query.isActive

    def _failure(self) -> BaseException | None:
        failure: BaseException | None = None if self.query.isActive else self.query.exception()
        return failure

    def _told(self, failure: BaseException) -> str:
        return with_checkpoint(failure, self._checkpoint)

    def _stop(self, hurry: Callable[[], bool]) -> None:
        _stop_between_batches(self.query, hurry)


class JobSet(Job):
    """Several jobs as one: when one fails, the others are stopped."""

    def __init__(self, name: str, jobs: Sequence[Job]) -> None:
        super().__init__(name)
        self.jobs = list(jobs)

    def metrics(self) -> Metrics:
        return together(self.name, self.status, [job.metrics() for job in self.jobs])

    def _over(self) -> bool:
        running = [job for job in self.jobs if not job._over()]
        if running and self._failure() is not None:
            for job in running:
                job.stop()
        return not running or self._failure() is not None

    def _failure(self) -> BaseException | None:
        failed = self._failed()
        return None if failed is None else failed._failure()

    def _failed(self) -> Job | None:
        return next((job for job in self.jobs if job._over() and job._failure() is not None), None)

    def _told(self, failure: BaseException) -> str:
        failed = self._failed()
        return super()._told(failure) if failed is None else failed._told(failure)

    def _stop(self, hurry: Callable[[], bool]) -> None:
        for job in self.jobs:
            job.stop(hurry)


def _activate(spark: Any) -> None:
    """Make a session the active one of this thread: Spark finds Python data sources through it."""
    spark._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)


def _stop_between_batches(query: Any, hurry: Callable[[], bool]) -> None:
    """Let the batch at hand finish: one that is cut off is written again after a restart."""
    deadline = time.monotonic() + PATIENCE
    last = _batches_done(query)
    while query.isActive and time.monotonic() < deadline and not hurry():
        if _is_idle(query.status) or _batches_done(query) != last:
            break
        time.sleep(_POLL / 20)
    query.stop()


def _is_idle(status: Any) -> bool:
    """Whether a query is between batches: waiting, or asking its sources what is new."""
    return not status["isTriggerActive"] or status["message"].startswith(("Wait", "Getting off"))


def _batches_done(query: Any) -> int:
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


class BatchJob(Job):
    """A job that ends by itself, on a thread of its own."""

    def __init__(
        self,
        name: str,
        spark: SparkSession,
        work: Callable[[], None],
        about: About | None = None,
    ) -> None:
        super().__init__(name)
        self.about = about or About()
        self._spark, self._work = spark, work
        self._context: Any = spark.sparkContext if hasattr(spark, "_jsparkSession") else None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=self.id, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            if self._context is not None:
                _activate(self._spark)
                self._context.setJobGroup(self.id, self.name, True)
            else:
                self._spark.addTag(self.id)
            self._work()
        except BaseException as error:  # kept for whoever waits
            self._error = error

    def _over(self) -> bool:
        return not self._thread.is_alive()

    def _failure(self) -> BaseException | None:
        return None if self._stopped else self._error

    def _stop(self, hurry: Callable[[], bool]) -> None:
        if self._context is not None:
            self._context.cancelJobGroup(self.id)
        else:
            self._spark.interruptTag(self.id)

    def metrics(self) -> Metrics:
        return Metrics(self.name, self.status, tables=batch_tables(self.id, self.about))

    def share_done(self) -> float | None:
        """The share of its tasks that are done, from 0 to 1; None where nobody can tell."""
        if self._context is None:
            return None
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self.id)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        known = [stage for stage in stages if stage]
        total = sum(stage.numTasks for stage in known)
        return sum(stage.numCompletedTasks for stage in known) / total if total else None
