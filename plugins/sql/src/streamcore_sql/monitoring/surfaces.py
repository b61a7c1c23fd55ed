"""Everything that shows a run to others: its file, its log, its metrics and its page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from streamcore.cli.status import INTERRUPTED, OK

from ..jobs import Job, StreamJob
from ..settings import state_folder
from . import jobfiles
from .events import Events, Note, each_query
from .openmetrics import JobsCollector, scrape
from .serving import Server, address
from .web import Page

_EVERY = 2.0


class Surfaces:
    """Open while jobs run; `look` keeps file and log up to date."""

    def __init__(
        self,
        name: str,
        script: str,
        jobs: Callable[[], Sequence[Job]],
        metrics: str | None = None,
        web: str | None = None,
        *,
        otel: bool = False,
        path: str = "",
    ) -> None:
        self._name, self._script, self._path, self._jobs = name, script, path, jobs
        self._metrics, self._web, self._otel = metrics, web, otel
        self._provider: Any = None
        self.events = Events(state_folder() / "logs" / f"{quote(name, safe='')}.jsonl")
        self._servers: list[Server] = []
        self.urls: dict[str, str] = {}
        """Where metrics and page are, once they are open."""
        self._file: jobfiles.JobFile | None = None
        self._written = 0.0
        self._status = "failed"

    def open(self, say: Callable[[str], None]) -> None:
        """Open the ports that were asked for, and say where; nothing else is left if one fails."""
        if self._otel:
            from .otel import provide

            self._provider = provide(self._name, self._figures)
        figures = scrape(JobsCollector(self._figures)) if self._metrics or self._web else None
        if self._metrics is not None and figures is not None:
            place = address(self._metrics)
            server = self._serve(Server(place, {"/metrics": figures}, "--metrics-port"))
            self.urls["metrics"] = f"{server.url}/metrics"
            say(f"metrics are at {self.urls['metrics']}")
        if self._web is not None and figures is not None:
            page = Page(self._name, self._jobs, self.events)
            routes = {**page.routes, "/metrics": figures}
            self.urls["web"] = self._serve(Server(address(self._web), routes, "--web")).url
            say(f"the job's page is at {self.urls['web']}/")

    @contextmanager
    def shown(self, say: Callable[[str], None], note: Note) -> Iterator[None]:
        """Open while jobs run, and closed with word of how they ended."""
        error = ""
        try:
            with self.events.hear_loggers(self._jobs, note):
                self.open(say)
                yield
        except BaseException as failure:
            self._status = "stopped" if isinstance(failure, KeyboardInterrupt) else "failed"
            error = str(failure)
            raise
        finally:
            self.close(self._status, error)

    def ended(self, status: int) -> int:
        """Note the exit status that a run ends with."""
        self._status = {OK: "finished", INTERRUPTED: "stopped"}.get(status, "failed")
        return status

    def look(self, jobs: Sequence[Job]) -> None:
        """Keep what others see up to date; called while jobs run."""
        self.events.look(jobs)
        if self._file is None:
            self._file = jobfiles.begin(self._name, self._script, self._path)
            self._file.log = str(self.events.path or "")
            self._file.web = self.urls.get("web", "")
            self._file.metrics = self.urls.get("metrics", "")
        if time.monotonic() - self._written >= _EVERY:
            self._written = time.monotonic()
            self._file.queries = [query_file(job) for job in each_query(jobs)]
            self._file.write()

    def close(self, status: str, error: str = "") -> None:
        """Leave word of how it ended."""
        jobs = self._jobs()
        if jobs:
            self.look(jobs)
        error = error or next((job.error for job in jobs if job.error), "")
        if self._file is not None:
            self._file.queries = [query_file(job) for job in each_query(jobs)]
            self._file.end(status, error)
        if self._provider is not None:
            self._provider.shutdown()
        for server in self._servers:
            server.close()
        self._servers.clear()

    def _serve(self, server: Server) -> Server:
        self._servers.append(server)
        return server

    def _figures(self) -> list[Any]:
        return [job.metrics() for job in each_query(self._jobs())]


def query_file(job: Job) -> dict[str, Any]:
    """One query as its run's file keeps it."""
    about = job.monitor.about if isinstance(job, StreamJob) else None
    plain = {**job.metrics().to_json(), "error": job.error or ""}
    if about is not None:
        plain["checkpoint"] = about.checkpoint
        known = {(table.table, table.side): table for table in about.tables}
        for table in plain["tables"]:
            found = known.get((table["table"], table["side"]))
            table["connector"] = found.connector if found else ""
            table["options"] = dict(found.options) if found else {}
    return plain
