"""The result of a SELECT that never ends: batches of rows, as they come."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from streamcore.table import ROW_KIND

from .failures import spark_errors
from .jobs import StreamJob
from .planner.queries import QueryPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BATCHES_AHEAD = 10
_POLL = 0.1


class Change(NamedTuple):
    """A row and what it means: `+I` a new one, `+U` a new version of one, `-D` the end of one."""

    kind: str
    row: tuple[Any, ...]


class LiveRows(StreamJob):
    """A running SELECT; iterate over it for its changes, stop it when enough was seen."""

    def __init__(self, name: str, plan: QueryPlan, *, once: bool = False) -> None:
        self.plan = plan
        self.columns = tuple(name for name in plan.frame.columns if name != ROW_KIND)
        self._batches: queue.Queue[list[Change]] = queue.Queue(_BATCHES_AHEAD)
        self._left = False
        writer = plan.frame.writeStream.outputMode(plan.mode).foreachBatch(self._take)
        if once:
            writer = writer.trigger(availableNow=True)
        with spark_errors(plan.query):
            super().__init__(name, writer.start())

    @property
    def key(self) -> tuple[int, ...]:
        """The columns that tell which row a `+U` replaces; empty when none is known to."""
        keys = {
            name.split(".")[-1] for part in self.plan.rewritten.aggregations for name in part.keys
        }
        return tuple(at for at, name in enumerate(self.columns) if name in keys)

    def batches(self, timeout: float | None = None) -> Iterator[list[Change]]:
        """The changes, batch by batch, until the query ends; an empty list each `timeout`."""
        while True:
            try:
                yield self._batches.get(timeout=_POLL if timeout is None else timeout)
            except queue.Empty:
                if self._over() and self._batches.empty():
                    self.wait()
                    return
                if timeout is not None:
                    yield []

    def __iter__(self) -> Iterator[Change]:
        for batch in self.batches():
            yield from batch

    def take(self, count: int) -> list[Change]:
        """The first changes; the query is stopped after them."""
        found: list[Change] = []
        for change in self:
            found.append(change)
            if len(found) >= count:
                break
        self.stop()
        return found

    def _take(self, batch: DataFrame, number: int) -> None:
        default = "+U" if self.plan.mode == "update" else "+I"
        has_kind = ROW_KIND in batch.columns
        changes = []
        for row in batch.collect():
            values = {**row.asDict()} if has_kind else {}
            kind = values.get(ROW_KIND, default)
            shown = tuple(row[name] for name in self.columns) if has_kind else tuple(row)
            changes.append(Change(kind, shown))
        while changes and not self._left:
            try:
                self._batches.put(changes, timeout=_POLL)
                return
            except queue.Full:
                continue

    def _stop(self, hurry: Callable[[], bool]) -> None:
        self._left = True  # a batch that waits for a reader must not wait any more
        super()._stop(hurry)
