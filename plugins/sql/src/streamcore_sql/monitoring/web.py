"""The page of a job: what it shows, as JSON and three files, none of them from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from typing import Any

from ..jobs import BatchJob, Job, StreamJob
from ..progress import progress_of
from . import wording
from .about import About
from .events import Events, each_query
from .scrubbing import SECRETS
from .serving import Answer, Request, Route

_KINDS = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
}
_LETTERS = 50
_TOPICS = 50


class Page:
    """Answers what the page asks."""

    def __init__(self, name: str, jobs: Callable[[], Sequence[Job]], events: Events) -> None:
        self._name, self._jobs, self._events = name, jobs, events

    @property
    def routes(self) -> Mapping[str, Route]:
        fixed = {f"/{name}": _file(name) for name in _KINDS}
        return {
            **fixed,
            "/": fixed["/index.html"],
            "/api/state": self._state,
            "/api/history": self._history,
            "/api/plan": self._plan,
        }

    def _state(self, request: Request) -> Answer:
        jobs = [_job(job) for job in each_query(self._jobs())]
        return _json(
            {
                "name": self._name,
                "jobs": jobs,
                "troubles": self._troubles(),
                "plugins": self._plugins,
            }
        )

    def _history(self, request: Request) -> Answer:
        job = self._find(request)
        since = float(request.query.get("since", "0"))
        if not isinstance(job, StreamJob):
            return _json({"points": []})
        return _json(job.monitor.history.to_json(since))

    def _plan(self, request: Request) -> Answer:
        job = self._find(request)
        text = _about(job).plan()
        java = getattr(getattr(job, "query", None), "_jsq", None)
        if java is not None:
            text += f"\n\n{java.explainInternal(False)}"
        return _json({"plan": text})

    def _find(self, request: Request) -> Job | None:
        wanted = request.query.get("job")
        return next((job for job in each_query(self._jobs()) if job.id == wanted), None)

    def _troubles(self) -> list[dict[str, Any]]:
        """Errors, warnings and records that were let go, the newest first.

        Each kind has a limit of its own: many records hide no error.
        """
        letters: list[dict[str, Any]] = []
        for job in each_query(self._jobs()):
            if isinstance(job, StreamJob):
                known = {"job": job.name, "level": "warning", "event": "let go"}
                letters += [{**known, **each} for each in job.monitor.notes()]
        letters.sort(key=_time)
        return sorted([*self._events.troubles, *letters[-_LETTERS:]], key=_time)[::-1]

    @cached_property
    def _plugins(self) -> list[dict[str, Any]]:
        from streamcore.registry import installed

        names = ("kind", "identifier", "status", "distribution", "version", "reason")
        claims = [*installed().claims, *installed().commands]
        return [{name: str(getattr(claim, name)) for name in names} for claim in claims]


def _time(trouble: Mapping[str, Any]) -> str:
    return str(trouble["time"])


def _job(job: Job) -> dict[str, Any]:
    found = job.metrics()
    look = progress_of(found)
    about = _about(job)
    lag = wording.lag(look)
    verdict = {"none": "up to date", "": "running" if found.status == "running" else found.status}
    return {
        "id": job.id,
        "metrics": found.to_json(),
        "lag": lag,
        "topics": wording.topics(look)[:_TOPICS],
        "verdict": verdict.get(lag, lag) if found.status == "running" else found.status,
        "error": job.error,
        "checkpoint": about.checkpoint,
        "tables": [vars(table) for table in about.tables],
    }


def _about(job: Job | None) -> About:
    if isinstance(job, StreamJob):
        return job.monitor.about
    return job.about if isinstance(job, BatchJob) else About()


def _json(value: Any) -> Answer:
    body = json.dumps(SECRETS.clean(value), default=str).encode()
    return Answer(body, "application/json")


def _file(name: str) -> Route:
    def answer(request: Request) -> Answer:
        body = (files(__package__) / "page" / name).read_bytes()
        return Answer(body, _KINDS[name])

    return answer
