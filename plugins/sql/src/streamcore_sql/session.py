"""`Session.execute(text)`: the one entry for commands, the REPL, notebooks and YAML jobs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamcore.reports import on_behalf_of

from . import listings
from .catalog import Catalog, MemoryStore, OverlayStore, Store
from .catalog_files import DirectoryStore
from .definitions import Definitions
from .errors import SqlError
from .jobs import Job
from .monitoring.listening import listen_on
from .monitoring.scrubbing import SECRETS
from .parser import parse
from .results import Done, Listing, Rows, Text
from .settings import Settings
from .source import Source
from .statements import (
    AlterTable,
    CreateFunction,
    CreateTable,
    CreateView,
    Describe,
    Drop,
    Explain,
    Insert,
    Reset,
    Select,
    Set,
    Show,
    Statement,
    StatementSet,
    StopJob,
    Use,
)
from .variables import fill

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from .cursor import SqlText
    from .launching import Planned
    from .planner.inserts import InsertPlan
    from .planner.queries import QueryPlanner
    from .planner.sources import Scan
    from .running import Launch

Outcome = Done | Listing | Text | Rows | Job


class Session:
    """Runs Flink SQL on Spark; tables, settings and jobs live as long as it does.

    `name` is the job's: with it, checkpoints are kept and a second run goes on where the first
    stopped. `catalog` is a folder that keeps tables. `variables` fill in `${NAME}`, before the
    environment; `secrets` fill in `${secret_values.NAME}` and are never shown. `once` reads what
    is there now and ends; `fresh` starts over; `dry` keeps nothing in the catalog's folder.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        name: str = "",
        catalog: str | Path | None = None,
        variables: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        checkpoint: str | None = None,
        once: bool = False,
        fresh: bool = False,
        dry: bool = False,
    ) -> None:
        self._spark = spark
        self._variables = {**os.environ, **(variables or {})}
        self._secrets = dict(secrets or {})
        SECRETS.learn(self._secrets.values())
        self.settings = Settings(name=name, checkpoint=checkpoint, once=once, fresh=fresh)
        store: Store = DirectoryStore(Path(catalog), self.parse) if catalog else MemoryStore()
        self.catalog = Catalog(OverlayStore(store) if dry else store)
        self.jobs: list[Job] = []
        self._definitions = Definitions(self.catalog)
        self._targets: Counter[str] = Counter()
        self._registered: dict[str, CreateFunction] = {}

    # --- entry -------------------------------------------------------------------------

    def execute(self, text: str) -> Outcome:
        """Run every statement of a text and return what the last one gave."""
        outcomes = list(self.run(text))
        return outcomes[-1] if outcomes else Done("nothing to run")

    def run(self, text: str, name: str = "") -> Iterator[Outcome]:
        """Run the statements of a text one by one; the text is parsed before the first runs."""
        for statement in self.parse(text, name):
            yield self.run_statement(statement)

    def parse(self, text: str, name: str = "") -> list[Statement]:
        """Fill in variables and parse."""
        if "${" in text:
            return parse(fill(text, self._variables, self._secrets, name))
        return parse(Source(text, name))

    def run_statement(self, statement: Statement) -> Outcome:
        """Run one parsed statement."""
        return self._handlers[type(statement)](self, statement)

    def table(self, name: str) -> DataFrame:
        """A table or view as a DataFrame: a stream unless it is bounded."""
        (statement,) = parse(f"SELECT * FROM {name}")  # noqa: S608 - parsed, never pasted
        assert isinstance(statement, Select)
        return self.planner.plan(statement.query).frame

    def plan(self, insert: Insert) -> InsertPlan:
        """Plan an INSERT without starting it."""
        from .planner.inserts import plan_insert

        return plan_insert(insert, self.planner, self.catalog)

    def stop(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """Stop every job of this session, each after the batch it is in unless there is a hurry."""
        for job in self.jobs:
            job.stop(hurry)

    # --- what it stands on ---------------------------------------------------------------

    @property
    def spark(self) -> SparkSession:
        """The Spark session; started when it is first needed."""
        if self._spark is None:
            from streamcore.spark.session import session

            name = self.settings.job_name or "streamcore"
            self._spark = session(name, config=self.settings.spark)
        listen_on(self._spark)
        return self._spark

    @property
    def planner(self) -> QueryPlanner:
        """Plans queries against this session's tables and functions."""
        from .planner.queries import QueryPlanner
        from .user_functions import register

        broken: dict[str, SqlError] = {}
        for path in self.catalog.functions():
            try:
                function = self.catalog.get(path)
                if self._registered.get(path.name) is not function:
                    assert isinstance(function, CreateFunction)
                    register(function, self.spark)
                    self._registered[path.name] = function
            except SqlError as error:  # in the way of a query that calls it, and of no other
                broken[path.name.lower()] = error
        return QueryPlanner(
            self.spark,
            self.catalog,
            broken,
            approximate_distinct=self.settings.get("table.exec.distinct") == "approx",
            batch_only=self.settings.get("execution.runtime-mode") == "batch",
        )

    # --- statements ------------------------------------------------------------------------

    def look_at(self, statement: Statement) -> list[Scan]:
        """Raise all that is wrong with a statement that moves data, as far as it takes no Spark.

        Returns how its tables are read.
        """
        from .planner.queries import QueryReader
        from .reading import reads_of

        batch_only = self.settings.get("execution.runtime-mode") == "batch"
        return reads_of(statement, QueryReader(self.catalog, batch_only=batch_only), self.catalog)

    def prepare(self, statement: Statement) -> Planned | None:
        """Plan a statement that moves data, without running it; None for any other statement."""
        if self._spark is None:  # which takes seconds to start: a mistake is told before
            self.look_at(statement)
        from .launching import SELECT, PlannedInsert, PlannedSelect, PlannedSet, PlannedShared
        from .statement_sets import shared_scan

        if isinstance(statement, Select):
            with on_behalf_of(SELECT):
                return PlannedSelect(self.planner.plan(statement.query), self.settings.once)
        if isinstance(statement, Insert):
            launch, plan = self._plan_as_job(statement)
            return PlannedInsert(plan, launch)
        if isinstance(statement, StatementSet):
            before = self._targets.copy()
            planned = self._plans(statement)
            if shared := shared_scan([plan for _, plan in planned]):
                self._targets = before
                return PlannedShared(shared, self.spark, self._launch("statement-set"))
            return PlannedSet([PlannedInsert(p, launch) for launch, p in planned], "statement-set")
        if isinstance(statement, CreateTable) and statement.query is not None:
            return self._prepare_as(statement, statement.query)
        return None

    def start(self, planned: Planned) -> Job | Rows:
        """Run what was prepared."""
        outcome = planned.start()
        if isinstance(outcome, Job):
            self.jobs.append(outcome)
        return outcome

    def _plans(self, statement: StatementSet) -> list[tuple[Launch, InsertPlan]]:
        before = self._targets.copy()
        plans, problems = [], []
        for insert in statement.inserts:
            try:
                plans.append(self._plan_as_job(insert))
            except SqlError as problem:
                problems.append(problem)
        if problems:
            self._targets = before
            raise SqlError.together(problems)
        return plans

    def _plan_as_job(self, insert: Insert) -> tuple[Launch, InsertPlan]:
        """Plan an INSERT under the name of the job it becomes; no name is taken if it cannot be."""
        before = self._targets.copy()
        launch = self._launch(insert.table.last)
        try:
            with on_behalf_of(launch.name):
                return launch, self.plan(insert)
        except BaseException:
            self._targets = before
            raise

    def _launch(self, target: str) -> Launch:
        """How the next job into a table is started: the same script gives the same names."""
        self._targets[target] += 1
        count = self._targets[target]
        return self.settings.launch(target if count == 1 else f"{target}-{count}")

    def _move(self, statement: Select | Insert | StatementSet | CreateTable) -> Outcome:
        planned = self.prepare(statement)
        assert planned is not None
        planned.check()
        outcome = self.start(planned)
        if isinstance(outcome, Job) and not isinstance(statement, Select) and self.settings.waits:
            outcome.wait()
        return outcome

    def _explain(self, statement: Explain) -> Outcome:
        before = self._targets.copy()
        inner = statement.statement
        planned = None if isinstance(inner, CreateTable) else self.prepare(inner)
        self._targets = before  # nothing was started, so no name is taken
        if planned is None:
            hint = "EXPLAIN takes a SELECT, an INSERT or a STATEMENT SET."
            raise SqlError("there is nothing to explain", inner.place, hint)
        return Text(planned.text())

    def _create(self, statement: CreateTable | CreateView | CreateFunction) -> Outcome:
        if isinstance(statement, CreateTable) and statement.query is not None:
            if self._is_there(statement):
                return Done(f"table '{statement.name}' already exists")
            return self._move(statement)
        return Done(self._definitions.create(statement))

    def _is_there(self, statement: CreateTable) -> bool:
        path = self.catalog.path(statement.name)
        return statement.if_not_exists and self.catalog.get(path) is not None

    def _prepare_as(self, statement: CreateTable, query: SqlText) -> Planned | None:
        """Create a table for a query's result, to be filled; neither happens if either cannot."""
        from .launching import PlannedTable
        from .planner.table_as import table_as

        if self._is_there(statement):
            return None
        table = table_as(statement, self.planner.plan(query).frame.schema)
        path = self.catalog.path(statement.name)
        previous = self.catalog.get(path)
        self._definitions.create(table)

        def undo() -> None:
            self._definitions.drop(Drop("TABLE", statement.name))
            if previous is not None:
                self.catalog.put(path, previous)

        try:
            insert = Insert(statement.name, query, place=statement.place)
            launch, plan = self._plan_as_job(insert)
            return PlannedTable(plan, launch, undo)
        except BaseException:
            undo()
            raise

    def _drop(self, statement: Drop) -> Outcome:
        return Done(self._definitions.drop(statement))

    def _alter(self, statement: AlterTable) -> Outcome:
        return Done(self._definitions.alter(statement))

    def _show(self, statement: Show) -> Outcome:
        return listings.show(statement, self.catalog, self.jobs)

    def _describe(self, statement: Describe) -> Outcome:
        return listings.describe(statement, self.catalog)

    def _use(self, statement: Use) -> Outcome:
        self.catalog.use(statement.name, catalog=statement.catalog)
        return Done(f"using {'.'.join(self.catalog.current)}")

    def _set(self, statement: Set) -> Outcome:
        return self.settings.set(statement, self._spark)

    def _reset(self, statement: Reset) -> Outcome:
        return self.settings.reset(statement, self._spark)

    def _stop_job(self, statement: StopJob) -> Outcome:
        job = next((job for job in self.jobs if job.id == statement.job), None)
        if job is None:
            ids = ", ".join(f"'{job.id}'" for job in self.jobs) or "none"
            raise SqlError(f"no job '{statement.job}'", statement.place, f"Jobs: {ids}.")
        job.stop()
        return Done(f"job '{job.id}' stopped")

    _handlers: Mapping[type[Statement], Callable[[Session, Any], Outcome]] = {
        Select: _move,
        Insert: _move,
        StatementSet: _move,
        CreateTable: _create,
        CreateView: _create,
        CreateFunction: _create,
        AlterTable: _alter,
        Drop: _drop,
        Show: _show,
        Describe: _describe,
        Use: _use,
        Set: _set,
        Reset: _reset,
        StopJob: _stop_job,
        Explain: _explain,
    }
