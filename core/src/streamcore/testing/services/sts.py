"""An STS endpoint that gives out temporary credentials: moto, for this one service."""

from __future__ import annotations

import importlib.util
import sys
from typing import Self

from .process import HOST, Process, Service, ServiceError, Workspace, accepts_connections, free_port


class Sts(Service):
    """Answers AssumeRole, AssumeRoleWithWebIdentity and GetCallerIdentity."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._workspace: Workspace | None = None
        self.port = 0

    @property
    def endpoint_url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def start(self) -> Self:
        if importlib.util.find_spec("moto") is None:
            raise ServiceError("moto is needed: pip install 'streamcore[testing]'")
        self._workspace = Workspace("sts")
        self.port = free_port()
        self._process = Process(
            "the STS endpoint",
            [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(self.port)],
            self._workspace.path / "sts.log",
            cwd=self._workspace.path,
        )
        self._process.wait_until(lambda: accepts_connections(self.port))
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
        if self._workspace is not None:
            self._workspace.remove()
