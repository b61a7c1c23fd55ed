"""What a task says about itself when it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark import TaskContext

from ..reports import Report, send
from ..table import Table
from .task import Task

_NOTES = 5
_LONGEST_NOTE = 400


def report(
    table: Table,
    side: str,
    counts: Mapping[str, float],
    marks: Mapping[str, float] | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Tell whoever runs the query, if they listen; `side` is 'source' or 'sink'.

    Names that are understood everywhere: `records`, `rows`, `bytes`, `ignored`, `skipped`,
    `dead-lettered`, `lost`, `retries`, `transactions`, `repeated-transactions` as counts;
    `fetch-lag-ms`, `emit-lag-ms` and `send-ms` as marks.
    """
    if not table.reports:
        return
    task = Task.current()
    batch = -1 if task.batch is None else task.batch
    told = {**counts, "retries": counts.get("retries", 0) + task.attempt}
    short = [note[:_LONGEST_NOTE] for note in notes[:_NOTES]]
    query = task.query or _group()
    made = Report(
        table.name,
        side,
        query,
        batch,
        task.partition,
        told,
        dict(marks or {}),
        short,
        task.stage,
        task.id,
        task.run,
    )
    send(table.reports, made)


def _group() -> str:
    """The job group, by which a batch job is known as a stream is by its query."""
    context = TaskContext.get()
    return (context.getLocalProperty("spark.jobGroup.id") or "") if context else ""
