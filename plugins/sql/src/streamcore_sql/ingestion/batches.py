"""One batch of a job: look at its tables, split it by what happens to them, write it once."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from streamcore import Column, Table
from streamcore.reports import on_behalf_of

from .errors import RowRefused
from .messages import RowPlan
from .model import Behavior, Job, Transform
from .packed_writer import Packing
from .routing import Router, TableId
from .row_sql import ROW, TABLE, TEXT, to_columns, to_text, typed_schema
from .shapes import Seen, Shape, Shapes
from .sinks import SinkPlan
from .sources import SourcePlan, look, look_at_names
from .transforms import DuplicateColumn, transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG = logging.getLogger("streamcore.ingestion")
_NAMED = 5
"""How many tables one warning lists."""


@dataclass(frozen=True)
class Branch:
    """Tables with the same columns to which the same happens."""

    rule: Transform
    columns: tuple[Column, ...]
    tables: tuple[TableId, ...]


class TableWriter:
    """Writes every batch of a job; Spark calls it on the driver."""

    def __init__(
        self,
        job: Job,
        router: Router,
        source: SourcePlan,
        sink: SinkPlan,
        shapes: Shapes,
        name: str = "",
    ) -> None:
        self._job, self._router, self._name = job, router, name
        self._batch: int | None = None
        self._source, self._sink, self._shapes = source, sink, shapes
        self.declared: dict[TableId, Table] = {}
        self._left_out: set[TableId] = set()
        self._made: dict[tuple[Transform, tuple[Column, ...]], Sequence[Column]] = {}

    def __call__(self, batch: DataFrame, number: int) -> None:
        batch = batch.persist()
        self._batch = number
        try:
            seen = self._wanted(self.seen(batch))
            for note in self._shapes.learn(seen, self._known(seen)):
                self._warn("%s", note)
            rows, packing = self.plan(batch, [each.table for each in seen])
            self._shapes.save(packing.topics, number)
            if self._shapes.topics:
                first = self._shapes.first_batch == number
                with on_behalf_of(self._name):
                    self._sink.write(rows, packing, self._shapes.topics, first=first)
        finally:
            batch.unpersist()

    def seen(self, rows: DataFrame) -> list[Seen]:
        """The tables of some rows."""
        if self._source.tells_shapes:
            return look(rows)
        if self._source.is_open:
            return look_at_names(rows)
        return [Seen(table, frozenset()) for table in self._source.typed]

    def _warn(self, text: str, *given: object) -> None:
        """Tell something about the batch at hand, in a way that says whose it is."""
        LOG.warning(text, *given, extra={"job": self._name, "batch": self._batch})

    def _wanted(self, seen: Iterable[Seen]) -> list[Seen]:
        """The tables that the job reads; of others it is told once that their rows stay out."""
        found = {each.table: each for each in seen}
        others = [table for table in sorted(found) if not self._job.source.wants(table)]
        if fresh := [str(table) for table in others if table not in self._left_out]:
            listed = ", ".join(f"'{name}'" for name in fresh[:_NAMED])
            more = f" and {len(fresh) - _NAMED} more" if len(fresh) > _NAMED else ""
            text = "rows of %s%s are left out: 'source.tables' does not name them"
            self._warn(text, listed, more)
            self._left_out.update(others)
        return [each for table, each in found.items() if table not in others]

    def _known(self, seen: Iterable[Seen]) -> Mapping[TableId, Table]:
        """The tables among these whose columns the file declares."""
        for each in seen:
            if each.table not in self.declared:
                found = self._job.source.declared(each.table)
                if found is not None:
                    self.declared[each.table] = found
        return self.declared

    # --- the plan of a batch ------------------------------------------------------------------

    def plan(self, batch: DataFrame, tables: Sequence[TableId]) -> tuple[DataFrame, Packing]:
        """The rows of a batch as they are written, and how."""
        plain = [table for table in tables if self._rule(table) is None]
        plans = [self._plan(table, self._shapes.known[table]) for table in plain]
        parts = [_of(batch, plain)] if plain or not tables else []
        changed = [table for table in tables if table not in plain]
        for branch in self._branches(batch.sparkSession, changed):
            rows, own = self._changed(batch, branch)
            parts.append(rows)
            plans += own
        whole = reduce(lambda one, other: one.unionAll(other), parts)
        return self._dealt(whole, len(parts)), self._packing(plans, plain)

    def _rule(self, table: TableId) -> Transform | None:
        rule = self._job.transform_of(table)
        return None if rule is None or rule.is_plain else rule

    def _plan(
        self, table: TableId, shape: Shape, columns: Sequence[Column] | None = None
    ) -> RowPlan:
        rule = self._job.transform_of(table)
        key = self.key_of(table, shape, columns)
        targets = tuple(self._sink.target(name) for name in self._router.sinks_of(table))
        keep = shape.names if columns is None and shape.left_out else None
        partition_keys = rule.partition_keys if rule else ()
        return RowPlan(table, targets, key, partition_keys, keep)

    def key_of(
        self, table: TableId, shape: Shape, columns: Sequence[Column] | None = None
    ) -> tuple[str, ...]:
        """The key of a table, whose rows become these columns; raises RowRefused if there is none.

        A table that only its rows describe may have its key in columns that are not known yet.
        """
        rule = self._job.transform_of(table)
        key = (rule.primary_key if rule else ()) or shape.key
        names = shape.names if columns is None else [column.name for column in columns]
        if columns is not None or self._source.typed:
            missing = [name for name in key if name not in names]
            if missing:
                raise RowRefused(
                    f"table '{table}': column '{missing[0]}' of its primary key is not written; "
                    "add it to the projection, or set 'primary-keys' in the transform"
                )
        if self._sink.needs_key and not key:
            raise RowRefused(
                f"table '{table}' has no primary key, and 'upsert-kafka' needs one; set "
                "'primary-keys' in a transform, or declare it in 'source.tables'"
            )
        return key

    def _changed(self, batch: DataFrame, branch: Branch) -> tuple[DataFrame, list[RowPlan]]:
        """Rows that a transform changes: typed for it, and back to text."""
        typed = to_columns(_of(batch, branch.tables), branch.columns, self._forgiven(branch))
        done = transform(typed, branch.columns, branch.rule, has_before=self._source.has_before)
        known = self._shapes.known
        plans = [self._plan(table, known[table], done.columns) for table in branch.tables]
        iso = self._sink.writing.get("timestamp-format.standard") == "ISO-8601"
        text = f"{to_text(done.columns, iso=iso)} AS {TEXT}"
        return done.frame.selectExpr("*", text).select(*ROW), plans

    def _forgiven(self, branch: Branch) -> set[str]:
        """The columns in which a value that does not fit is NULL."""
        if self._source.reading.get("ignore-parse-errors", "").lower() == "true":
            return {column.name for column in branch.columns}
        if self._job.pipeline.behavior is not Behavior.IGNORE:
            return set()
        shapes = [self._shapes.known[table] for table in branch.tables]
        return {name for shape in shapes for name in shape.inferred}

    def _branches(self, spark: SparkSession, tables: Iterable[TableId]) -> list[Branch]:
        """Tables put together where the same rule meets the same columns."""
        grouped: dict[tuple[int, tuple[Column, ...]], list[TableId]] = {}
        for table in sorted(tables):
            rule = self._rule(table)
            assert rule is not None
            columns = self._applicable(spark, table, rule)
            grouped.setdefault((self._job.transforms.index(rule), columns), []).append(table)
        return [
            Branch(self._job.transforms[at], columns, tuple(found))
            for (at, columns), found in sorted(grouped.items(), key=lambda item: item[1])
        ]

    def _applicable(
        self, spark: SparkSession, table: TableId, rule: Transform
    ) -> tuple[Column, ...]:
        """The columns a rule is applied to; new ones that clash with it may have to stay out."""
        while True:
            columns = self._shapes.known[table].columns
            try:
                self.check(spark, columns, rule)
                return columns
            except DuplicateColumn as error:
                if not self.may_leave_out(self._shapes.known[table], error.name):
                    raise
                self._warn(
                    "table '%s': column '%s' is left out: the projection has one of that name",
                    table,
                    error.name,
                )
                self._shapes.without(table, error.name)

    def may_leave_out(self, shape: Shape, column: str) -> bool:
        """Whether a column that clashes with the projection is left out, instead of told of."""
        tolerant = self._job.pipeline.behavior in (Behavior.TRY_EVOLVE, Behavior.LENIENT)
        return tolerant and column in shape.inferred

    def check(
        self, spark: SparkSession, columns: Sequence[Column], rule: Transform
    ) -> Sequence[Column]:
        """The columns that a rule makes of these; raises JobFileError if it does not fit."""
        asked = (rule, tuple(columns))
        if asked not in self._made:  # Spark is asked once, not in every batch
            empty = spark.createDataFrame([], typed_schema(columns))
            made = transform(empty, columns, rule, has_before=self._source.has_before)
            self._made[asked] = made.columns
        return self._made[asked]

    def _packing(self, plans: Sequence[RowPlan], plain: Sequence[TableId]) -> Packing:
        sink, known = self._sink, self._shapes.known
        declared = {
            str(table): known[table].columns
            for table in plain
            if known[table].declared and not self._source.typed
        }
        return Packing(
            tuple(plans),
            declared,
            sink.envelope,
            sink.key_style,
            sink.sink.headers,
            sink.sink.table_headers,
            self._source.reading,
            sink.writing,
        )

    def _dealt(self, rows: DataFrame, parts: int) -> DataFrame:
        """Rows in as many tasks as asked for, those of one key together and in order.

        A repeated batch must deal the same rows to the same tasks where they are written exactly
        once, which coalescing does not promise.
        """
        tasks = self._sink.parallelism
        if self._sink.exactly_once:
            return rows.repartition(tasks, TABLE) if tasks else rows
        if tasks is None and parts > 1:
            tasks = int(str(rows.sparkSession.conf.get("spark.sql.shuffle.partitions")))
        return rows.coalesce(tasks) if tasks else rows


def _of(batch: DataFrame, tables: Sequence[TableId]) -> DataFrame:
    """The rows of some tables, without what only served to look at them."""
    names = [str(table) for table in tables]
    rows = batch.where(batch[TABLE].isin(names)) if names else batch.where("false")
    return rows.select(*ROW)
