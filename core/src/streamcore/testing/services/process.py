"""Child processes that are ended by their own id and never outlive us."""

from __future__ import annotations

import atexit
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from streamcore.errors import StreamcoreError

from . import watchdog

HOST = "127.0.0.1"


class ServiceError(StreamcoreError):
    """A service could not be had: not downloaded, not started, or it died."""


def java() -> str:
    """The java program: of JAVA_HOME if that is set, else the one on PATH."""
    home = os.environ.get("JAVA_HOME")
    candidate = f"{home}/bin/java" if home else "java"
    if found := shutil.which(candidate):
        return found
    where = f"JAVA_HOME is '{home}', but has no bin/java" if home else "found no 'java' on PATH"
    raise ServiceError(f"Java 17 or newer is needed to run this service; {where}.")


def free_port(preferred: int | None = None) -> int:
    """A port nobody listens on: the preferred one if it is free, else a random one.

    Random ones lie below the range that the system hands out to outgoing connections.
    """
    candidates = [preferred] if preferred else []
    candidates += [random.randint(15_000, 32_000) for _ in range(200)]
    for port in candidates:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            return port
    raise ServiceError(f"found no free port between 15000 and 32000 on {HOST}.")


class _Watchdog:
    """The one helper process that cleans up after us should we be killed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0

    def tell(self, line: str) -> None:
        with self._lock:
            if self._process is None or self._owner != os.getpid():
                self._process = subprocess.Popen(
                    [sys.executable, "-I", watchdog.__file__],
                    stdin=subprocess.PIPE,
                    text=True,
                    start_new_session=True,  # a signal to our group must not take it down with us
                )
                self._owner = os.getpid()
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()


_watchdog = _Watchdog()


@dataclass(frozen=True)
class Detached:
    """For a service that outlives us: where its files stay, and its port if that is free."""

    home: Path
    port: int | None = None


class Workspace:
    """A directory for a service's files, removed with the service or with us unless detached."""

    def __init__(self, prefix: str, detached: Detached | None = None) -> None:
        self._kept = detached is not None
        if detached is not None:
            detached.home.mkdir(parents=True, exist_ok=True)
            self.path = detached.home
        else:
            self.path = Path(tempfile.mkdtemp(prefix=f"streamcore-{prefix}-"))
            _watchdog.tell(f"+{self.path}")

    def remove(self) -> None:
        if not self._kept:
            shutil.rmtree(self.path, ignore_errors=True)
            _watchdog.tell(f"-{self.path}")


class Process:
    """One running program with its log file."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        detached: bool = False,
    ) -> None:
        self.name, self.log = name, log
        self._detached = detached
        self._paused = False
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                start_new_session=True,  # Ctrl-C is for us; the service is ended in order
            )
        if not detached:
            _watchdog.tell(f"+{self.pid}")
            atexit.register(self.kill)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def wait_until(self, ready: Callable[[], bool], timeout: float = 120) -> None:
        """Return once `ready()` holds; raise with the log if the process dies or hangs."""
        deadline = time.monotonic() + timeout
        try:
            while not ready():
                if not self.running:
                    raise ServiceError(f"{self.name} ended: status {self._popen.returncode}.")
                if time.monotonic() > deadline:
                    raise ServiceError(f"{self.name} was not ready in {timeout:g} s.")
                time.sleep(0.05)
        except ServiceError as error:
            self.kill()
            raise ServiceError(f"{error} Its log:\n{self.excerpt()}") from None
        except BaseException:
            self.kill()
            raise

    def excerpt(self) -> str:
        """Of the log, the first trouble and the end: what one would look for."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        trouble = (i for i, line in enumerate(lines) if "ERROR" in line or "Exception" in line)
        first = next(trouble, len(lines))
        end = max(first + 10, len(lines) - 15)
        parts = [*lines[first : first + 10], *(["..."] if end > first + 10 else []), *lines[end:]]
        return "\n".join(f"  {line}" for line in (parts or lines[-15:]))

    def stop(self, timeout: float = 20) -> None:
        """Ask it to end in order; kill it if it does not."""
        self.resume()
        if self.running:
            self._popen.terminate()
            try:
                self._popen.wait(timeout)
            except subprocess.TimeoutExpired:
                self._popen.kill()
        self._forget()

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        if self.running:
            self._popen.kill()
        self._forget()

    def pause(self) -> None:
        """Freeze it: connections stay open, nothing answers."""
        self._popen.send_signal(signal.SIGSTOP)
        self._paused = True

    def resume(self) -> None:
        if self._paused:
            self._popen.send_signal(signal.SIGCONT)
            self._paused = False

    def _forget(self) -> None:
        self._popen.wait()
        if not self._detached:
            _watchdog.tell(f"-{self.pid}")
            atexit.unregister(self.kill)


class Service:
    """What every service shares: a context manager over start() and stop()."""

    def start(self) -> Self:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:  # also Ctrl-C: what half of it runs must end
            self.stop()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def accepts_connections(port: int, host: str = HOST) -> bool:
    """Whether something listens there."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0
