"""The `kinesis-legacy` connector: streams by name, with the older names of every option."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import Enum

from streamcore import OptionWarning, Problem, Secret, at_least, between, option

from .arns import CONSUMER_ARN, name_complaint
from .connector import timestamp_problems
from .options import StreamTable, checked_region
from .settings import Backoff, FanOut, Lifecycle, Position, ReaderType, SinkSettings, SourceSettings
from .timestamps import DEFAULT_PATTERN, parse_timestamp

ITERATOR_LIVES = 300_000
_JAVA_CLASS = re.compile(r"([A-Za-z_]\w*\.)+[A-Z_]\w*(\$\w+)*", re.A)
_RECOVERABLE = re.compile(r"error\.recoverable\[(\d+)\]\.exception")


class Registration(Enum):
    """Who registers the consumer that reads with a throughput of its own, and when."""

    LAZY = "LAZY"
    EAGER = "EAGER"
    NONE = "NONE"


class Pauses:
    """Declares the three options of one call's pauses between retries."""

    def __init__(self, prefix: str, what: str, base: int, most: int) -> None:
        self.base = option(
            f"{prefix}.backoff.base",
            f"First pause between tries of {what}, in milliseconds.",
            default=base,
            check=at_least(0),
        )
        self.most = option(
            f"{prefix}.backoff.max",
            f"Longest pause between tries of {what}, in milliseconds.",
            default=most,
            check=at_least(0),
        )
        self.factor = option(
            f"{prefix}.backoff.expconst",
            f"Growth of the pauses between tries of {what}.",
            default=1.5,
            check=at_least(0),
        )


def _tries(prefix: str, what: str, default: int) -> int:
    found: int = option(
        f"{prefix}.maxretries", f"Most retries of {what}.", default=default, check=at_least(0)
    )
    return found


_DESCRIBE = Pauses("scan.stream.describe", "describing the stream", 2000, 5000)
_LIST = Pauses("scan.list.shards", "listing shards", 1000, 5000)
_CONSUMER = Pauses("scan.stream.describestreamconsumer", "describing the consumer", 2000, 5000)
_REGISTER = Pauses("scan.stream.registerstreamconsumer", "registering the consumer", 500, 2000)
_DEREGISTER = Pauses("scan.stream.deregisterstreamconsumer", "removing the consumer", 500, 2000)
_SUBSCRIBE = Pauses("scan.shard.subscribetoshard", "subscribing to a shard", 1000, 2000)
_RECORDS = Pauses("scan.shard.getrecords", "reading a shard", 300, 1000)
_ITERATOR = Pauses("scan.shard.getiterator", "positioning in a shard", 300, 1000)


class KinesisLegacy(StreamTable):
    """Reads and writes Kinesis streams by name, for tables written for the older connector."""

    identifier = "kinesis-legacy"

    stream: str = option("stream", "Name of the stream.", check=name_complaint)
    region: str | None = checked_region(None)
    position: Position = option(
        "scan.stream.initpos", "Where a new job starts.", default=Position.LATEST
    )
    timestamp: str | None = option(
        "scan.stream.initpos-timestamp",
        "Where AT_TIMESTAMP starts: in the format below, or seconds since 1970.",
        default=None,
    )
    timestamp_format: str = option(
        "scan.stream.initpos-timestamp-format",
        "Java date pattern of the start timestamp.",
        default=DEFAULT_PATTERN,
    )
    publisher: ReaderType = option(
        "scan.stream.recordpublisher",
        "Poll, or read with a throughput of one's own.",
        default=ReaderType.POLLING,
    )
    consumer: str | None = option(
        "scan.stream.efo.consumername", "Name of the consumer that EFO registers.", default=None
    )
    registration: Registration = option(
        "scan.stream.efo.registration",
        "When that consumer is registered, if at all.",
        default=Registration.LAZY,
    )
    consumer_arns: Mapping[str, str | Secret] = option(
        "scan.stream.efo.consumerarn.*", "ARN of a registered consumer, by the stream's name."
    )
    efo_connections: int = option(
        "scan.stream.efo.http-client.max-concurrency",
        "Accepted without effect: a task holds one subscription at a time.",
        default=10000,
        check=at_least(0),
    )
    efo_timeout: int = option(
        "scan.stream.efo.http-client.read-timeout",
        "Milliseconds EFO waits for an event, if that is less than the timeout of a subscription.",
        default=360000,
        check=at_least(0),
    )
    assigner: str = option(
        "scan.shard-assigner",
        "Accepted without effect: Spark assigns shards to tasks.",
        default="default",
        also=("source.shard-assigner",),
    )
    describe_tries: int = _tries("scan.stream.describe", "describing the stream", 50)
    describe_base: int = _DESCRIBE.base
    describe_most: int = _DESCRIBE.most
    describe_factor: float = _DESCRIBE.factor
    list_tries: int = _tries("scan.list.shards", "listing shards", 10)
    list_base: int = _LIST.base
    list_most: int = _LIST.most
    list_factor: float = _LIST.factor
    consumer_tries: int = _tries(
        "scan.stream.describestreamconsumer", "describing the consumer", 50
    )
    consumer_base: int = _CONSUMER.base
    consumer_most: int = _CONSUMER.most
    consumer_factor: float = _CONSUMER.factor
    register_tries: int = _tries(
        "scan.stream.registerstreamconsumer", "registering the consumer", 10
    )
    register_timeout: int = option(
        "scan.stream.registerstreamconsumer.timeout",
        "Seconds until a new consumer is active.",
        default=60,
        check=at_least(0),
    )
    register_base: int = _REGISTER.base
    register_most: int = _REGISTER.most
    register_factor: float = _REGISTER.factor
    deregister_tries: int = _tries(
        "scan.stream.deregisterstreamconsumer", "removing the consumer", 10
    )
    deregister_timeout: int = option(
        "scan.stream.deregisterstreamconsumer.timeout",
        "Seconds until a consumer is gone.",
        default=60,
        check=at_least(0),
    )
    deregister_base: int = _DEREGISTER.base
    deregister_most: int = _DEREGISTER.most
    deregister_factor: float = _DEREGISTER.factor
    subscribe_tries: int = _tries("scan.shard.subscribetoshard", "subscribing to a shard", 10)
    subscribe_timeout: int = option(
        "scan.shard.subscribetoshard.timeout",
        "Seconds to wait for a subscription, and for its next event, before there is another.",
        default=60,
        check=at_least(0),
    )
    subscribe_base: int = _SUBSCRIBE.base
    subscribe_most: int = _SUBSCRIBE.most
    subscribe_factor: float = _SUBSCRIBE.factor
    limit: int = option(
        "scan.shard.getrecords.maxrecordcount",
        "Most records in one answer.",
        default=10000,
        check=between(1, 10000),
    )
    records_tries: int = _tries("scan.shard.getrecords", "reading a shard", 3)
    records_base: int = _RECORDS.base
    records_most: int = _RECORDS.most
    records_factor: float = _RECORDS.factor
    interval: int = option(
        "scan.shard.getrecords.intervalmillis",
        "Milliseconds between two reads of a shard.",
        default=200,
        check=between(0, ITERATOR_LIVES - 1),
    )
    iterator_tries: int = _tries("scan.shard.getiterator", "positioning in a shard", 3)
    iterator_base: int = _ITERATOR.base
    iterator_most: int = _ITERATOR.most
    iterator_factor: float = _ITERATOR.factor
    discovery: int = option(
        "scan.shard.discovery.intervalmillis",
        "Milliseconds between looks for new shards.",
        default=10000,
        check=at_least(0),
    )
    adaptive: bool = option(
        "scan.shard.adaptivereads",
        "Accepted without effect: a read takes what the slice holds.",
        default=False,
    )
    idle: int = option(
        "scan.shard.idle.interval",
        "Accepted without effect: Spark's watermark is one per query.",
        default=-1,
    )
    recoverable: Mapping[str, str | Secret] = option(
        "scan.shard.consumer.*", "Accepted without effect: passing faults are always tried again."
    )
    recoverable_bare: Mapping[str, str | Secret] = option(
        "shard.consumer.*", "The same without its prefix."
    )
    sync_interval: int = option(
        "scan.watermark.sync.interval",
        "Accepted without effect.",
        default=30000,
        check=at_least(0),
    )
    lookahead: int = option(
        "scan.watermark.lookahead.millis", "Accepted without effect.", default=0, check=at_least(0)
    )
    sync_capacity: int = option(
        "scan.watermark.sync.queue.capacity",
        "Accepted without effect.",
        default=100,
        check=at_least(0),
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
        if self.region is None and self.endpoint is None:
            yield Problem("aws.region", "set it, or 'aws.endpoint', or both")
        yield from timestamp_problems(
            "scan.stream.initpos-timestamp", self.position, self.timestamp, self.timestamp_format
        )
        if self.publisher is ReaderType.EFO:
            yield from self._fan_out_problems()
        yield from self._recoverable_problems()
        yield from super().problems()

    def _fan_out_problems(self) -> Iterator[Problem]:
        if self.registration is Registration.NONE:
            key = f"scan.stream.efo.consumerarn.{self.stream}"
            if self.stream not in self.consumer_arns:
                yield Problem(key, "required when 'scan.stream.efo.registration' is 'NONE'")
            elif not CONSUMER_ARN.fullmatch(arn := str(self.consumer_arns[self.stream])):
                yield Problem(
                    key,
                    f"'{arn}' does not have the form "
                    "arn:aws:kinesis:REGION:ACCOUNT:stream/NAME/consumer/NAME:NUMBER",
                )
        elif not self.consumer:
            yield Problem(
                "scan.stream.efo.consumername",
                f"required when 'scan.stream.efo.registration' is '{self.registration.value}'",
            )
        elif complaint := name_complaint(self.consumer):
            yield Problem("scan.stream.efo.consumername", f"'{self.consumer}' {complaint}")

    def _recoverable_problems(self) -> Iterator[Problem]:
        given = {**self.recoverable_bare, **self.recoverable}
        if not given:
            return
        numbers = []
        for key, value in given.items():
            match = _RECOVERABLE.fullmatch(key)
            if match is None:
                yield Problem(
                    f"scan.shard.consumer.{key}",
                    "unknown option; a list of exceptions is written as "
                    "'scan.shard.consumer.error.recoverable[0].exception'",
                )
            else:
                numbers.append(int(match[1]))
                if not _JAVA_CLASS.fullmatch(str(value)):
                    yield Problem(
                        f"scan.shard.consumer.{key}",
                        f"'{value}' is not the name of a Java class such as "
                        "'com.amazonaws.SdkClientException'",
                    )
        if numbers and sorted(numbers) != list(range(len(numbers))):
            yield Problem(
                "scan.shard.consumer.error.recoverable", "the list counts from [0] without gaps"
            )
        warnings.warn(
            "'shard.consumer.error.recoverable' has no effect: passing faults are always tried "
            "again",
            OptionWarning,
            stacklevel=2,
        )

    def source_settings(self) -> SourceSettings:
        """The read side in the form both connectors share."""
        start = parse_timestamp(self.timestamp, self.timestamp_format) if self.timestamp else None
        interval = timedelta(milliseconds=self.interval)
        fan_out = None
        if self.publisher is ReaderType.EFO:
            none = self.registration is Registration.NONE
            arn = str(self.consumer_arns[self.stream]) if none else None
            fan_out = FanOut(
                str(self.consumer),
                Lifecycle.SELF_MANAGED if none else Lifecycle.JOB_MANAGED,
                arn,
                self.registration is Registration.LAZY,
                min(
                    timedelta(seconds=self.subscribe_timeout),
                    timedelta(milliseconds=self.efo_timeout),
                ),
                timedelta(seconds=self.register_timeout),
                timedelta(seconds=self.deregister_timeout),
                self._backoff("consumer"),
                self._backoff("subscribe"),
                self._backoff("register"),
                self._backoff("deregister"),
            )
        return SourceSettings(
            self.service(self.region),
            {"StreamName": self.stream},
            self.stream,
            self.position,
            start,
            timedelta(milliseconds=self.discovery),
            self.limit,
            interval,
            self._backoff("records"),
            self._backoff("list"),
            self._backoff("describe"),
            self._backoff("iterator"),
            fan_out,
            True,
            self.fail_on_data_loss,
            self.margin,
            self.slice,
            self.parallelism,
            interval,
        )

    def _sink(self) -> SinkSettings:
        return self.sink_settings(self.region, {"StreamName": self.stream}, self.stream)

    def _backoff(self, call: str) -> Backoff:
        """The four options of one call: its retries and the pauses between them."""
        retries, base, most, factor = (
            getattr(self, f"{call}_{part}") for part in ("tries", "base", "most", "factor")
        )
        milliseconds = timedelta(milliseconds=1)
        return Backoff(retries + 1, base * milliseconds, most * milliseconds, factor)
