"""A standalone Spark cluster: a master and workers as processes of their own, on loopback."""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path
from typing import Self

from .process import HOST, Process, Service, ServiceError, Workspace, free_port

DEPLOY = "org.apache.spark.deploy"


class SparkCluster(Service):
    """Workers that run executors apart from the driver; `master` is what a session connects to."""

    def __init__(self, workers: int = 2, *, cores: int = 1, memory: str = "1g") -> None:
        self._count, self._cores, self._memory = workers, cores, memory
        self._port, self._web = 0, 0
        self._workspace: Workspace | None = None
        self._master: Process | None = None
        self.workers: list[Process] = []

    @property
    def master(self) -> str:
        return f"spark://{HOST}:{self._port}"

    def start(self) -> Self:
        self._workspace = Workspace("spark")
        self._port, self._web = free_port(), free_port()
        at = ["--port", str(self._port), "--webui-port", str(self._web)]
        self._master = self._run("master", "master.Master", "--host", HOST, *at)
        self._master.wait_until(lambda: self._alive() == 0)
        self.workers = [self._worker(number) for number in range(self._count)]
        self._master.wait_until(lambda: self._alive() == self._count)
        return self

    def stop(self) -> None:
        for process in (*self.workers, self._master):
            if process is not None:
                process.stop()
        if self._workspace is not None:
            self._workspace.remove()

    def executors(self) -> list[int]:
        """The pids of the running executors, children of the workers."""
        running = [worker.pid for worker in self.workers if worker.running]
        return [child for pid in running for child in _children(pid) if _is_executor(child)]

    def restart_worker(self, number: int) -> None:
        """Bring back a worker, after a kill or none."""
        self.workers[number].kill()
        self.workers[number] = self._worker(number)
        master = self._master
        assert master is not None
        master.wait_until(lambda: self._alive() >= sum(w.running for w in self.workers))

    def _worker(self, number: int) -> Process:
        size = ["--cores", str(self._cores), "--memory", self._memory]
        at = ["--host", HOST, "--webui-port", str(free_port())]
        return self._run(f"worker-{number}", "worker.Worker", *at, *size, self.master)

    def _run(self, name: str, main_class: str, *arguments: str) -> Process:
        try:
            import pyspark
        except ModuleNotFoundError:
            raise ServiceError("PySpark is needed: pip install 'streamcore[spark]'") from None
        assert self._workspace is not None
        home = Path(pyspark.__file__).parent
        work = self._workspace.path / name
        work.mkdir(exist_ok=True)
        return Process(
            f"Spark's {name}",
            [str(home / "bin" / "spark-class"), f"{DEPLOY}.{main_class}", *arguments],
            self._workspace.path / f"{name}.log",
            cwd=work,
            env={
                "SPARK_HOME": str(home),
                "SPARK_LOCAL_IP": HOST,
                "SPARK_WORKER_DIR": str(work),
                "PYSPARK_PYTHON": sys.executable,  # else another python3 runs the tasks
            },
        )

    def _alive(self) -> int:
        """How many workers the master knows; -1 while it does not answer."""
        try:
            page = f"http://{HOST}:{self._web}/json/"
            with urllib.request.urlopen(page, timeout=5) as reply:
                return int(json.load(reply)["aliveworkers"])
        except (OSError, ValueError, KeyError):
            return -1


def _children(pid: int) -> list[int]:
    """Java forks from any of its threads, and the kernel lists children by thread."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for each in lists for child in each.read_text().split()]


def _is_executor(pid: int) -> bool:
    try:
        return b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False
