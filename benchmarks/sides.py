"""Long-lived processes that run jobs when told: one per side, warm between runs."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .measure import Run
from .peers import flink, spark_kafka
from .processes import watched

_JAVA = [
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
]


class SparkSide:
    """A Spark session in a process of its own; `peer` gives it Spark's own Kafka connector."""

    def __init__(self, cores: int, *, peer: bool) -> None:
        command = [sys.executable, "-m", "benchmarks.worker", str(cores)]
        command += [spark_kafka()] if peer else []
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._expect("ready")

    def run(self, job: str, **arguments: Any) -> Run:
        """Run one of the functions of `benchmarks.jobs` there."""
        assert self._process.stdin is not None
        with watched(self._process.pid) as cost:
            self._process.stdin.write(json.dumps({"job": job, "arguments": arguments}) + "\n")
            self._process.stdin.flush()
            answer = self._expect("{")
        found = json.loads(answer)
        if "failed" in found:
            raise SystemExit(f"{job} {arguments}: {found['failed']}")
        return Run(cpu=cost.cpu, peak_mb=cost.peak_worker_mb, **found)

    def close(self) -> None:
        _end(self._process)

    def _expect(self, start: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(start):
                return line
        raise SystemExit(f"a Spark side ended with status {self._process.wait()}")


class FlinkSide:
    """Flink SQL in one JVM."""

    def __init__(self, cores: int) -> None:
        source = Path(__file__).parent / "java" / "RunSql.java"
        command = ["java", *_JAVA, "-Xmx4g", f"-Dparallelism={cores}"]
        command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
        command += ["-cp", f"{flink()}/*", str(source)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._expect("ready")

    def run(self, script: str, rows: int) -> Run:
        """Run a script of statements, each ending in a semicolon and a new line."""
        assert self._process.stdin is not None
        with watched(self._process.pid) as cost:
            self._process.stdin.write(base64.b64encode(script.encode()).decode() + "\n")
            self._process.stdin.flush()
            answer = self._expect("took", "failed")
        if answer.startswith("failed"):
            raise SystemExit(f"Flink: {answer}")
        return Run(seconds=float(answer.split()[1]), rows=rows, cpu=cost.cpu)

    def close(self) -> None:
        _end(self._process)

    def _expect(self, *starts: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(starts):
                return line
        raise SystemExit(f"Flink ended with status {self._process.wait()}")


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    deadline = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    if process.poll() is None:
        process.kill()
    process.wait()
