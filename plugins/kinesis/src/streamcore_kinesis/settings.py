"""What reading and writing a stream need to know, the same for both connectors."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from streamcore import CredentialProvider


class Position(Enum):
    """Where a shard that was there from the start is read from."""

    LATEST = "LATEST"
    TRIM_HORIZON = "TRIM_HORIZON"
    AT_TIMESTAMP = "AT_TIMESTAMP"


class ReaderType(Enum):
    """Shared throughput by polling, or a throughput of one's own."""

    POLLING = "POLLING"
    EFO = "EFO"


class Lifecycle(Enum):
    """Who registers and removes the consumer that reads with its own throughput."""

    JOB_MANAGED = "JOB_MANAGED"
    SELF_MANAGED = "SELF_MANAGED"


@dataclass(frozen=True)
class Backoff:
    """How often, and after which pauses, a call is tried again."""

    attempts: int
    base: timedelta
    most: timedelta
    factor: float = 2.0


@dataclass(frozen=True)
class Endpoint:
    """Which service to talk to, and as whom."""

    provider: CredentialProvider
    region: str | None
    url: str | None
    verify: bool = True


@dataclass(frozen=True)
class FanOut:
    """A consumer with its own throughput; `arn` when it is given and not looked up."""

    name: str
    lifecycle: Lifecycle
    arn: str | None
    removed: bool
    """Whether the consumer goes when the query ends."""
    silence: timedelta
    """How long a subscription may say nothing, from the first call on, before there is another."""
    active_timeout: timedelta | None
    removal_timeout: timedelta
    describing: Backoff
    subscribing: Backoff
    registering: Backoff
    removing: Backoff


@dataclass(frozen=True)
class SourceSettings:
    """Everything a read needs, whichever connector it came through."""

    endpoint: Endpoint
    stream: dict[str, str]
    """`StreamARN` or `StreamName`, as the service wants it in a call."""
    stream_name: str
    position: Position
    timestamp: datetime | None
    discovery: timedelta
    limit: int
    pause: timedelta
    """Between a read of a shard that finds nothing and the next one."""
    retries: Backoff
    listing: Backoff
    describing: Backoff
    positioning: Backoff
    fan_out: FanOut | None
    unpack: bool
    fail_on_data_loss: bool
    margin: timedelta
    slice: timedelta
    parallelism: int | None
    apart: timedelta = timedelta()
    """Between any two reads of a shard, where that is more than the service needs."""

    @property
    def stream_by_arn(self) -> dict[str, str]:
        """The stream for calls that take no name: those of another account need its ARN."""
        return {key: arn for key, arn in self.stream.items() if key == "StreamARN"}


@dataclass(frozen=True)
class SinkSettings:
    """Everything a write needs."""

    endpoint: Endpoint
    stream: dict[str, str]
    stream_name: str
    batch_size: int
    in_flight: int
    buffered: int
    flush_bytes: int
    flush_after: timedelta
    fail_on_error: bool
    delimiter: str
    read_timeout: timedelta
