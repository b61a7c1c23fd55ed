"""`Session.execute(text)`: the one entry for commands, the REPL, notebooks and YAML jobs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import listings
from .catalog import Catalog
from .definitions import Definitions
from .errors import SqlError
from .jobs import Job
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
    Insert,
    Reset,
    Select,
    Set,
    Show,
    Statement,
    StopJob,
    Use,
)
from .variables import fill

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from .planner.queries import QueryPlanner

Outcome = Done | Listing | Text | Rows | Job


class Session:
    """Runs Flink SQL on Spark; tables, settings and jobs live as long as it does.

    >>> session = Session()
    >>> session.execute("CREATE TABLE t (id BIGINT) WITH ('connector' = 'datagen')")
    >>> job = session.execute("INSERT INTO sink SELECT id FROM t")
    >>> job.wait(10), job.stop()
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        name: str = "",
        variables: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        checkpoint: str | None = None,
        once: bool = False,
    ) -> None:
        self._spark = spark
        self.catalog = Catalog()
        self.settings = Settings(name=name, checkpoint=checkpoint, once=once)
        self.jobs: list[Job] = []
        self._targets: Counter[str] = Counter()
        self._variables = {**os.environ, **(variables or {})}
        self._secrets = dict(secrets or {})
        self._definitions = Definitions(self.catalog)

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
        source = fill(text, self._variables, self._secrets, name) if "${" in text else None
        return parse(source or Source(text, name))

    def run_statement(self, statement: Statement) -> Outcome:
        handler = self._handlers.get(type(statement))
        if handler is None:
            raise SqlError(f"{type(statement).__name__} cannot be run yet", statement.place)
        return handler(self, statement)

    def table(self, name: str) -> DataFrame:
        """A table or view as a DataFrame: a stream unless it is bounded."""
        (statement,) = parse(f"SELECT * FROM {name}")  # noqa: S608 - parsed, never pasted
        assert isinstance(statement, Select)
        return self.planner.plan(statement.query).frame

    def stop(self) -> None:
        """Stop every job of this session."""
        for job in self.jobs:
            job.stop()

    # --- what it stands on ---------------------------------------------------------------

    @property
    def spark(self) -> SparkSession:
        """The Spark session; started when it is first needed."""
        if self._spark is None:
            from streamcore.spark.session import session

            self._spark = session(
                self.settings.job_name or "streamcore", config=self.settings.spark
            )
        return self._spark

    @property
    def planner(self) -> QueryPlanner:
        from .planner.queries import QueryPlanner

        return QueryPlanner(self.spark, self.catalog)

    # --- statements ------------------------------------------------------------------------

    def _select(self, statement: Select) -> Outcome:
        plan = self.planner.plan(statement.query)
        if plan.streaming:
            raise SqlError("a streaming SELECT cannot be shown yet", statement.place)
        return Rows(plan)

    def _insert(self, statement: Insert) -> Outcome:
        from .planner.inserts import plan_insert
        from .running import start

        plan = plan_insert(statement, self.planner, self.catalog)
        job = start(plan, self.settings.launch(self._unique(statement.table.last)))
        self.jobs.append(job)
        return job

    def _unique(self, target: str) -> str:
        """A name for the next job into a table: the same script gives the same names."""
        self._targets[target] += 1
        count = self._targets[target]
        return target if count == 1 else f"{target}-{count}"

    def _show(self, statement: Show) -> Outcome:
        return listings.show(statement, self.catalog, self.jobs)

    def _describe(self, statement: Describe) -> Outcome:
        return listings.describe(statement, self.catalog)

    def _define(self, statement: Any) -> Outcome:
        return Done(self._definitions.run(statement))

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
        Select: _select,
        Insert: _insert,
        Show: _show,
        Describe: _describe,
        CreateTable: _define,
        CreateView: _define,
        CreateFunction: _define,
        AlterTable: _define,
        Drop: _define,
        Use: _use,
        Set: _set,
        Reset: _reset,
        StopJob: _stop_job,
    }
