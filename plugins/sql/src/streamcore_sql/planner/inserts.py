"""INSERT as a plan: what is read, in which mode, into what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as every Spark program writes it
from streamcore.table import INSERT_ONLY, ROW_KIND

from ..catalog import Catalog
from ..errors import SqlError
from ..failures import spark_errors
from ..statements import CreateView, Insert
from .binding import Bound, bind
from .changelog import changing
from .keys import check_key
from .modes import UPDATE
from .queries import QueryPlan, QueryPlanner
from .sinks import shaped, slots

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class InsertPlan:
    """An INSERT ready to run."""

    insert: Insert
    query: QueryPlan
    sink: Bound
    frame: DataFrame

    @property
    def mode(self) -> str:
        return self.query.mode

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.query.notes, *self.sink.notes)))


def sink_of(insert: Insert, catalog: Catalog) -> Bound:
    """The table that rows go into; raises what is wrong with it."""
    entry = catalog.find(insert.table)
    if isinstance(entry, CreateView):
        trouble = f"'{insert.table}' is a view: rows go into tables"
        raise SqlError(trouble, insert.table.place)
    if insert.overwrite:
        hint = "Write INSERT INTO."
        raise SqlError("a stream cannot be overwritten", insert.place, hint)
    sink = bind(entry, insert.options, insert.table.place)
    sink.check(writing=True, place=insert.table.place)
    _check_writable(insert, sink)
    return sink


def plan_insert(insert: Insert, planner: QueryPlanner, catalog: Catalog) -> InsertPlan:
    """Check both sides and everything between them; nothing is started."""
    problems: list[SqlError] = []
    sink = query = None
    try:
        sink = sink_of(insert, catalog)
    except SqlError as problem:
        problems.append(problem)
    try:
        query = planner.plan(
            insert.query,
            upserts=sink is not None and _keeps_latest(sink),
            retracts=sink is not None and sink.connector.needs_old_rows(),
        )
    except SqlError as problem:
        problems.append(problem)
    if problems or sink is None or query is None:
        raise SqlError.together(problems)
    _check_changes(insert, query, sink)
    _check_key(insert, query, sink)
    with spark_errors(insert.query):
        frame = shaped(query.frame, insert, sink)
        if query.mode == UPDATE and ROW_KIND not in frame.columns:
            frame = frame.withColumn(ROW_KIND, F.lit("+U"))
    return InsertPlan(insert, query, sink, frame)


def _keeps_latest(sink: Bound) -> bool:
    """Whether it takes deletes, but no rows as they were before."""
    taken = sink.connector.accepts()
    return "-D" in taken and "-U" not in taken


def _check_writable(insert: Insert, sink: Bound) -> None:
    connector = sink.connector
    if not connector.can("writer") and not connector.can("stream_writer"):
        trouble = f"connector '{connector.identifier}' only reads: '{sink.name}' takes no rows"
        raise SqlError(trouble, insert.table.place)


def _check_changes(insert: Insert, query: QueryPlan, sink: Bound) -> None:
    """Refuse what Flink refuses: changes into a table that only takes inserts."""
    changed = [read.bound.name for read in changing(query.rewritten, query.scans).values()]
    name, connector = insert.table, sink.connector.identifier
    if changed and query.rewritten.limited:
        raise SqlError(
            f"'{changed[0]}' updates and deletes rows, and LIMIT would take its first changes, not "
            "its first rows",
            insert.query.place,
            "Leave LIMIT out, or read a bounded table, which has only its latest rows.",
        )
    if query.streaming and query.rewritten.mode == UPDATE and sink.connector.needs_old_rows():
        raise SqlError(
            f"table '{name}' ('{connector}') keeps every change, and so must be told each row as "
            "it was before; this query only tells what its rows are now",
            insert.query.place,
            "Insert into an 'upsert-kafka' table, and from that one into this.",
        )
    if not sink.connector.accepts() <= INSERT_ONLY:
        return
    if query.mode == UPDATE == query.rewritten.mode:
        raise SqlError(
            f"table '{name}' ('{connector}') only takes inserts, but this query changes rows it "
            "has already given: it aggregates without a window of time",
            insert.query.place,
            "Insert into a table with a PRIMARY KEY that takes updates, such as 'upsert-kafka', "
            "or GROUP BY a window of a column with a WATERMARK.",
        )
    if changed:
        raise SqlError(
            f"table '{name}' ('{connector}') only takes inserts, but '{changed[0]}' updates and "
            "deletes rows",
            insert.query.place,
            "Insert into a table that takes changes: 'upsert-kafka', or 'kafka' with a "
            "changelog format such as 'debezium-json'.",
        )


def _check_key(insert: Insert, query: QueryPlan, sink: Bound) -> None:
    """A sink that keeps the latest row of each key needs changes of just these keys."""
    keys, taken = sink.table.primary_key, sink.connector.accepts()
    changed = changing(query.rewritten, query.scans)
    changes = query.mode == UPDATE or bool(changed)
    if not keys or not changes or "-U" in taken or taken <= INSERT_ONLY or not query.streaming:
        return
    by_name = {slot.column.name: slot.position for slot in slots(insert, sink)}
    positions = [by_name.get(name) for name in keys]
    check_key(query.rewritten, query.scans, positions, sink.name, insert.query)
