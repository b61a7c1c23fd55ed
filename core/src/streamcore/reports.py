"""The way back from tasks to the driver: what each task read, rejected and wrote.

Spark gives Python sources no channel to the driver. A job that wants the counts opens a
`Collector` and sends its address along with the table; each task reports once, when it ends.
Losing a report never fails a task, and a task that is tried again replaces its report.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import socketserver
import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

_SECONDS = 2.0


@dataclass(frozen=True)
class Report:
    """What one task did for one table; `side` is 'source' or 'sink'."""

    table: str
    side: str
    query: str
    batch: int
    task: int
    counts: Mapping[str, float] = field(default_factory=dict)

    @property
    def slot(self) -> tuple[str, str, str, int, int]:
        return self.table, self.side, self.query, self.batch, self.task


def send(address: str, report: Report) -> bool:
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
        self._reports: dict[tuple[str, str, str, int, int], Report] = {}
        self._settled: defaultdict[tuple[str, str], defaultdict[str, float]] = defaultdict(
            lambda: defaultdict(float)
        )
        collector = self

        class Handler(socketserver.StreamRequestHandler):
            timeout = _SECONDS

            def handle(self) -> None:
                collector._take(self.rfile.readline(65536))

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 256  # every task of a large stage may report at once

        self._server = Server((host, 0), Handler)
        self.address = f"{host}:{self._server.server_address[1]}/{self._token}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def totals(self, table: str, side: str) -> dict[str, float]:
        """Everything reported for one side of one table so far, added up."""
        with self._lock:
            total = defaultdict(float, self._settled[table, side])
            for report in self._reports.values():
                if (report.table, report.side) == (table, side):
                    for name, count in report.counts.items():
                        total[name] += count
        return dict(total)

    def sides(self) -> list[tuple[str, str]]:
        """The (table, side) pairs anything was reported for."""
        with self._lock:
            return sorted({(r.table, r.side) for r in self._reports.values()} | set(self._settled))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _take(self, line: bytes) -> None:
        try:
            plain = json.loads(line)
            if not hmac.compare_digest(str(plain.pop("token")), self._token):
                return
            report = Report(**plain)
        except (ValueError, TypeError, KeyError, AttributeError):
            return  # not one of ours; a stranger's bytes must not disturb the job
        with self._lock:
            self._reports[report.slot] = report
            self._settle(report)

    def _settle(self, newest: Report) -> None:
        """Add batches that can no longer be retried to the totals, so that memory stays flat."""
        old = [
            slot
            for slot, report in self._reports.items()
            if slot[:3] == newest.slot[:3] and report.batch < newest.batch - 1
        ]
        for slot in old:
            report = self._reports.pop(slot)
            for name, count in report.counts.items():
                self._settled[report.table, report.side][name] += count
