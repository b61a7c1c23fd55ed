"""Long-lived processes that run jobs when told: one per side, warm between runs."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
import tempfile
import threading
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from .measure import BenchmarkError, Run
from .peers import flink, spark_kafka
from .processes import Family, watched

LIMIT = 900.0
"""Seconds after which a job is given up, and its process ended: a sitting ends by itself."""
PATIENCE = 20.0
"""Seconds for an idle side to end in order."""
_LAST_WORDS = 4_000
"""Bytes of what a side wrote that are shown when it fails; nobody sees them otherwise."""
_JAVA = [
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
]


class _Side:
    """A process that says `ready`, and answers a line with a line."""

    def __init__(self, command: list[str]) -> None:
        self._written = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - lives as long as the process
        self._process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=self._written, text=True)
        self._busy = True
        try:
            self._expect("ready")
            self._busy = False
        except BaseException:  # nobody else could end it
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End it and all that it has started: in order if it is idle, else at once."""
        family = Family(self._process.pid) if self.alive else None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it ends by itself just now
            self._process.stdin.close()
        if family:
            family.end(0 if self._busy else PATIENCE)
        self._process.wait()

    def _answer(self, question: str, *starts: str) -> str:
        assert self._process.stdin is not None
        limit = threading.Timer(LIMIT, self.close)
        limit.start()
        self._busy = True
        try:
            self._process.stdin.write(question + "\n")
            self._process.stdin.flush()
            answer = self._expect(*starts)
        except BrokenPipeError:
            raise self._failure(f"a side ended with status {self._process.wait()}") from None
        finally:
            limit.cancel()
        self._busy = False
        return answer

    def _expect(self, *starts: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(starts):
                return line
        raise self._failure(f"a side ended with status {self._process.wait()}")

    def _failure(self, reason: str) -> BenchmarkError:
        """An error with this reason, after what the side wrote last was shown."""
        self._written.seek(max(0, self._written.seek(0, os.SEEK_END) - _LAST_WORDS))
        print(self._written.read().decode(errors="replace"), file=sys.stderr)
        return BenchmarkError(reason)


class SparkSide(_Side):
    """A Spark session in a process of its own; `peer` gives it Spark's own Kafka connector."""

    def __init__(self, cores: int, *, peer: bool) -> None:
        command = [sys.executable, "-m", "benchmarks.worker", str(cores)]
        super().__init__(command + ([spark_kafka()] if peer else []))
        self._idle_mb = 0.0 if peer else None  # a peer has no Python workers

    def run(self, job: str, **arguments: Any) -> Run:
        """Run one of the functions of `benchmarks.jobs` there."""
        if self._idle_mb is None:
            self._idle_mb = 0.0
            self._idle_mb = self.run("idle").peak_mb
        with watched(self._process.pid) as cost:
            answer = self._answer(json.dumps({"job": job, "arguments": arguments}), "{")
        found = json.loads(answer)
        if "failed" in found:
            raise self._failure(f"{job} {arguments}: {found['failed']}")
        idle = self._idle_mb if cost.peak_worker_mb else 0.0
        return Run(cpu=cost.cpu, peak_mb=cost.peak_worker_mb, idle_mb=idle, **found)


class FlinkSide(_Side):
    """Flink SQL in one JVM."""

    def __init__(self, cores: int) -> None:
        source = Path(__file__).parent / "java" / "RunSql.java"
        command = ["java", *_JAVA, "-Xmx4g", f"-Dparallelism={cores}"]
        command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
        command += ["-cp", ":".join(f"{folder}/*" for folder in flink()), str(source)]
        super().__init__(command)

    def run(self, script: str, rows: int) -> Run:
        """Run a script of statements, each ending in a semicolon and a new line.

        It is told how many rows it is to read; what a SELECT among the statements found becomes
        the checksum.
        """
        with watched(self._process.pid) as cost:
            answer = self._answer(base64.b64encode(script.encode()).decode(), "took", "failed")
        if answer.startswith("failed"):
            raise self._failure(f"Flink: {answer}")
        _, seconds, *found = answer.split()
        return Run(seconds=float(seconds), rows=rows, cpu=cost.cpu, checksum=",".join(found))
