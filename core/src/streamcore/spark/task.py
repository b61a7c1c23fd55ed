"""What a task can know about the query it runs in."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import TaskContext


@dataclass(frozen=True)
class Task:
    """The running task; `query` and `batch` are empty outside of streaming queries."""

    partition: int
    attempt: int
    query: str
    batch: int | None

    @classmethod
    def current(cls) -> Task:
        context = TaskContext.get()
        if context is None:
            return cls(0, 0, "", None)
        query = context.getLocalProperty("sql.streaming.queryId") or ""
        batch = context.getLocalProperty("streaming.sql.batchId")
        return cls(
            context.partitionId(), context.attemptNumber(), query, int(batch) if batch else None
        )
