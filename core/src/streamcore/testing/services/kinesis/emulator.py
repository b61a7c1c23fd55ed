"""A Kinesis emulator on loopback, behind a proxy that fails on purpose."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Self

from ..downloads import node, npm
from ..process import (
    HOST,
    Process,
    Service,
    ServiceError,
    Workspace,
    accepts_connections,
    free_port,
)
from .faults import Faults, Ledger
from .proxy import FaultProxy

EMULATOR = npm("kinesis-local", "0.6.2", megabytes=3)
ACCOUNT, REGION = "123456789012", "us-east-1"
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


class KinesisEmulator(Service):
    """Streams in memory; `faults` says what goes wrong and `ledger` what happened."""

    def __init__(
        self,
        *,
        change_milliseconds: int = 100,
        shard_limit: int = 500,
        seed: int | None = None,
        home: Path | None = None,
        detached: bool = False,
    ) -> None:
        self._settings = {
            "LOG_LEVEL": "WARN",
            "SHARD_LIMIT": str(shard_limit),
            "AWS_ACCOUNT_ID": ACCOUNT,
            "AWS_REGION": REGION,
            **{f"{change}_DURATION": f"{change_milliseconds}ms" for change in CHANGES},
        }
        self._seed, self._home, self._detached = seed, home, detached
        self._process: Process | None = None
        self._proxy: FaultProxy | None = None
        self._workspace: Workspace | None = None
        self.direct_port = 0

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
    def pid(self) -> int:
        return self.process.pid

    @property
    def endpoint_url(self) -> str:
        """The address for clients under test: through the fault proxy."""
        return self.proxy.url

    @property
    def direct_url(self) -> str:
        """The emulator itself, for the checks around a test."""
        return f"http://{HOST}:{self.direct_port}"

    @property
    def faults(self) -> Faults:
        return self.proxy.fate.faults

    @property
    def ledger(self) -> Ledger:
        return self.proxy.fate.ledger

    @property
    def client_kwargs(self) -> dict[str, str]:
        """What `boto3.client("kinesis", **kwargs)` takes."""
        return {
            "endpoint_url": self.endpoint_url,
            "region_name": REGION,
            "aws_access_key_id": ACCOUNT,  # twelve digits choose the emulator's account
            "aws_secret_access_key": "test",
        }

    def start(self) -> Self:
        package = EMULATOR.path() / "node_modules" / "kinesis-local"
        self._workspace = Workspace("kinesis", self._home)
        self.direct_port, tls_port = free_port(), free_port()
        ports = {
            "KINESIS_MOCK_PLAIN_PORT": str(self.direct_port),
            "KINESIS_MOCK_TLS_PORT": str(tls_port),
            "KINESIS_MOCK_CERT_PATH": str(package / "server.json"),
        }
        with as_file(files(__package__) / "loopback.js") as preload:
            self._process = Process(
                "the Kinesis emulator",
                [str(node()), "-r", str(preload), str(package / "main.js")],
                self._workspace.path / "kinesis.log",
                cwd=self._workspace.path,
                env={**self._settings, **ports},
                detached=self._detached,
            )
            self._process.wait_until(lambda: accepts_connections(self.direct_port))
        self._proxy = FaultProxy(self.direct_port, seed=self._seed).start()
        return self

    def stop(self) -> None:
        if self._proxy is not None:
            self._proxy.stop()
        if self._process is not None:
            self._process.kill()  # all it has is in memory
        if self._workspace is not None:
            self._workspace.remove()

    def client(self, *, direct: bool = False) -> Any:
        """A boto3 client, through the proxy or past it."""
        import boto3

        address = {"endpoint_url": self.direct_url} if direct else {}
        return boto3.client("kinesis", **{**self.client_kwargs, **address})

    def create_stream(self, name: str, shards: int = 1) -> str:
        """Create the stream, wait until it is active, and give back its ARN."""
        client = self.client(direct=True)
        client.create_stream(StreamName=name, ShardCount=shards)
        return self.wait_active(name)

    def wait_active(self, name: str) -> str:
        """Wait until the stream is done changing, and give back its ARN."""
        client = self.client(direct=True)
        arn = ""

        def active() -> bool:
            nonlocal arn
            summary = client.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]
            arn = summary["StreamARN"]
            return bool(summary["StreamStatus"] == "ACTIVE")

        self.process.wait_until(active, timeout=30)
        return arn
