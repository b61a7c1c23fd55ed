"""A real schema registry that speaks the Confluent API: Apicurio, in memory."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

from .downloads import archive
from .process import HOST, Process, Service, ServiceError, Workspace, free_port, java

VERSION = "3.0.9"
APP = archive(
    f"apicurio-registry-{VERSION}",
    f"io.apicurio:apicurio-registry-app:{VERSION}:all@tar.gz",
    megabytes=109,
)


class SchemaRegistry(Service):
    """A schema registry; it forgets everything when it stops."""

    def __init__(self, *, home: Path | None = None, detached: bool = False) -> None:
        self._home, self._detached = home, detached
        self._process: Process | None = None
        self._workspace: Workspace | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """What clients of the Confluent API take as `schema.registry.url`."""
        return f"http://{HOST}:{self.port}/apis/ccompat/v7"

    @property
    def process(self) -> Process:
        if self._process is None:
            raise ServiceError("the schema registry is not running.")
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    def start(self) -> Self:
        app = APP.path()
        self._workspace = self._workspace or Workspace("registry", self._home)
        self.port = self.port or free_port()
        where = {"quarkus.http.host": HOST, "quarkus.http.port": str(self.port)}
        self._process = Process(
            "the schema registry",
            [
                *(java(), "-Xmx512m", "-XX:TieredStopAtLevel=1"),
                *(f"-D{key}={value}" for key, value in where.items()),
                *("-jar", str(next(app.glob("*-runner.jar")))),
            ],
            self._workspace.path / "registry.log",
            cwd=self._workspace.path,
            detached=self._detached,
        )
        self._process.wait_until(self._answers)
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()  # all it has is in memory
        if self._workspace is not None:
            self._workspace.remove()
            self._workspace = None

    def kill(self) -> None:
        self.process.kill()

    def pause(self) -> None:
        self.process.pause()

    def resume(self) -> None:
        self.process.resume()

    def restart(self) -> None:
        """Come back at the same address, empty."""
        self.process.kill()
        self.start()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=5):  # noqa: S310 - our own
                return True
        except (urllib.error.URLError, OSError):
            return False
