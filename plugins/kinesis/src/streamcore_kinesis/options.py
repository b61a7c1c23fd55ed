"""Options both connectors share: the service, the sink, bad records, and deprecated keys."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

from streamcore import (
    Connector,
    CredentialProvider,
    Format,
    MetadataKey,
    OptionWarning,
    Partitioner,
    Problem,
    Secret,
    Table,
    at_least,
    between,
    option,
)
from streamcore.failures import FailureHandler

from .arns import endpoint_complaint, region_complaint
from .partition_keys import partition_problems
from .settings import Endpoint, SinkSettings, SourceSettings

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

METADATA = {
    "timestamp": MetadataKey("TIMESTAMP_LTZ(3) NOT NULL", "When the record arrived at the stream."),
    "shard-id": MetadataKey("STRING NOT NULL", "The shard the record was read from."),
    "sequence-number": MetadataKey("STRING NOT NULL", "The record's number within its shard."),
    "sub-sequence-number": MetadataKey("BIGINT NOT NULL", "Its place in an aggregated record."),
    "partition-key": MetadataKey("STRING NOT NULL", "The key the record was written with."),
}


_KNOWN_TO_OLD_PRODUCER = {
    "collection-max-count",
    "collection-max-size",
    "fail-on-error",
    "kinesis-endpoint",
    "kinesis-port",
    "record-max-buffered-time",
    "verify-certificate",
}


_MOST_REQUESTS = 64
"""Each has a thread and a connection; the rate control seldom allows for as many."""


class HttpVersion(Enum):
    """The protocol a sink would speak; boto3 always speaks HTTP/1.1."""

    HTTP1_1 = "HTTP1_1"
    HTTP2 = "HTTP2"


class StreamTable(Connector):
    """A table on a Kinesis stream; the two connectors add how they are read."""

    identifier = "stream-table"

    format: Format = option("format", "How records are encoded.", also=("value.format",))
    endpoint: str | None = option(
        "aws.endpoint",
        "URL of the service; found by region if unset.",
        default=None,
        check=endpoint_complaint,
    )
    trust_all: bool | None = option(
        "aws.trust.all.certificates",
        "Accept any TLS certificate; for tests only. Unset is false.",
        default=None,
    )
    provider: CredentialProvider = option(
        "aws.credentials.provider", "Where credentials come from.", default="auto"
    )
    failure_handler: FailureHandler = option(
        "scan.deser.failure-handler",
        "What happens to a record that is no row.",
        default=FailureHandler.FAIL,
    )
    failure_stream: str | None = option(
        "scan.deser.failure-stream", "Stream that takes dead letters, by name or ARN.", default=None
    )
    parallelism: int | None = option(
        "scan.parallelism",
        "Most tasks a batch is read with; the number of cores if unset.",
        default=None,
        check=at_least(1),
    )
    partitioner: Partitioner | None = option(
        "sink.partitioner",
        "Which partition key a row gets: random, fixed, or a class of yours; not with "
        "PARTITIONED BY.",
        default=None,
    )
    delimiter: str = option(
        "sink.partitioner-field-delimiter",
        "Joins the values of PARTITIONED BY columns.",
        default="|",
    )
    connections: int = option(
        "sink.http-client.max-concurrency",
        "Most connections of a task, and so requests of the sink under way at once.",
        default=10000,
        check=at_least(0),
        also=("aws.http-client.max-concurrency",),
    )
    read_timeout: int = option(
        "sink.http-client.read-timeout",
        "Milliseconds to wait for an answer.",
        default=360000,
        check=at_least(0),
        also=("aws.http-client.read-timeout",),
    )
    http_version: HttpVersion = option(
        "sink.http-client.protocol.version",
        "Accepted without effect: boto3 speaks HTTP/1.1.",
        default=HttpVersion.HTTP2,
        also=("aws.http.protocol.version",),
    )
    batch_size: int = option(
        "sink.batch.max-size",
        "Most records in one request.",
        default=500,
        check=between(1, 500),
        was=("sink.producer.collection-max-size",),
    )
    in_flight: int = option(
        "sink.requests.max-inflight",
        "Most requests of a task under way at once; no more than 64.",
        default=50,
        check=at_least(1),
        was=("sink.producer.collection-max-count",),
    )
    buffered: int = option(
        "sink.requests.max-buffered",
        "Most records waiting before the task is held back.",
        default=10000,
        check=at_least(1),
    )
    flush_bytes: int = option(
        "sink.flush-buffer.size",
        "Most bytes in one request, partition keys counted.",
        default=5242880,
        check=between(1048576, 10485760),
    )
    flush_after: int = option(
        "sink.flush-buffer.timeout",
        "Milliseconds a record may wait for company.",
        default=5000,
        check=at_least(1),
        was=("sink.producer.record-max-buffered-time",),
    )
    fail_on_error: bool = option(
        "sink.fail-on-error",
        "Fail on the first record the service refuses.",
        default=False,
        was=("sink.producer.fail-on-error",),
    )
    producer: Mapping[str, str | Secret] = option(
        "sink.producer.*", "Deprecated keys of the old producer library."
    )

    def problems(self) -> Iterator[Problem | str]:
        yield from super().problems()
        if self.buffered <= self.batch_size:
            yield Problem(
                "sink.requests.max-buffered",
                f"'{self.buffered}' must be greater than 'sink.batch.max-size', "
                f"which is {self.batch_size}",
            )
        if self.failure_handler is FailureHandler.DEAD_LETTER and not self.failure_stream:
            yield Problem(
                "scan.deser.failure-stream",
                "required when 'scan.deser.failure-handler' is 'dead-letter'",
            )
        yield from self._old_producer_problems()

    def _old_producer_problems(self) -> Iterator[Problem]:
        url = self._old_endpoint()
        if url and (complaint := endpoint_complaint(url)):
            yield Problem("sink.producer.kinesis-endpoint", f"'{url}' {complaint}")
        verify = self.producer.get("verify-certificate")
        ignored = [key for key in self.producer if key not in _KNOWN_TO_OLD_PRODUCER]
        for key in ignored:
            _warn(f"'sink.producer.{key}' is not known to this sink and has no effect")
        if verify is not None and str(verify).lower() not in ("true", "false"):
            _warn(
                f"'sink.producer.verify-certificate' is '{verify}', neither true nor false, and "
                "has no effect"
            )

    def _old_endpoint(self) -> str:
        host, port = (self.producer.get(f"kinesis-{part}", "") for part in ("endpoint", "port"))
        return f"https://{host}" + (f":{port}" if port else "") if host else ""

    def metadata(self) -> Mapping[str, MetadataKey]:
        inner = {f"value.{key}": found for key, found in self.format.metadata_keys.items()}
        return {**inner, **METADATA}

    def produces(self) -> frozenset[str]:
        from streamcore.table import ALL_CHANGES, INSERT_ONLY

        return ALL_CHANGES if self.format.changelog else INSERT_ONLY

    accepts = produces

    def needs_old_rows(self) -> bool:
        return self.format.changelog

    def table_problems(self, table: Table, *, writing: bool) -> Iterator[Problem | str]:
        if writing:
            yield from partition_problems(table)
            if table.partition_keys and self.partitioner is not None:
                yield Problem(
                    "sink.partitioner",
                    "cannot be set on a table that is PARTITIONED BY columns; remove one of them",
                )
        yield from self.format.schema_problems(table.physical, writing=writing)

    def reader(self, table: Table) -> DataSourceReader:
        from .source import KinesisReader

        return KinesisReader(self, self.source_settings(), table)

    def stream_reader(self, table: Table) -> DataSourceStreamReader:
        from .source import KinesisStreamReader

        return KinesisStreamReader(self, self.source_settings(), table)

    def writer(self, table: Table) -> DataSourceWriter:
        from .sink import KinesisWriter

        return KinesisWriter(self, self._sink(), table)

    def stream_writer(self, table: Table) -> DataSourceStreamWriter:
        from .sink import KinesisStreamWriter

        return KinesisStreamWriter(self, self._sink(), table)

    def source_settings(self) -> SourceSettings:
        """The read side, in the words of each connector."""
        raise NotImplementedError

    def _sink(self) -> SinkSettings:
        raise NotImplementedError

    def service(self, region: str | None) -> Endpoint:
        """Whom to talk to, with the deprecated producer keys translated."""
        trust_all = self.trust_all
        if trust_all is None:
            trust_all = str(self.producer.get("verify-certificate", "")).lower() == "false"
        url = self.endpoint or self._old_endpoint() or None
        return Endpoint(self.provider, region, url, not trust_all)

    def sink_settings(self, region: str | None, stream: dict[str, str], name: str) -> SinkSettings:
        """The write side, the same for both connectors."""
        requests = min(self.in_flight, self.connections or 1, _MOST_REQUESTS)
        return SinkSettings(
            self.service(region),
            stream,
            name,
            self.batch_size,
            requests,
            self.buffered,
            self.flush_bytes,
            timedelta(milliseconds=self.flush_after),
            self.fail_on_error,
            self.delimiter,
            timedelta(milliseconds=self.read_timeout or 360000),
        )


def _warn(text: str) -> None:
    warnings.warn(text, OptionWarning, stacklevel=4)


def checked_region(default: Any) -> Any:
    """The option `aws.region`, required by one connector and not by the other."""
    return option(
        "aws.region",
        "Region of the stream.",
        default=default,
        check=region_complaint,
        example="eu-west-1",
    )
