"""A Spark Connect server: a Spark of its own that clients reach through one port, on loopback."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from .downloads import wheels
from .process import (
    HOST,
    Process,
    Service,
    ServiceError,
    Workspace,
    accepts_connections,
    free_port,
)

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
CLIENT = wheels(
    f"spark-connect-client-1-py{sys.version_info[0]}{sys.version_info[1]}",
    "googleapis-common-protos==1.76.0",
    "grpcio==1.85.1",
    "grpcio-status==1.85.1",
    "numpy==2.4.6",
    "pandas==2.3.3",
    "zstandard==0.25.0",
    megabytes=60,
)
"""What PySpark's client needs. Apart from everything else: where pandas can be imported, Arrow
imports it in every process, and a package of ours that needed it would not be found out."""


class SparkConnect(Service):
    """Plans and runs what clients send; `url` is what a client's session connects to."""

    def __init__(self, config: Mapping[str, str] | None = None) -> None:
        self._config = dict(config or {})
        self._port = 0
        self._workspace: Workspace | None = None
        self._process: Process | None = None

    @property
    def url(self) -> str:
        return f"sc://{HOST}:{self._port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to be a client, in which no Spark may run."""
        path = [str(CLIENT.path()), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}

    def start(self) -> Self:
        try:
            import pyspark

            from streamcore.spark.interpreter import worker_environment
            from streamcore.spark.session import defaults
        except ModuleNotFoundError:
            raise ServiceError("PySpark is needed: pip install 'streamcore[spark]'") from None
        self._workspace = Workspace("spark-connect")
        self._port = free_port()
        home = Path(pyspark.__file__).parent
        workers = worker_environment("local", {})
        settings = {
            **defaults(python=workers["PYSPARK_PYTHON"]),
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.sql.warehouse.dir": str(self._workspace.path / "warehouse"),
            "spark.ui.enabled": "false",
            **self._config,
        }
        given = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        submit = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--class", SERVER]
        self._process = Process(
            "Spark Connect",
            [*submit, *given],
            self._workspace.path / "connect.log",
            cwd=self._workspace.path,
            env={**self.environment, **workers, "SPARK_HOME": str(home)},
        )
        self._process.wait_until(lambda: accepts_connections(self._port))
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
        if self._workspace is not None:
            self._workspace.remove()
