"""What a task can know about the query it runs in."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import TaskContext


@dataclass(frozen=True)
class Task:
    """The running task; `query`, `batch` and `run` are empty outside of streaming queries."""

    partition: int
    attempt: int
    query: str
    batch: int | None
    run: str = ""
    """Changes with every start of the query, whose id outlives restarts."""
    stage: int = 0
    id: int | None = None
    """Unique among all attempts of all tasks."""

    @classmethod
    def current(cls) -> Task:
        context = TaskContext.get()
        if context is None:
            return cls(0, 0, "", None)
        query = context.getLocalProperty("sql.streaming.queryId") or ""
        batch = context.getLocalProperty("streaming.sql.batchId")
        run = ""
        if query:
            names = ("spark.app.id", "spark.jobGroup.id")  # a user may have set the second
            run = "/".join(context.getLocalProperty(name) or "" for name in names)
        number = int(batch) if batch else None
        part, attempt = context.partitionId(), context.attemptNumber()
        return cls(part, attempt, query, number, run, context.stageId(), context.taskAttemptId())
