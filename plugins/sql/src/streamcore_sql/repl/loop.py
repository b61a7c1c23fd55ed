"""Reads statements, runs them, shows what they gave."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Any

from rich.console import Console
from streamcore.errors import StreamcoreError

from ..failures import message_of
from ..jobs import BatchJob, Job
from ..live import LiveRows
from ..monitoring.scrubbing import SECRETS
from ..results import Done, Listing, Rows, Text
from ..session import Session
from ..statements import Statement, needs_spark
from .backslash import HELP, command, statement
from .live_view import watch
from .tables import rich_table, row_count

_ROWS = 1000


class Repl:
    """One conversation."""

    def __init__(
        self,
        session: Session,
        console: Console,
        start_spark: Callable[[], Any],
        *,
        verbose: bool = False,
    ) -> None:
        self._session, self._console, self._verbose = session, console, verbose
        self._start_spark = start_spark
        self._starting: threading.Thread | None = None
        self._told: set[str] = set()

    def warm_up(self) -> None:
        """Start Spark while the first statement is typed."""
        self._starting = threading.Thread(target=self._start_spark, daemon=True)
        self._starting.start()

    def run(self, ask: Callable[[], str]) -> None:
        """Talk until the user leaves."""
        while True:
            self._tell_of_jobs()
            try:
                text = ask().strip()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            if command(text) == "\\quit":
                return
            self.answer(text)

    def answer(self, text: str) -> bool:
        """Run what was typed; False if any of it failed."""
        typed = command(text)
        if typed == "\\clear":
            self._console.clear()
            return True
        if not text or typed == "\\help":
            self._console.print(HELP if text else "", end="", markup=False, highlight=False)
            return True
        try:
            for parsed in self._session.parse(statement(typed) if typed else text):
                self._run(parsed)
        except StreamcoreError as error:
            self._fail(str(error))
            return False
        except KeyboardInterrupt:
            self._fail("interrupted")
            return False
        except Exception as error:  # a bug must not end the conversation
            self._fail(message_of(error))
            return False
        return True

    def _run(self, statement: Statement) -> None:
        if self._starting is not None and needs_spark(statement):
            self._session.look_at(statement)  # what is wrong is told before Spark is up
            if self._starting.is_alive():
                with self._console.status("starting Spark ..."):
                    self._starting.join()
            self._starting = None
        if needs_spark(statement):  # which may think for a while
            with self._console.status("working ..."):
                outcome = self._session.run_statement(statement)
        else:
            outcome = self._session.run_statement(statement)
        self._show(outcome)

    def _show(self, outcome: Any) -> None:
        say = self._console.print
        if isinstance(outcome, Done):
            say(SECRETS.scrub(outcome.message), style="dim", markup=False, highlight=False)
            for note in outcome.notes:
                say(SECRETS.scrub(f"note: {note}"), style="yellow", markup=False, highlight=False)
        elif isinstance(outcome, Text):
            say(SECRETS.scrub(outcome.text), markup=False, highlight=False)
        elif isinstance(outcome, Listing):
            say(rich_table(outcome.columns, [SECRETS.clean(row) for row in outcome.rows]))
        elif isinstance(outcome, Rows):
            self._show_rows(outcome)
        elif isinstance(outcome, LiveRows):
            mode = self._session.settings.get("sql-client.execution.result-mode")
            watch(outcome, self._console, changes=mode == "changelog")
            if outcome.error:
                self._fail(outcome.error)
        elif isinstance(outcome, Job):
            say(
                f"job '{outcome.id}' {outcome.status}; SHOW JOBS lists it, "
                f"STOP JOB '{outcome.id}' stops it",
                style="dim",
                markup=False,
                highlight=False,
            )

    def _show_rows(self, outcome: Rows) -> None:
        most = int(
            self._session.settings.get("sql-client.execution.max-table-result.rows") or _ROWS
        )
        rows: list[Any] = []
        job = BatchJob("select", self._session.spark, lambda: rows.extend(outcome.first(most + 1)))
        try:
            with self._console.status("running ..."):
                job.wait()
        except KeyboardInterrupt:
            job.stop()
            raise
        shown = [tuple(row) for row in rows[:most]]
        caption = row_count(len(shown), more=len(rows) > most)
        self._console.print(rich_table(outcome.columns, shown, caption))

    def _tell_of_jobs(self) -> None:
        """Say once that a job ended while nobody looked."""
        for job in self._session.jobs:
            if job.id in self._told or job.status == "running" or isinstance(job, LiveRows):
                continue
            self._told.add(job.id)
            if job.error:
                self._fail(f"job '{job.id}' failed: {job.error}")
            elif job.status == "finished":
                self._console.print(f"job '{job.id}' finished", style="dim", highlight=False)

    def _fail(self, text: str) -> None:
        if self._verbose:
            stack = SECRETS.scrub(traceback.format_exc())
            self._console.print(stack, markup=False, highlight=False)
        self._console.print(SECRETS.scrub(text), style="red", markup=False, highlight=False)
