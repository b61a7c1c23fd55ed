"""The job under test: a streaming query from topic to topic in a process that can be killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..services.listening import family, session_of

JOB = f"{__package__}.job"


class CopyEnded(Exception):  # noqa: N818 - says what happened
    """The job has ended by itself; its last words are the message."""


class Copy:
    """A query that copies a ledger exactly once; each `start` goes on from its checkpoint."""

    def __init__(self, servers: str, source: str, target: str, home: Path) -> None:
        self.target, self.home = target, home
        self.checkpoint = home / "checkpoint"
        self.source = {
            "connector": "kafka",
            "properties.bootstrap.servers": servers,
            "topic": source,
            "format": "json",
            "scan.startup.mode": "earliest-offset",
        }
        self.sink = {
            "connector": "kafka",
            "properties.bootstrap.servers": servers,
            "topic": target,
            "format": "json",
            "key.format": "raw",
            "key.fields": "key",
            "sink.delivery-guarantee": "exactly-once",
            "sink.transactional-id-prefix": f"copy-{target}",
        }
        self.spark = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.log.level": "ERROR",
            "spark.ui.enabled": "false",
            "spark.driver.memory": "700m",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # starts sooner
            "spark.local.dir": str(home / "local"),
        }
        self.master = "local[2]"
        self.wrapper: list[str] = []
        """Words before the command, such as those that enter a namespace."""
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The one started last."""
        return self.processes[-1]

    @property
    def leader(self) -> int:
        """The process below which its JVM and its workers run."""
        return self.process.pid

    def workers(self) -> list[int]:
        """The processes that run its tasks: its JVM's Python daemon and the daemon's children.

        Children of a daemon that was killed go on; only their session still tells whose they are.
        """
        found = []
        for pid in {*family(self.leader), *session_of(self.leader)}:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if b"pyspark.daemon\0pyspark.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    @property
    def log(self) -> Path:
        """What the one started last says."""
        return self.home / f"run-{len(self.processes)}.log"

    def start(self, failpoint: str = "", *, once: bool = False) -> None:
        """Start a process; `once` ends it when it has read what is there."""
        self.home.mkdir(parents=True, exist_ok=True)
        number = len(self.processes) + 1
        plan = self.home / f"run-{number}.json"
        plan.write_text(json.dumps(self.plan(once=once)))
        with (self.home / f"run-{number}.log").open("wb") as output:
            process = subprocess.Popen(
                [*self.wrapper, sys.executable, "-m", JOB, str(plan)],
                env={**os.environ, "STREAMCORE_FAILPOINT": failpoint},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)

    def plan(self, *, once: bool = False) -> Mapping[str, Any]:
        """What the process is told; `job.start` takes it as well."""
        return {
            "once": once,
            "master": self.master,
            "spark": self.spark,
            "source": self.source,
            "sink": self.sink,
            "checkpoint": str(self.checkpoint),
        }

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def check(self) -> None:
        """Raise if it has ended."""
        if self.process.poll() is not None:
            raise CopyEnded(f"status {self.process.returncode}: {self.said()[-3000:]}")

    def wait(self, timeout: float = 300) -> int:
        """Wait for its end; the exit status."""
        return self.process.wait(timeout)

    def wait_batch(self, timeout: float = 300) -> None:
        """Wait until it has committed a batch."""
        deadline = time.monotonic() + timeout
        while "batch " not in self.said():
            self.check()
            assert time.monotonic() < deadline, f"no batch in {timeout:g} s: {self.said()[-2000:]}"
            time.sleep(0.1)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the driver: its Python and its JVM. Workers notice that it is gone."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(30)
