"""The result of a SELECT that never ends: batches of rows, as they come."""

from __future__ import annotations

import itertools
import queue
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from streamcore.table import ROW_KIND

from .failures import spark_errors
from .jobs import StreamJob
from .planner.modes import applied
from .planner.queries import QueryPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCHES_AHEAD = 10
_POLL = 0.1
_numbers = itertools.count(1)


class Change(NamedTuple):
    """A row and what it means: `+I` a new one, `+U` a new version of one, `-D` the end of one."""

    kind: str
    row: tuple[Any, ...]


class LiveRows(StreamJob):
    """A running SELECT; iterate over it for its changes, stop it when enough was seen."""

    def __init__(self, name: str, plan: QueryPlan, *, once: bool = False) -> None:
        self.plan = plan
        self.columns = tuple(name for name in plan.frame.columns if name != ROW_KIND)
        is_classic = hasattr(plan.frame.sparkSession, "_jsparkSession")
        spark = plan.frame.sparkSession
        self._feed: _Feed = _Pushed(self._changes) if is_classic else _Polled(self._changes, spark)
        writer = plan.frame.writeStream.outputMode(plan.mode)
        if once:
            writer = writer.trigger(availableNow=True)
        with spark_errors(plan.query), applied(plan.settings, spark):
            super().__init__(name, self._feed.start(writer))

    @property
    def key(self) -> tuple[int, ...]:
        """The columns that tell which row a `+U` replaces; empty when none is known to."""
        parts = self.plan.rewritten.aggregations
        keys = {name.split(".")[-1] for part in parts for name in part.keys}
        return tuple(at for at, name in enumerate(self.columns) if name in keys)

    def batches(self, timeout: float | None = None) -> Iterator[list[Change]]:
        """The changes, batch by batch, until the query ends; an empty list each `timeout`."""
        while True:
            over = self._over()
            batch = self._feed.take(_POLL if timeout is None else timeout)
            if batch or timeout is not None:
                yield batch
            if not batch and over:
                self.wait()
                return

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

    def _changes(self, rows: Iterable[Any]) -> list[Change]:
        default = "+U" if self.plan.mode == "update" else "+I"
        changes = []
        for row in rows:
            kind = row[ROW_KIND] if ROW_KIND in row.__fields__ else default
            values = zip(row.__fields__, row, strict=True)
            changes.append(Change(kind, tuple(v for name, v in values if name != ROW_KIND)))
        return changes

    def _stop(self, hurry: Callable[[], bool]) -> None:
        self._feed.leave()
        super()._stop(hurry)


class _Feed(Protocol):
    """How rows get from the query to us."""

    def start(self, writer: Any) -> Any: ...
    def take(self, timeout: float) -> list[Change]: ...
    def leave(self) -> None: ...


class _Pushed:
    """Each batch is handed over as it is done; the query waits when nobody takes them."""

    def __init__(self, changes: Callable[[Iterable[Any]], list[Change]]) -> None:
        self._changes = changes
        self._batches: queue.Queue[list[Change]] = queue.Queue(_BATCHES_AHEAD)
        self._left = False

    def start(self, writer: Any) -> Any:
        return writer.foreachBatch(self._put).start()

    def take(self, timeout: float) -> list[Change]:
        try:
            return self._batches.get(timeout=timeout)
        except queue.Empty:
            return []

    def leave(self) -> None:
        self._left = True  # a batch that waits for a reader must not wait any more

    def _put(self, batch: DataFrame, number: int) -> None:
        changes = self._changes(batch.collect())
        while changes and not self._left:
            try:
                self._batches.put(changes, timeout=_POLL)
                return
            except queue.Full:
                continue


class _Polled:
    """Through Spark Connect no batch can be handed over: rows are looked up in Spark's memory."""

    def __init__(
        self, changes: Callable[[Iterable[Any]], list[Change]], spark: SparkSession
    ) -> None:
        self._changes, self._spark = changes, spark
        self._name = f"streamcore_select_{next(_numbers)}"
        self._seen = 0

    def start(self, writer: Any) -> Any:
        return writer.format("memory").queryName(self._name).start()

    def take(self, timeout: float) -> list[Change]:
        rows = self._spark.table(self._name).collect()
        fresh, self._seen = rows[self._seen :], len(rows)
        if not fresh:
            time.sleep(timeout)
        return self._changes(fresh)

    def leave(self) -> None:
        """Nobody waits for us."""
