"""A query as a DataFrame: its tables found, read as narrowly as it allows, and put together."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..catalog import Catalog, Path
from ..cursor import SqlText
from ..errors import SqlError
from ..failures import spark_errors
from ..statements import CreateTable, CreateView
from .binding import Bound, bind
from .dialect import Reference, SparkQuery, spark_query
from .modes import BATCH, output_mode
from .projection import names_used
from .sources import Scan, frame, scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_numbers = itertools.count(1)


@dataclass(frozen=True)
class QueryPlan:
    """A query ready to run."""

    query: SqlText
    sql: str
    frame: DataFrame
    scans: tuple[Scan, ...]
    mode: str

    @property
    def streaming(self) -> bool:
        return self.mode != BATCH

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know although nothing is wrong."""
        return tuple(dict.fromkeys(note for read in self.scans for note in read.bound.notes))


@dataclass
class _Part:
    """A query with the tables and the views (parts themselves) it is made of."""

    spark: SparkQuery
    used: frozenset[str] | None
    tables: dict[str, tuple[Bound, Reference]] = field(default_factory=dict)
    views: dict[str, tuple[_Part, CreateView]] = field(default_factory=dict)

    def column_names(self) -> list[str]:
        """The columns of every table, for a hint about one that is misspelt."""
        return [column.name for bound in self.bounds() for column in bound.statement.columns]

    def bounds(self) -> Iterator[Bound]:
        for bound, _ in self.tables.values():
            yield bound
        for part, _ in self.views.values():
            yield from part.bounds()


class QueryPlanner:
    """Plans queries against a catalog."""

    def __init__(self, spark: SparkSession, catalog: Catalog) -> None:
        self._spark, self._catalog = spark, catalog

    def plan(self, query: SqlText) -> QueryPlan:
        """Find every table, decide between batch and stream, and let Spark check the rest."""
        part = self._part(query, ())
        streaming = not all(bound.connector.bounded() for bound in part.bounds())
        made: list[str] = []
        scans: list[Scan] = []
        with self._views_dropped(made), spark_errors(query, part.column_names()):
            result = self._frame(part, streaming, made, scans)
        mode = output_mode(result, query) if streaming else BATCH
        return QueryPlan(query, part.spark.sql, result, tuple(scans), mode)

    # --- finding tables --------------------------------------------------------------

    def _part(self, query: SqlText, above: tuple[Path, ...]) -> _Part:
        labels: dict[tuple[Path, tuple[object, ...]], str] = {}
        problems: list[SqlError] = []
        found: dict[str, tuple[CreateTable | CreateView, Reference, Path]] = {}

        def label(reference: Reference) -> str:
            try:
                path = self._catalog.path(reference.name)
                entry = self._catalog.find(reference.name)
            except SqlError as problem:
                problems.append(problem)
                return reference.name.last
            key = (path, reference.options)
            if key not in labels:
                labels[key] = f"{path.name}__{next(_numbers)}"
                found[labels[key]] = (entry, reference, path)
            return labels[key]

        part = _Part(spark_query(query, label), names_used(query))
        for name, (entry, reference, path) in found.items():
            try:
                if isinstance(entry, CreateView):
                    part.views[name] = (self._view(entry, path, reference, above), entry)
                else:
                    bound = bind(entry, reference.options, reference.name.place)
                    part.tables[name] = (bound, reference)
            except SqlError as problem:
                problems.append(problem)
        if problems:
            raise SqlError.together(problems)
        return part

    def _view(
        self, view: CreateView, path: Path, reference: Reference, above: tuple[Path, ...]
    ) -> _Part:
        if path in above:
            circle = " -> ".join(p.name for p in (*above[above.index(path) :], path))
            raise SqlError(f"view '{path.name}' is made of itself: {circle}", reference.name.place)
        return self._part(view.query, (*above, path))

    # --- building frames ---------------------------------------------------------------

    def _frame(self, part: _Part, streaming: bool, made: list[str], scans: list[Scan]) -> DataFrame:
        for name, (bound, reference) in part.tables.items():
            live = streaming and not bound.connector.bounded()
            read = scan(bound, part.used, streaming=live, place=reference.name.place)
            scans.append(read)
            self._register(name, frame(self._spark, read), made)
        for name, (inner, view) in part.views.items():
            result = self._frame(inner, streaming, made, scans)
            if view.columns:
                result = result.toDF(*(column.last for column in view.columns))
            self._register(name, result, made)
        return self._spark.sql(part.spark.sql)

    def _register(self, name: str, result: DataFrame, made: list[str]) -> None:
        result.createOrReplaceTempView(f"`{name}`")
        made.append(name)

    @contextmanager
    def _views_dropped(self, made: list[str]) -> Iterator[None]:
        """Spark Connect looks views up when a query runs; a classic session when it is planned."""
        try:
            yield
        finally:
            if hasattr(self._spark, "_jsparkSession"):
                for name in made:
                    self._spark.catalog.dropTempView(name)
