"""A real schema registry that speaks the Confluent API: Apicurio, in memory."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Self

from .downloads import archive
from .process import HOST, Detached, Process, Service, ServiceError, Workspace, free_port, java

VERSION = "3.0.9"
APP = archive(
    f"apicurio-registry-{VERSION}",
    f"io.apicurio:apicurio-registry-app:{VERSION}:all@tar.gz",
    megabytes=109,
)


class RegistryAddress:
    """A schema registry by its URL."""

    @property
    def url(self) -> str:
        """What clients of the Confluent API take as `schema.registry.url`."""
        raise NotImplementedError


class ExistingRegistry(RegistryAddress):
    """A schema registry somebody else runs."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def url(self) -> str:
        return self._url


class SchemaRegistry(RegistryAddress, Service):
    """A schema registry; it forgets everything when it stops."""

    def __init__(self, *, detached: Detached | None = None) -> None:
        self._detached = detached
        self._process: Process | None = None
        self._workspace: Workspace | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return api_url(self.port)

    @property
    def process(self) -> Process:
        if self._process is None:
            raise ServiceError("the schema registry is not running.")
        return self._process

    @property
    def pids(self) -> list[int]:
        return [self.process.pid]

    def start(self) -> Self:
        app = APP.path()
        self._workspace = self._workspace or Workspace("registry", self._detached)
        self.port = self.port or free_port(self._detached.port if self._detached else None)
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
            detached=self._detached is not None,
        )
        self._process.wait_until(lambda: answers(self.url))
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


def api_url(port: int) -> str:
    """Where Apicurio speaks the Confluent API."""
    return f"http://{HOST}:{port}/apis/ccompat/v7"


def answers(url: str) -> bool:
    """Whether a schema registry lists its subjects."""
    try:
        with urllib.request.urlopen(f"{url}/subjects", timeout=5):  # noqa: S310 - our own address
            return True
    except (urllib.error.URLError, OSError):
        return False
