"""The way back from tasks to the driver: what each task read, rejected, wrote and said.

Spark gives Python sources no channel to the driver. A process that wants the counts calls
`listen`; from then on its address travels along with every table, and each task reports once,
when it ends. Losing a report never fails a task, a task that is tried again replaces its report,
and so does a batch that is repeated by a later run of its query.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import socket
import socketserver
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace

_SECONDS = 2.0
_LONGEST = 65536
_NOTES = 50

Slot = tuple[str, str, str, int, int, int]
"""A table, its side, a query, a batch, a stage and a task."""
Side = tuple[str, str, str]
"""A query, a table, and 'source' or 'sink'."""
Note = tuple[str, int, str, float]
"""A table, a batch, what people should read, and when it came, in seconds since 1970."""


@dataclass(frozen=True)
class Report:
    """What one task did for one table; `side` is 'source' or 'sink'."""

    table: str
    side: str
    query: str
    batch: int
    task: int
    counts: Mapping[str, float] = field(default_factory=dict)
    """What is added up over tasks and batches."""
    marks: Mapping[str, float] = field(default_factory=dict)
    """What is true of this batch only; of its tasks, the largest counts."""
    notes: Sequence[str] = ()
    """What people should read: a few of the records that were let go, and why."""
    stage: int = 0
    """Tells tasks of one number apart, where a query reads a table twice."""
    attempt: int | None = None
    """Unique for each try of a task; what one try tells of several parts is added up."""
    run: str = ""
    """Changes with every start of the query."""

    @property
    def slot(self) -> Slot:
        return self.table, self.side, self.query, self.batch, self.stage, self.task

    def joined(self, earlier: Report | None) -> Report:
        """Both, if they are of one try of the task; else this one."""
        if earlier is None or self.attempt is None or self.attempt != earlier.attempt:
            return self
        counts = dict(earlier.counts)
        _add(counts, self.counts)
        return replace(self, counts=counts)


@dataclass
class Heard:
    """All reports of one side of one table."""

    counts: dict[str, float] = field(default_factory=dict)
    marks: dict[str, float] = field(default_factory=dict)
    """Those of the latest batch that had any."""


@dataclass(frozen=True)
class Word:
    """What a logger said in another process; whoever listens says it again, with these ids."""

    logger: str
    level: int
    text: str
    job: str = ""
    query: str = ""
    batch: int | None = None

    def say(self) -> None:
        logger = logging.getLogger(self.logger)
        ids = {"job": self.job, "query": self.query, "batch": self.batch}
        told = (self.logger, self.level, "", 0, "%s", (self.text,), None)
        logger.handle(logger.makeRecord(*told, extra=ids))


def send(address: str, report: Report | Word) -> bool:
    """Deliver a report to `host:port/token`; False when nobody wanted it or could be reached."""
    if not address:
        return False
    place, _, token = address.partition("/")
    host, _, port = place.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), _SECONDS) as connection:
            line = json.dumps({"token": token, **asdict(report)}) + "\n"
            connection.sendall(line.encode())
    except OSError:
        return False
    return True


class Collector:
    """Listens on the driver; on loopback unless told which host the executors can reach."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._token = secrets.token_hex(16)
        self._lock = threading.Lock()
        self._reports: dict[Slot, Report] = {}
        self._settled: defaultdict[Side, defaultdict[str, float]] = defaultdict(
            lambda: defaultdict(float)
        )
        self._marks: dict[Side, tuple[int, dict[str, float]]] = {}
        self._notes: defaultdict[str, deque[Note]] = defaultdict(lambda: deque(maxlen=_NOTES))
        collector = self

        class Handler(socketserver.StreamRequestHandler):
            timeout = _SECONDS

            def handle(self) -> None:
                collector._take(self.rfile.readline(_LONGEST))

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 256  # every task of a large stage may report at once

        self._server = Server((host, 0), Handler)
        self.address = f"{host}:{self._server.server_address[1]}/{self._token}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def totals(self, table: str, side: str, query: str | None = None) -> dict[str, float]:
        """Everything reported for one side of one table so far, added up."""
        total: defaultdict[str, float] = defaultdict(float)
        with self._lock:
            for (told, name, end), counts in self._settled.items():
                if (name, end) == (table, side) and query in (None, told):
                    _add(total, counts)
            for report in self._reports.values():
                same = (report.table, report.side) == (table, side)
                if same and query in (None, report.query):
                    _add(total, report.counts)
        return dict(total)

    def heard(self, query: str) -> dict[tuple[str, str], Heard]:
        """What the tasks of a query said, by table and side."""
        found: dict[tuple[str, str], Heard] = {}
        with self._lock:
            for (told, table, side), counts in self._settled.items():
                if told == query:
                    _add(found.setdefault((table, side), Heard()).counts, counts)
            reports = [each for each in self._reports.values() if each.query == query]
            marks = {side: dict(kept) for side, (_, kept) in self._marks.items()}
        for report in reports:
            _add(found.setdefault((report.table, report.side), Heard()).counts, report.counts)
        for (table, side), heard in found.items():
            heard.marks = marks.get((query, table, side), {})
        return found

    def notes(self, query: str) -> list[Note]:
        """The last notes of a query's tasks, oldest first."""
        with self._lock:
            return list(self._notes[query])

    def sides(self) -> list[tuple[str, str]]:
        """The (table, side) pairs anything was reported for."""
        with self._lock:
            settled = {(table, side) for _, table, side in self._settled}
            return sorted({(r.table, r.side) for r in self._reports.values()} | settled)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _take(self, line: bytes) -> None:
        try:
            plain = json.loads(line)
            if not hmac.compare_digest(str(plain.pop("token")), self._token):
                return
            if "logger" in plain:
                return Word(**plain).say()
            report = Report(**plain)
        except (ValueError, TypeError, KeyError, AttributeError):
            return  # not one of ours; a stranger's bytes must not disturb the job
        with self._lock:
            self._forget_other_runs(report)
            self._reports[report.slot] = report.joined(self._reports.get(report.slot))
            self._notes[report.query].extend(
                (report.table, report.batch, note, time.time()) for note in report.notes
            )
            self._settle(report)
            self._mark(report)

    def _forget_other_runs(self, newest: Report) -> None:
        """A batch that is repeated has other stages, and is not to be counted twice."""
        for slot, report in list(self._reports.items()):
            if slot[:4] == newest.slot[:4] and report.run != newest.run:
                del self._reports[slot]

    def _settle(self, newest: Report) -> None:
        """Add batches that can no longer be retried to the totals, so that memory stays flat."""
        old = [
            slot
            for slot, report in self._reports.items()
            if slot[:3] == newest.slot[:3] and report.batch < newest.batch - 1
        ]
        for slot in old:
            report = self._reports.pop(slot)
            _add(self._settled[report.query, report.table, report.side], report.counts)

    def _mark(self, report: Report) -> None:
        side = (report.query, report.table, report.side)
        batch, kept = self._marks.get(side, (-1, {}))
        if report.marks and report.batch >= batch:
            before = kept if report.batch == batch else {}
            largest = {
                name: max(mark, before.get(name, mark)) for name, mark in report.marks.items()
            }
            self._marks[side] = (report.batch, {**before, **largest})


def _add(total: dict[str, float], counts: Mapping[str, float]) -> None:
    for name, count in counts.items():
        total[name] = total.get(name, 0) + count


_job: ContextVar[str] = ContextVar("job", default="")


@contextmanager
def on_behalf_of(name: str) -> Iterator[None]:
    """Tables that are sent to Spark inside of this are read and written for a job of this name."""
    token = _job.set(name)
    try:
        yield
    finally:
        _job.reset(token)


def job() -> str:
    """The job that tables are sent to Spark for; empty outside of `on_behalf_of`."""
    return _job.get()


_listening: list[Collector] = []
_opening = threading.Lock()


def listen(host: str = "127.0.0.1") -> Collector:
    """This process's own collector, opened by the first call."""
    with _opening:
        if not _listening:
            _listening.append(Collector(host))
        return _listening[0]


def listening() -> Collector | None:
    """This process's collector, if it has opened one."""
    return _listening[0] if _listening else None


def address() -> str:
    """Where tasks report to this process; empty when it does not listen."""
    return _listening[0].address if _listening else ""
