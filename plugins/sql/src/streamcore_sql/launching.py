"""Statements that move data, planned and checked; nothing runs until `start`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from . import explain
from .checkpoints import Checkpoint
from .fingerprint import Fingerprint, fingerprint
from .jobs import Job, JobSet
from .live import LiveRows
from .planner.binding import Bound
from .planner.inserts import InsertPlan
from .planner.queries import QueryPlan
from .results import Rows
from .running import Launch, start, start_each
from .statement_sets import SharedScan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SELECT = "select"
"""What a SELECT is called among jobs."""


class Planned(Protocol):
    """A statement that could be run now."""

    def check(self) -> list[str]:
        """Raise CannotResume where a checkpoint does not fit; return notes on what would happen."""
        ...

    def start(self) -> Job | Rows: ...

    def text(self, *, details: bool = True, options: bool = False) -> str:
        """The plan, for people."""
        ...


@runtime_checkable
class MovesRows(Protocol):
    """A planned statement that knows the tables at its ends."""

    @property
    def read(self) -> list[Bound]: ...
    @property
    def written(self) -> list[Bound]: ...


@dataclass
class _Resumable:
    """A launch and the checkpoint it goes on from."""

    launch: Launch
    print: Fingerprint
    checkpoint: Checkpoint | None = field(init=False)

    def __post_init__(self) -> None:
        folder = self.launch.checkpoint
        self.checkpoint = Checkpoint(folder, self.launch.name) if folder else None

    def check(self) -> list[str]:
        if self.checkpoint is None:
            return [f"job '{self.launch.name}' has no name of its own, so it starts over each time"]
        if self.launch.fresh:
            return [f"job '{self.launch.name}' starts over"]
        note = self.checkpoint.check(self.print)
        return [f"job '{self.launch.name}' {note}"] if note else []

    def begin(self) -> None:
        if self.checkpoint is not None:
            self.checkpoint.begin(self.print, fresh=self.launch.fresh)

    def watch(self, job: Job) -> Job:
        """Free the checkpoint when the job ends."""
        if self.checkpoint is not None:
            job.when_over(self.checkpoint.release)
        return job

    def release(self) -> None:
        if self.checkpoint is not None:
            self.checkpoint.release()


@dataclass
class PlannedSelect:
    """A query whose rows are shown."""

    plan: QueryPlan
    once: bool = False

    @property
    def read(self) -> list[Bound]:
        return [scan.bound for scan in self.plan.scans]

    @property
    def written(self) -> list[Bound]:
        return []

    @property
    def notes(self) -> tuple[str, ...]:
        return self.plan.notes

    def check(self) -> list[str]:
        return list(self.notes)

    def start(self) -> Job | Rows:
        if not self.plan.streaming:
            return Rows(self.plan)
        return LiveRows(SELECT, self.plan, once=self.once)

    def text(self, *, details: bool = True, options: bool = False) -> str:
        return explain.query_text(self.plan, details=details)


@dataclass
class PlannedInsert:
    """An INSERT."""

    plan: InsertPlan
    launch: Launch

    def __post_init__(self) -> None:
        self._resumable: _Resumable | None = None
        if self.plan.query.streaming:
            self._resumable = _Resumable(self.launch, fingerprint(self.plan.query))

    @property
    def read(self) -> list[Bound]:
        return [scan.bound for scan in self.plan.query.scans]

    @property
    def written(self) -> list[Bound]:
        return [self.plan.sink]

    @property
    def notes(self) -> tuple[str, ...]:
        return self.plan.notes

    def check(self) -> list[str]:
        return [*self.notes, *(self._resumable.check() if self._resumable else [])]

    def start(self) -> Job:
        if self._resumable is None:
            return start(self.plan, self.launch)
        self._resumable.begin()
        try:
            return self._resumable.watch(start(self.plan, self.launch))
        except BaseException:
            self._resumable.release()
            raise

    def text(self, *, details: bool = True, options: bool = False) -> str:
        return explain.insert_text(self.plan, details=details, options=options)


@dataclass
class PlannedTable(PlannedInsert):
    """CREATE TABLE ... AS: the table is gone again if its rows cannot be written."""

    undo: Callable[[], None]

    def check(self) -> list[str]:
        with self._or_undone():
            return super().check()

    def start(self) -> Job:
        with self._or_undone():
            return super().start()

    @contextmanager
    def _or_undone(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.undo()
            raise


@dataclass
class PlannedSet:
    """A statement set whose INSERTs run as queries of their own."""

    inserts: Sequence[PlannedInsert]
    name: str

    @property
    def read(self) -> list[Bound]:
        return [bound for insert in self.inserts for bound in insert.read]

    @property
    def written(self) -> list[Bound]:
        return [bound for insert in self.inserts for bound in insert.written]

    @property
    def notes(self) -> tuple[str, ...]:
        """What is otherwise than in Flink, or than one might think."""
        return tuple(dict.fromkeys(note for insert in self.inserts for note in insert.notes))

    def check(self) -> list[str]:
        return [note for insert in self.inserts for note in insert.check()]

    def start(self) -> Job:
        jobs: list[Job] = []
        try:
            for insert in self.inserts:
                jobs.append(insert.start())
        except BaseException:
            for job in jobs:
                job.stop()
            raise
        return JobSet(self.name, jobs)

    def text(self, *, details: bool = True, options: bool = False) -> str:
        texts = [insert.text(details=details, options=options) for insert in self.inserts]
        return "\n\n".join(texts)


@dataclass
class PlannedShared:
    """A statement set that reads the one source of its INSERTs once."""

    shared: SharedScan
    spark: SparkSession
    launch: Launch

    def __post_init__(self) -> None:
        found = fingerprint(self.shared.plans[0].query, [self.shared.scan])
        self._resumable = _Resumable(self.launch, found)

    @property
    def read(self) -> list[Bound]:
        return [self.shared.scan.bound]

    @property
    def written(self) -> list[Bound]:
        return [plan.sink for plan in self.shared.plans]

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(note for plan in self.shared.plans for note in plan.notes))

    def check(self) -> list[str]:
        return [*self.notes, *self._resumable.check()]

    def start(self) -> Job:
        self._resumable.begin()
        try:
            return self._resumable.watch(start_each(self.shared, self.spark, self.launch))
        except BaseException:
            self._resumable.release()
            raise

    def text(self, *, details: bool = True, options: bool = False) -> str:
        texts = [
            explain.insert_text(plan, details=details, options=options)
            for plan in self.shared.plans
        ]
        name = self.shared.scan.bound.name
        return "\n\n".join([f"one query that reads '{name}' once, for:", *texts])
