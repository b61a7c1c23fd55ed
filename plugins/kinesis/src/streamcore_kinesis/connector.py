"""The `kinesis` connector: streams by ARN."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from streamcore import Problem, at_least, between, option

from .arns import arn_complaint, name_complaint, parse_arn
from .options import StreamTable, checked_region
from .settings import Backoff, FanOut, Lifecycle, Position, ReaderType, SinkSettings, SourceSettings
from .timestamps import DEFAULT_PATTERN, compiled, parse_timestamp

_CLOCKS_DIFFER = timedelta(minutes=1)
RETRIES = Backoff(50, timedelta(milliseconds=300), timedelta(seconds=1))


class Kinesis(StreamTable):
    """Reads and writes Kinesis streams, with time-sliced offsets and no side log."""

    identifier = "kinesis"

    arn: str = option(
        "stream.arn",
        "ARN of the stream.",
        check=arn_complaint,
        example="arn:aws:kinesis:eu-west-1:123456789012:stream/orders",
    )
    region: str = checked_region(dataclasses.MISSING)
    position: Position = option(
        "source.init.position", "Where a new job starts.", default=Position.LATEST
    )
    timestamp: str | None = option(
        "source.init.timestamp",
        "Where AT_TIMESTAMP starts: in the format below, or seconds since 1970.",
        default=None,
    )
    timestamp_format: str = option(
        "source.init.timestamp.format",
        "Java date pattern of the start timestamp.",
        default=DEFAULT_PATTERN,
    )
    discovery: timedelta = option(
        "source.shard.discovery.interval",
        "How often to look for new shards.",
        default=timedelta(seconds=10),
    )
    reader_type: ReaderType = option(
        "source.reader.type",
        "Poll, or read with a throughput of one's own.",
        default=ReaderType.POLLING,
    )
    limit: int = option(
        "source.shard.get-records.max-record-count",
        "Most records in one answer.",
        default=10000,
        check=between(1, 10000),
    )
    pause: timedelta = option(
        "source.reader.empty-records-fetch-interval",
        "Pause of a shard after an empty answer.",
        default=timedelta(milliseconds=250),
    )
    consumer: str | None = option(
        "source.efo.consumer.name", "Name of the consumer that EFO registers.", default=None
    )
    lifecycle: Lifecycle = option(
        "source.efo.lifecycle",
        "Who registers and removes that consumer.",
        default=Lifecycle.JOB_MANAGED,
    )
    subscribe_timeout: timedelta = option(
        "source.efo.subscription.timeout",
        "How long to wait for a subscription, and for its next event, before there is another.",
        default=timedelta(seconds=60),
    )
    deregister_timeout: timedelta = option(
        "source.efo.deregister.timeout",
        "How long to wait until the consumer is gone.",
        default=timedelta(seconds=10),
    )
    describe_attempts: int = option(
        "source.efo.describe.retry-strategy.attempts.max",
        "Most looks for the consumer.",
        default=100,
        check=at_least(1),
    )
    describe_least: timedelta = option(
        "source.efo.describe.retry-strategy.delay.min",
        "First pause between two looks.",
        default=timedelta(seconds=2),
    )
    describe_most: timedelta = option(
        "source.efo.describe.retry-strategy.delay.max",
        "Longest pause between two looks.",
        default=timedelta(seconds=60),
    )
    assigner: str = option(
        "source.shard-assigner",
        "Accepted without effect: Spark assigns shards to tasks.",
        default="default",
    )
    unpack: bool = option(
        "source.deaggregation", "Take records apart that a producer library packed.", default=True
    )
    fail_on_data_loss: bool = option(
        "source.fail-on-data-loss",
        "Fail when records the job still needs have expired.",
        default=True,
    )
    margin: timedelta = option(
        "source.slice.margin",
        "How far a batch stays behind the service's clock.",
        default=timedelta(seconds=1),
        check=at_least(0),
    )
    slice: timedelta = option(
        "source.slice.max",
        "Most stream time one batch covers while catching up.",
        default=timedelta(minutes=5),
        check=at_least(1),
    )

    def problems(self) -> Iterator[Problem | str]:
        yield from timestamp_problems(
            "source.init.timestamp", self.position, self.timestamp, self.timestamp_format
        )
        if self.reader_type is ReaderType.EFO and not self.consumer:
            yield Problem("source.efo.consumer.name", "required when 'source.reader.type' is 'EFO'")
        if self.consumer and (complaint := name_complaint(self.consumer)):
            yield Problem("source.efo.consumer.name", f"'{self.consumer}' {complaint}")
        region = parse_arn(self.arn).region
        if region != self.region:
            yield Problem(
                "aws.region", f"'{self.region}' is not the region of 'stream.arn', '{region}'"
            )
        yield from super().problems()

    def source_settings(self) -> SourceSettings:
        """The read side in the form both connectors share."""
        start = parse_timestamp(self.timestamp, self.timestamp_format) if self.timestamp else None
        fan_out = None
        if self.reader_type is ReaderType.EFO:
            describe = Backoff(self.describe_attempts, self.describe_least, self.describe_most)
            fan_out = FanOut(
                str(self.consumer),
                self.lifecycle,
                None,
                self.lifecycle is Lifecycle.JOB_MANAGED,
                self.subscribe_timeout,
                None,
                self.deregister_timeout,
                describe,
                RETRIES,
                RETRIES,
                RETRIES,
            )
        return SourceSettings(
            self.service(parse_arn(self.arn).region),
            {"StreamARN": self.arn},
            parse_arn(self.arn).stream,
            self.position,
            start,
            self.discovery,
            self.limit,
            self.pause,
            RETRIES,
            RETRIES,
            RETRIES,
            RETRIES,
            fan_out,
            self.unpack,
            self.fail_on_data_loss,
            self.margin,
            self.slice,
            self.parallelism,
        )

    def _sink(self) -> SinkSettings:
        return self.sink_settings(self.region, {"StreamARN": self.arn}, parse_arn(self.arn).stream)


def timestamp_problems(
    key: str, position: Position, text: str | None, pattern: str
) -> Iterator[Problem]:
    """Complain about a start timestamp when the table is planned, not when the job has started."""
    try:
        compiled(pattern)
    except ValueError as error:
        yield Problem(f"{key}.format" if key.startswith("source") else f"{key}-format", str(error))
        return
    if text is None:
        if position is Position.AT_TIMESTAMP:
            yield Problem(key, "required when the initial position is 'AT_TIMESTAMP'")
        return
    try:
        moment = parse_timestamp(text, pattern)
        if position is Position.AT_TIMESTAMP and moment > datetime.now(UTC) + _CLOCKS_DIFFER:
            yield Problem(key, f"'{text}' lies in the future; use 'LATEST' to start from now on")
    except (ValueError, OverflowError):
        yield Problem(
            key,
            f"'{text}' neither has the format {pattern} nor is a number of seconds since 1970, "
            "such as '2016-04-04T19:58:46.480-00:00' or '1459799926.480'",
        )
