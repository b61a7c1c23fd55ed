"""What can be done with any Kinesis endpoint, whoever runs it."""

from __future__ import annotations

import time
from typing import Any

from ..process import ServiceError

ACCOUNT, REGION = "123456789012", "us-east-1"


class KinesisAddress:
    """A Kinesis endpoint by its URL."""

    @property
    def endpoint_url(self) -> str:
        """The address for clients under test."""
        raise NotImplementedError

    @property
    def direct_url(self) -> str:
        """The address for the checks around a test: past any proxy."""
        return self.endpoint_url

    @property
    def client_kwargs(self) -> dict[str, str]:
        """What `boto3.client("kinesis", **kwargs)` takes."""
        return {
            "endpoint_url": self.endpoint_url,
            "region_name": REGION,
            "aws_access_key_id": ACCOUNT,  # twelve digits choose the emulator's account
            "aws_secret_access_key": "test",
        }

    def client(self, *, direct: bool = False) -> Any:
        """A boto3 client, through the proxy or past it."""
        import boto3

        address = {"endpoint_url": self.direct_url} if direct else {}
        return boto3.client("kinesis", **{**self.client_kwargs, **address})

    def create_stream(self, name: str, shards: int = 1) -> str:
        """Create the stream, wait until it is active, and give back its ARN."""
        self.client(direct=True).create_stream(StreamName=name, ShardCount=shards)
        return self.wait_active(name)

    def wait_active(self, name: str, timeout: float = 60) -> str:
        """Wait until the stream is done changing, and give back its ARN."""
        client = self.client(direct=True)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            summary = client.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]
            if summary["StreamStatus"] == "ACTIVE":
                return str(summary["StreamARN"])
            time.sleep(0.05)
        raise ServiceError(f"stream '{name}' is still not active after {timeout:g} s.")


class ExistingKinesis(KinesisAddress):
    """An endpoint somebody else runs."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def endpoint_url(self) -> str:
        return self._url
