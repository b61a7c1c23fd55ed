"""A standalone Spark cluster: a master and workers as processes of their own, on loopback."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from . import spark_classes
from .process import (
    HOST,
    Process,
    Service,
    ServiceError,
    Workspace,
    accepts_connections,
    free_port,
)

DEPLOY = "org.apache.spark.deploy"
REGISTERED = "Successfully registered with master"


class SparkCluster(Service):
    """Workers that run executors apart from the driver; `master` is what a session connects to.

    Workers `apart` have a loopback address each, which makes them hosts of their own to Spark: it
    never runs two attempts of a task on one host. Not every system answers to more than 127.0.0.1.
    `environments` are what some workers, by number, have in their environment beside the usual.
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        cores: int = 1,
        memory: str = "1g",
        apart: bool = False,
        environments: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        self._count, self._cores, self._memory = workers, cores, memory
        self._apart, self._environments = apart, environments or {}
        self._port = 0
        self._workspace: Workspace | None = None
        self._master: Process | None = None
        self.workers: list[Process] = []

    @property
    def master(self) -> str:
        return f"spark://{HOST}:{self._port}"

    def start(self) -> Self:
        self._workspace = Workspace("spark")
        self._port = free_port()
        at = ["--port", str(self._port), "--webui-port", str(free_port())]
        self._master = self._run("master", HOST, "master.Master", *at)
        self._master.wait_until(lambda: accepts_connections(self._port))
        self.workers = [self._worker(number) for number in range(self._count)]
        for worker in self.workers:
            _wait_registered(worker)
        return self

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()  # in order: it ends its executors
        if self._master is not None:
            self._master.kill()
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
        _wait_registered(self.workers[number])

    def _worker(self, number: int) -> Process:
        size = ["--cores", str(self._cores), "--memory", self._memory]
        at = ["--webui-port", str(free_port())]
        host = f"127.0.0.{number + 1}" if self._apart else HOST
        extra = self._environments.get(number, {})
        name = f"worker-{number}"
        return self._run(name, host, "worker.Worker", *at, *size, self.master, **extra)

    def _run(
        self, name: str, host: str, main_class: str, *arguments: str, **environment: str
    ) -> Process:
        try:
            import pyspark
        except ModuleNotFoundError:
            raise ServiceError("PySpark is needed: pip install 'streamcore[spark]'") from None
        assert self._workspace is not None
        home = Path(pyspark.__file__).parent
        work = self._workspace.path / name
        log = self._workspace.path / f"{name}.log"
        work.mkdir(exist_ok=True)
        log.unlink(missing_ok=True)
        return Process(
            f"Spark's {name}",
            [str(home / "bin/spark-class"), f"{DEPLOY}.{main_class}", "--host", host, *arguments],
            log,
            cwd=work,
            env={
                "SPARK_HOME": str(home),
                "SPARK_LOCAL_IP": host,
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_DAEMON_JAVA_OPTS": spark_classes.options(),
                "SPARK_LAUNCHER_OPTS": spark_classes.QUICK,
                "SPARK_WORKER_DIR": str(work),
                "PYSPARK_PYTHON": sys.executable,  # else another python3 runs the tasks
                **environment,
            },
        )


def _wait_registered(worker: Process) -> None:
    worker.wait_until(lambda: REGISTERED in worker.log.read_text(errors="replace"))


def _children(pid: int) -> list[int]:
    """Java forks from any of its threads, and the kernel lists children by thread."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for each in lists for child in each.read_text().split()]


def _is_executor(pid: int) -> bool:
    try:
        return b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False
