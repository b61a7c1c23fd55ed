"""A job file as something `streamcore run` can check, show and start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from streamcore import Column, StreamcoreError
from streamcore.reports import on_behalf_of

from ..errors import SqlError
from ..failures import message_of, spark_errors
from ..fingerprint import Fingerprint
from ..jobs import Job as Running
from ..jobs import StreamJob
from ..launching import _Resumable
from ..monitoring.about import About, table_about
from ..monitoring.sampling import sampled
from ..monitoring.scrubbing import SECRETS
from ..planner.modes import APPEND, UPDATE, applied, spark_settings
from ..running import resuming
from ..statements import CreateFunction, Name, Option
from .batches import TableWriter
from .document import Node
from .dry_run import plan_text
from .errors import Problems, RowRefused, noted
from .expressions import sql_text, told_at
from .model import Job, RouteMode, RuntimeMode
from .packed_writer import TablesDataSource
from .reading import read_job
from .routing import Router, Selector, TableId
from .shapes import Shape, Shapes, is_local
from .sinks import SinkPlan, plan_sink
from .sources import SourcePlan, look, plan_source
from .transforms import DuplicateColumn

if TYPE_CHECKING:
    from ..running import Launch
    from ..session import Session

_TARGET = "tables"


@dataclass
class PlannedJob:
    """A job ready to run."""

    session: Session
    job: Job
    router: Router
    source: SourcePlan
    sink: SinkPlan
    launch: Launch
    samples: Sequence[str] = ()
    """Tables to show the way of in a dry run."""

    def __post_init__(self) -> None:
        self._shapes = Shapes(
            self.job.pipeline.behavior, self.job.sink.refused, self.launch.checkpoint
        )
        self._writer = TableWriter(
            self.job, self.router, self.source, self.sink, self._shapes, self.launch.name
        )
        self._resumable = _Resumable(self.launch, self._fingerprint())
        self._notes: list[str] = []

    def _fingerprint(self) -> Fingerprint:
        source = self.job.source
        identity = {key: source.options[key] for key in _IDENTITY if key in source.options}
        told = {"table": source.name or "source", "connector": source.type, **identity}
        return Fingerprint((told,), (), {}, "", "")

    @property
    def notes(self) -> tuple[str, ...]:
        """What one should know although nothing is wrong."""
        found = [*self.job.notes, *self.source.notes, *self.sink.notes, *self._notes]
        return tuple(dict.fromkeys(found))

    def check(self) -> list[str]:
        """Raise CannotResume where a checkpoint does not fit; return what is to be noted."""
        return [*self.notes, *self._resumable.check()]

    def check_rules(self, *, sample: bool) -> None:
        """Try every transform on the tables that are known: declared, or found in a sample."""
        source = self.job.source
        if sample or self.job.transforms:
            self.session.planner  # noqa: B018 - asking for it makes functions known to Spark
        self._shapes.load(source.declared)
        known = {
            table: Shape(found, key=found.primary_key)
            for table in source.names
            if (found := source.declared(table)) is not None
        }
        known |= self._shapes.known
        if sample and not self._shapes.known and not source.is_closed:
            known = {**self._sampled(), **known}
        problems = Problems()
        for table, shape in known.items():
            self._check_table(table, shape, problems)
        problems.raise_any()
        for label, node in _rules_for(self.job, lambda rule: not any(map(rule.match, known))):
            if known:
                text = f"{label}: source-table: '{node.text}' matches no table known so far"
                self._notes.append(noted(text, node))

    def _check_table(self, table: TableId, shape: Shape, problems: Problems) -> None:
        """Complain about a transform that does not fit a table, and about a key that is missing."""
        rule = self.job.transform_of(table)
        try:
            columns = self._writer.check(self.session.spark, shape.columns, rule) if rule else None
            if shape.key or self.source.typed:  # else messages may tell it yet
                self._writer.key_of(table, shape, columns)
        except DuplicateColumn as error:
            if self._writer.may_leave_out(shape, error.name):
                kept = {name: kind for name, kind in shape.inferred.items() if name != error.name}
                self._check_table(table, replace(shape, inferred=kept), problems)
            else:
                problems.take(error)
        except SqlError as error:
            problems.take(error)
        except RowRefused as error:
            declared = [each.node for each in self.job.source.tables if each.selector.match(table)]
            places = [rule.projection] if rule and rule.projection else declared
            problems.add(str(error), (*places, self.job.source.node)[0])

    def _sampled(self) -> dict[TableId, Shape]:
        """The tables found in a sample; they serve to check the rules, no more."""
        from pyspark.errors import PySparkException

        try:
            frame = self.source.sample(self.session.spark)
            seen = look(frame) if frame is not None else []
        except PySparkException as error:
            raise StreamcoreError(f"source: {message_of(error)}") from error
        found = Shapes(self.job.pipeline.behavior)
        wanted = [each for each in seen if self.job.source.wants(each.table)]
        declared = {
            each.table: table
            for each in wanted
            if (table := self.job.source.declared(each.table)) is not None
        }
        found.learn(wanted, declared)
        return found.known

    def start(self) -> Running:
        """Start the one query of the job."""
        self._resumable.begin()
        try:
            if self.launch.fresh:
                self._shapes.known, self._shapes.topics = {}, []
                self._shapes.first_batch = None
            self.session.spark.dataSource.register(TablesDataSource)
            if topics := self._known_topics():  # then even a batch without rows is written
                self._shapes.topics = sorted({*self._shapes.topics, *topics})
                self._shapes.first_batch = self._shapes.first_batch or 0
            with on_behalf_of(self.launch.name):
                frame = self.source.stream(self.session.spark)
            connector, place = self.source.connector, self.job.source.node.members["type"]
            needed = spark_settings(forgets=connector.forgets_rows())
            told, spark = spark_errors(sql_text(place)), self.session.spark
            with told, resuming(self.launch), applied(needed, spark):
                mode = UPDATE if connector.stream_updates() else APPEND
                query = self.launch.writer(frame, mode).foreachBatch(self._writer).start()
            job = sampled(StreamJob(self.launch.name, query, self._about()))
            return self._resumable.watch(job)
        except BaseException:
            self._resumable.release()
            raise

    def _about(self) -> About:
        source, sink = self.source, self.sink
        tables = (
            table_about(source.table.name, "source", self.job.source.type, source.options),
            table_about(self.job.sink.name or "sink", "sink", self.job.sink.type, sink.options),
        )
        return About(tables, self.launch.checkpoint, lambda: SECRETS.scrub(self.text()))

    def _known_topics(self) -> list[str]:
        """The topics of every table, if the file names them all."""
        if not self.job.source.is_closed:
            return []
        names = [name for table in self.job.source.names for name in self.router.sinks_of(table)]
        return [self.sink.target(name).topic for name in names]

    def text(self, *, details: bool = True, options: bool = False) -> str:
        """The equivalent SQL, and where each table goes."""
        return plan_text(
            self.job, self.router, self.source, self.sink, self._columns_of, self.samples
        )

    def _columns_of(self, table: TableId) -> Sequence[Column] | None:
        """The columns of a declared table as the sink gets them."""
        declared, rule = self.job.source.declared(table), self.job.transform_of(table)
        if declared is None:
            return None
        if rule is None or rule.is_plain:
            return declared.columns
        return self._writer.check(self.session.spark, declared.columns, rule)


_IDENTITY = ("topic", "topic-pattern", "stream", "stream.arn")


def prepare_job(
    session: Session,
    text: str,
    name: str,
    start: Callable[[], None],
    *,
    dry: bool = False,
    samples: Sequence[str] = (),
) -> PlannedJob:
    """Read and check a job file; `start` is called before Spark is first needed, if it is."""
    problems = Problems()
    job = read_job(text, name, session._variables, session._secrets, problems)
    if job is None:
        raise problems.together()
    pipeline, settings = job.pipeline, session.settings
    title = settings.get("pipeline.name") or pipeline.name or settings.job_name or Path(name).stem
    router = Router(
        [rule.route for rule in job.routes],
        first_only=pipeline.route_mode is RouteMode.FIRST_MATCH,
    )
    if not problems:  # else a rule or a table may be missing here that the file has
        _refuse_idle_rules(job, router, problems)
    source = plan_source(job, problems)
    sink = plan_sink(job, title, problems)
    if problems or source is None or sink is None:
        raise problems.together()
    if pipeline.name and not settings.get("pipeline.name"):
        settings.put(Option("pipeline.name", pipeline.name))
    if pipeline.time_zone:
        settings.put(Option("table.local-time-zone", pipeline.time_zone), session._spark)
    if pipeline.runtime_mode is RuntimeMode.BATCH:
        settings.once = True
    for function in pipeline.functions:
        with told_at(function.node, "user-defined-function"):
            session.run_statement(CreateFunction(Name((function.name,)), function.target))
    launch = session.settings.launch(_TARGET)
    _refuse_forgetful(job, sink, launch, problems)
    problems.raise_any()
    if not dry or job.transforms:
        start()
    planned = PlannedJob(session, job, router, source, sink, launch, samples)
    planned.check_rules(sample=not dry)
    return planned


def _refuse_forgetful(job: Job, sink: SinkPlan, launch: Launch, problems: Problems) -> None:
    """Exactly once needs to know every topic ever written to, which is kept in local folders."""
    remote = launch.checkpoint is not None and not is_local(launch.checkpoint)
    if sink.exactly_once and remote and not job.source.is_closed:
        node = job.sink.nodes["sink.delivery-guarantee"]
        trouble = f"sink: {node.key}: '{node.text}' needs a checkpoint in a local folder"
        hint = "Keep it in one, or name every table in full in 'source.tables'."
        problems.add(trouble, node, hint)


def _rules_for(job: Job, asked: Callable[[Selector], bool]) -> Iterator[tuple[str, Node]]:
    """The rules whose tables are those asked for: what they are called, and what they select."""
    routes = [(f"route[{n}]", each.route.source, each.node) for n, each in enumerate(job.routes, 1)]
    rules = [
        (f"transform[{n}]", each.source, each.node) for n, each in enumerate(job.transforms, 1)
    ]
    for label, selector, node in (*routes, *rules):
        if asked(selector):
            yield label, node.members["source-table"]


def _refuse_idle_rules(job: Job, router: Router, problems: Problems) -> None:
    """Complain about rules for no table, as far as the file says which tables there are."""
    source = job.source
    listed = ", ".join(each.selector.text for each in source.tables)

    def is_idle(rule: Selector) -> bool:
        if source.is_closed:
            return not any(map(rule.match, source.names))
        return rule.is_literal and not any(source.wants(TableId.of(each)) for each in rule.literals)

    for label, node in _rules_for(job, is_idle):
        trouble = f"{label}: source-table: '{node.text}' matches no table"
        problems.add(trouble, node, f"'source.tables' names {listed}.")
    if not source.is_closed:
        return
    sinks = {name for table in source.names for name in router.sinks_of(table)}
    for name in sorted(job.sink.topics.keys() - sinks):
        mapping = job.sink.node.members["sink.tableId-to-topic.mapping"]
        trouble = f"sink: {mapping.key}: no table is called '{name}' at the sink"
        problems.add(trouble, mapping, f"There are {', '.join(sorted(sinks))}.")
