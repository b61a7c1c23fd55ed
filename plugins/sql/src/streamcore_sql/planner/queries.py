"""A query as a DataFrame: its tables found, read as narrowly as it allows, and put together."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..catalog import Catalog, Entry
from ..cursor import SqlText
from ..errors import SqlError
from ..failures import spark_errors
from ..rewrite import Note, Rewritten, TableRef, rewrite
from ..statements import CreateTable, CreateView, Name
from .binding import Bound, bind
from .changelog import carried, with_old_rows
from .modes import BATCH, UPDATE, applied, check_mode, spark_settings
from .sources import Scan, frame, scan
from .stages import apply
from .temporal import versioned_views, with_untimed_deletes_noted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_numbers = itertools.count(1)
_ENDLESS = (
    "a join without a bound on time keeps the rows of both sides for good: "
    "'table.exec.state.ttl' does not apply"
)


@dataclass(frozen=True)
class QueryPlan:
    """A query ready to run."""

    query: SqlText
    rewritten: Rewritten
    frame: DataFrame
    scans: tuple[Scan, ...]
    mode: str

    @property
    def streaming(self) -> bool:
        return self.mode != BATCH

    @property
    def settings(self) -> dict[str, str]:
        """What Spark must be set to while this is checked and started."""
        reads = [read.bound.connector for read in self.scans if read.streaming]
        updates = any(connector.stream_updates() for connector in reads)
        return spark_settings(
            chained=updates and bool(self.rewritten.aggregations),
            forgets=any(connector.forgets_rows() for connector in reads),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know although nothing is wrong."""
        differs = [note.text for note in self.rewritten.notes]
        return tuple(dict.fromkeys([n for s in self.scans for n in s.bound.notes] + differs))


@dataclass(frozen=True)
class QueryReading:
    """The tables of a query and how each is read."""

    rewritten: Rewritten
    scans: tuple[Scan, ...]
    streaming: bool


class QueryReader:
    """Finds what queries read in a catalog, without Spark."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        approximate_distinct: bool = False,
        batch_only: bool = False,
    ) -> None:
        self._catalog = catalog
        self._approximate, self._batch_only = approximate_distinct, batch_only

    def read(
        self, query: SqlText, *, upserts: bool = False, retracts: bool = False
    ) -> QueryReading:
        """Find every table, and decide between batch and stream.

        `upserts` if the rows go into a table that keeps the latest row of each key, `retracts` if
        into one that keeps every change.
        """
        prefix = f"_q{next(_numbers)}_"
        rewritten = self._rewrite(query, prefix, streaming=False)
        bounds = self._bound(rewritten.tables)
        streaming = not all(
            bound.connector.bounded() or ref.lookup
            for bound, ref in zip(bounds, rewritten.tables, strict=True)
        )
        if streaming:
            self._check_runtime(bounds, query)
            rewritten = self._rewrite(query, prefix, streaming=True)
        versioned = versioned_views(rewritten)
        scans = tuple(
            scan(
                bound,
                ref.columns,
                streaming=streaming and not ref.lookup and not bound.connector.bounded(),
                place=ref.place,
                timed=ref.view in versioned,
                lookup=ref.lookup,
            )
            for bound, ref in zip(bounds, rewritten.tables, strict=True)
        )
        _check_lookups(rewritten, scans)
        rewritten = with_untimed_deletes_noted(rewritten, scans)
        if scans and all(read.streaming for read in scans):
            endless = [join.place for join in rewritten.joins if join.endless]
            notes = tuple(Note(_ENDLESS, place) for place in endless[:1])
            rewritten = replace(rewritten, notes=(*rewritten.notes, *notes))
        scans = with_old_rows(rewritten, scans, retracts=retracts)
        rewritten = carried(rewritten, scans, query, upserts=upserts and streaming)
        return QueryReading(rewritten, scans, streaming)

    def _check_runtime(self, bounds: list[Bound], query: SqlText) -> None:
        if self._batch_only:
            endless = next(bound for bound in bounds if not bound.connector.bounded())
            hint = "Bound it, such as with 'scan.bounded.mode', or RESET 'execution.runtime-mode'."
            trouble = f"table '{endless.name}' never ends, and 'execution.runtime-mode' is 'batch'"
            raise SqlError(trouble, query.place, hint)

    def _rewrite(self, query: SqlText, prefix: str, *, streaming: bool) -> Rewritten:
        return rewrite(
            query,
            lookup=self._lookup,
            streaming=streaming,
            approximate_distinct=self._approximate,
            prefix=prefix,
        )

    def _lookup(self, parts: tuple[str, ...]) -> CreateTable | CreateView | None:
        try:
            found: Entry | None = self._catalog.get(self._catalog.path(Name(parts)))
        except SqlError:  # told once all tables are known, with its place
            return None
        return found if isinstance(found, (CreateTable, CreateView)) else None

    def _bound(self, refs: tuple[TableRef, ...]) -> list[Bound]:
        bounds, problems = [], []
        for ref in refs:
            try:
                entry = self._catalog.find(Name(ref.name, place=ref.place))
                assert isinstance(entry, CreateTable)  # views were put in their place
                bounds.append(bind(entry, ref.options, ref.place))
            except SqlError as problem:
                problems.append(problem)
        if problems:
            raise SqlError.together(problems)
        return bounds


def _check_lookups(rewritten: Rewritten, scans: tuple[Scan, ...]) -> None:
    """Refuse a lookup where a read gives every change of a row: each would be met."""
    for ref, read in zip(rewritten.tables, scans, strict=True):
        if ref.lookup and read.bound.connector.needs_old_rows():
            trouble = f"a lookup takes the rows of a table, and '{read.bound.name}' has changes"
            hint = "Write them to an 'upsert-kafka' table by INSERT INTO, and look up that one."
            raise SqlError(trouble, ref.place, hint)


class QueryPlanner(QueryReader):
    """Plans queries against a catalog."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        broken: Mapping[str, SqlError],
        **settings: bool,
    ) -> None:
        """`broken` says by the names of functions why they cannot be called."""
        super().__init__(catalog, **settings)
        self._spark, self._broken = spark, broken

    def plan(self, query: SqlText, *, upserts: bool = False, retracts: bool = False) -> QueryPlan:
        """Find every table, and let Spark check the rest."""
        found = self.read(query, upserts=upserts, retracts=retracts)
        rewritten, scans = found.rewritten, found.scans
        result = self._frame(query, rewritten, scans)
        mode = rewritten.mode if found.streaming else BATCH
        if any(read.streaming and read.bound.connector.stream_updates() for read in scans):
            mode = UPDATE
        plan = QueryPlan(query, rewritten, result, scans, mode)
        if plan.streaming:
            with applied(plan.settings, self._spark):
                check_mode(result, mode, query)
        return plan

    def _frame(self, query: SqlText, rewritten: Rewritten, scans: tuple[Scan, ...]) -> DataFrame:
        columns = [column.name for read in scans for column in read.bound.statement.columns]
        made: list[str] = []
        with self._dropped(made), spark_errors(query, columns, self._broken):
            for ref, read in zip(rewritten.tables, scans, strict=True):
                self._register(ref.view, frame(self._spark, read), made)
            views = {ref.view: read for ref, read in zip(rewritten.tables, scans, strict=True)}
            for stage in rewritten.stages:
                self._register(stage.view, apply(stage, self._spark, views), made)
            return self._spark.sql(rewritten.sql)

    def _register(self, view: str, result: DataFrame, made: list[str]) -> None:
        result.createOrReplaceTempView(view)
        made.append(view)

    @contextmanager
    def _dropped(self, views: list[str]) -> Iterator[None]:
        """Spark Connect looks views up when a query runs; a classic session when it is planned."""
        try:
            yield
        finally:
            if hasattr(self._spark, "_jsparkSession"):
                for view in views:
                    self._spark.catalog.dropTempView(view)
