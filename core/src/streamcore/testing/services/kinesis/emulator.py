"""A Kinesis emulator on loopback, behind a proxy that fails on purpose."""

from __future__ import annotations

import sys
from importlib.resources import as_file, files
from typing import Self

from ..downloads import node, npm
from ..process import (
    HOST,
    Detached,
    Process,
    Service,
    ServiceError,
    Workspace,
    accepts_connections,
    free_port,
)
from .address import ACCOUNT, REGION, KinesisAddress
from .faults import Faults, Ledger
from .proxy import FaultProxy

EMULATOR = npm("kinesis-local", "0.6.2", megabytes=3)
CHANGES = (  # how long a stream is in a passing state; AWS takes longer, tests need not
    "CREATE_STREAM",
    "DELETE_STREAM",
    "DEREGISTER_STREAM_CONSUMER",
    "MERGE_SHARDS",
    "REGISTER_STREAM_CONSUMER",
    "SPLIT_SHARD",
    "UPDATE_SHARD_COUNT",
    "UPDATE_STREAM_MODE",
)


class KinesisEmulator(KinesisAddress, Service):
    """Streams in memory; `faults` says what goes wrong and `ledger` what happened."""

    def __init__(
        self,
        *,
        change_milliseconds: int = 100,
        shard_limit: int = 500,
        seed: int | None = None,
        detached: Detached | None = None,
    ) -> None:
        self._settings = {
            "LOG_LEVEL": "WARN",
            "SHARD_LIMIT": str(shard_limit),
            "AWS_ACCOUNT_ID": ACCOUNT,
            "AWS_REGION": REGION,
            **{f"{change}_DURATION": f"{change_milliseconds}ms" for change in CHANGES},
        }
        self._seed, self._detached = seed, detached
        self._process: Process | None = None
        self._proxy_process: Process | None = None
        self._proxy: FaultProxy | None = None
        self._workspace: Workspace | None = None
        self.direct_port = self.tls_port = 0

    @property
    def proxy(self) -> FaultProxy:
        if self._proxy is None:
            raise ServiceError("the Kinesis emulator is not running.")
        return self._proxy

    @property
    def process(self) -> Process:
        if self._process is None:
            raise ServiceError("the Kinesis emulator is not running.")
        return self._process

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in (self._process, self._proxy_process) if process]

    @property
    def endpoint_url(self) -> str:
        """The address for clients under test: through the fault proxy."""
        return self.proxy.url

    @property
    def direct_url(self) -> str:
        """The emulator itself, for the checks around a test."""
        return f"http://{HOST}:{self.direct_port}"

    @property
    def tls_url(self) -> str:
        """The emulator itself, with a certificate that nobody trusts."""
        return f"https://{HOST}:{self.tls_port}"

    @property
    def faults(self) -> Faults:
        return self.proxy.fate.faults

    @property
    def ledger(self) -> Ledger:
        return self.proxy.fate.ledger

    def start(self) -> Self:
        package = EMULATOR.path() / "node_modules" / "kinesis-local"
        self._workspace = Workspace("kinesis", self._detached)
        self.direct_port, self.tls_port = free_port(), free_port()
        ports = {
            "KINESIS_MOCK_PLAIN_PORT": str(self.direct_port),
            "KINESIS_MOCK_TLS_PORT": str(self.tls_port),
            "KINESIS_MOCK_CERT_PATH": str(package / "server.json"),
        }
        with as_file(files(__package__) / "loopback.js") as preload:
            self._process = Process(
                "the Kinesis emulator",
                [str(node()), "-r", str(preload), str(package / "main.js")],
                self._workspace.path / "kinesis.log",
                cwd=self._workspace.path,
                env={**self._settings, **ports},
                detached=self._detached is not None,
            )
            self._process.wait_until(lambda: accepts_connections(self.direct_port))
        self._proxy = FaultProxy(self.direct_port, seed=self._seed)
        if self._detached is None:
            self._proxy.start()
        else:
            self._start_proxy_apart(self._proxy, self._detached)
        return self

    def _start_proxy_apart(self, proxy: FaultProxy, detached: Detached) -> None:
        """A proxy in our own process would end with us."""
        proxy.port = free_port(detached.port)
        arguments = [str(proxy.upstream_port), str(proxy.port)]
        self._proxy_process = Process(
            "the proxy before Kinesis",
            [sys.executable, "-m", FaultProxy.__module__, *arguments],
            detached.home / "kinesis.log",
            detached=True,
        )
        self._proxy_process.wait_until(lambda: accepts_connections(proxy.port))

    def stop(self) -> None:
        if self._proxy is not None and self._detached is None:
            self._proxy.stop()
        for process in (self._proxy_process, self._process):
            if process is not None:
                process.kill()  # all it has is in memory
        if self._workspace is not None:
            self._workspace.remove()
