"""The `kafka` connector: its options, and which reader or writer serves a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, cast

from streamcore import (
    ByteSize,
    Connector,
    CredentialProvider,
    Format,
    MetadataKey,
    Partitioner,
    Problem,
    Secret,
    Table,
    at_least,
    option,
)
from streamcore.failures import FailureHandler
from streamcore.table import ALL_CHANGES, INSERT_ONLY, ValueFields

from . import validation
from .client_keys import PROVIDER
from .metadata import metadata_keys
from .offsets import EXAMPLE, Bounded, Startup

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )


class Delivery(Enum):
    """The choices of `sink.delivery-guarantee`."""

    NONE = "none"
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


class NamingStrategy(Enum):
    """The choices of `sink.transaction-naming-strategy`."""

    INCREMENTING = "INCREMENTING"
    POOLING = "POOLING"


class MissingMarker(Enum):
    """The choices of `sink.missing-marker`."""

    FAIL = "fail"
    WRITE = "write"


class Kafka(Connector):
    """Reads and writes Kafka topics, as a stream or as a batch."""

    identifier = "kafka"
    example_options: ClassVar[Mapping[str, str]] = {
        "topic": "orders",
        "scan.startup.mode": "earliest-offset",
    }

    servers: str = option(
        "properties.bootstrap.servers",
        "Brokers to ask first, as host:port,host:port.",
        example="localhost:9092",
    )
    properties: Mapping[str, str | Secret] = option(
        "properties.*",
        "Settings of the Kafka client, in the words of its Java or its C library.",
    )
    credentials: CredentialProvider | None = option(
        "credentials.provider",
        "Fetches the login on the worker: a 'token' for OAUTHBEARER, else 'username' and "
        "'password'.",
        default=None,
    )
    topic: tuple[str, ...] = option(
        "topic",
        "Topics to read. One topic is written to; of several, each row's 'topic' picks one.",
        default=(),
        example="orders;returns",
    )
    topic_pattern: str | None = option(
        "topic-pattern",
        "A regular expression; every topic whose whole name matches is read, or may be written to.",
        default=None,
        example="orders-.*",
    )
    format: Format = option("format", "How values are encoded.", also=("value.format",))
    key_format: Format | None = option("key.format", "How keys are encoded.", default=None)
    key_fields: tuple[str, ...] = option(
        "key.fields", "The columns that make up the key, in this order.", default=()
    )
    key_prefix: str = option(
        "key.fields-prefix",
        "Begins the names of key columns in the table, but not inside the key.",
        default="",
    )
    value_fields: ValueFields = option(
        "value.fields-include",
        "Whether the value repeats the columns of the key.",
        default=ValueFields.ALL,
    )

    startup: Startup = option(
        "scan.startup.mode",
        "Where a new query starts. A checkpoint always wins over this.",
        default=Startup.GROUP,
    )
    startup_offsets: str | None = option(
        "scan.startup.specific-offsets",
        "The first offset of each partition, for mode 'specific-offsets'.",
        default=None,
        example=EXAMPLE,
    )
    startup_millis: int | None = option(
        "scan.startup.timestamp-millis",
        "Milliseconds since 1970, for mode 'timestamp': the first record at or after it.",
        default=None,
    )
    bounded_mode: Bounded = option(
        "scan.bounded.mode", "Where reading ends.", default=Bounded.UNBOUNDED
    )
    bounded_offsets: str | None = option(
        "scan.bounded.specific-offsets",
        "The offset before which each partition ends, for mode 'specific-offsets'.",
        default=None,
        example=EXAMPLE,
    )
    bounded_millis: int | None = option(
        "scan.bounded.timestamp-millis",
        "Milliseconds since 1970, for 'timestamp': ends before the first record at or after it.",
        default=None,
    )
    discovery: timedelta = option(
        "scan.topic-partition-discovery.interval",
        "How often to look for new topics and partitions; 0: only when a query starts.",
        default=timedelta(minutes=5),
        check=at_least(0),
    )
    scan_parallelism: int | None = option(
        "scan.parallelism",
        "The number of tasks a large batch is read with. More than there are partitions "
        "splits partitions, which gives up their order. Default: the cores of the driver.",
        default=None,
        check=at_least(1),
    )
    only_partitions: tuple[str, ...] = option(
        "scan.partitions",
        "The numbers of the partitions to read; all others are left alone. '1/4' means 1, 5, 9 and "
        "so on. Default: every one.",
        default=(),
        example="0;1",
    )
    max_rows: int | None = option(
        "scan.max-rows-per-batch",
        "The largest number of offsets in a micro-batch.",
        default=None,
        check=at_least(1),
    )
    max_bytes: ByteSize | None = option(
        "scan.max-bytes-per-batch",
        "About the largest size of a micro-batch, by the average size of recent records.",
        default=None,
        check=at_least(1),
        example="256 mb",
    )
    fail_on_data_loss: bool = option(
        "scan.fail-on-data-loss",
        "Whether records that are gone before they were read fail the query, or only warn.",
        default=True,
    )
    per_partition_watermark: bool = option(
        "scan.watermark.per-partition",
        "Whether the watermark follows the slowest partition instead of the fastest.",
        default=False,
    )
    watermark_lanes: int | None = option(
        "scan.watermark.lanes",
        "How many watermarks 'scan.watermark.per-partition' has; partitions share them by number. "
        "A checkpoint keeps to its own number: set it when a partition was added. "
        "Default: one for each partition there is when the query starts.",
        default=None,
        check=at_least(1),
    )
    failure_handler: FailureHandler = option(
        "scan.deser.failure-handler",
        "What to do with a record that cannot be decoded.",
        default=FailureHandler.FAIL,
    )
    failure_topic: str | None = option(
        "scan.deser.failure-topic",
        "The topic for records that cannot be decoded, for handler 'dead-letter'.",
        default=None,
    )

    partitioner: Partitioner = option(
        "sink.partitioner",
        "Chooses the partition of a record: a name, or the dotted path of a Partitioner class.",
        default="default",
    )
    delivery: Delivery = option(
        "sink.delivery-guarantee",
        "What a failure may do to written rows: lose them, repeat them, or neither.",
        default=Delivery.AT_LEAST_ONCE,
    )
    transactional_prefix: str | None = option(
        "sink.transactional-id-prefix",
        "Begins every transactional.id; unique to this sink, and the same after a restart.",
        default=None,
    )
    naming_strategy: NamingStrategy = option(
        "sink.transaction-naming-strategy",
        "Accepted. Transactional ids are always few and reused, which is what POOLING asks for.",
        default=NamingStrategy.INCREMENTING,
    )
    semantic: Delivery | None = option(
        "sink.semantic",
        "Deprecated name of 'sink.delivery-guarantee'; wins over it when both are set.",
        default=None,
    )
    missing_marker: MissingMarker = option(
        "sink.missing-marker",
        "What to do when a query that has run before finds no marker of its last exactly-once "
        "batch: the markers may have expired, or it wrote without them until now.",
        default=MissingMarker.FAIL,
    )
    sink_parallelism: int | None = option(
        "sink.parallelism",
        "The number of tasks that write. SQL and YAML deal the rows out to that many; repartition "
        "a DataFrame yourself.",
        default=None,
        check=at_least(1),
    )

    def __post_init__(self) -> None:
        properties = {key.lower(): value for key, value in self.properties.items()}
        if self.credentials is not None:  # whoever makes a client has its login at hand
            properties[PROVIDER] = cast(Any, self.credentials)
        object.__setattr__(self, "properties", properties)

    @property
    def guarantee(self) -> Delivery:
        """The delivery guarantee in force: the deprecated option wins, as it always did."""
        return self.semantic or self.delivery

    @property
    def group(self) -> str | None:
        """The consumer group that offsets are read from and committed to."""
        return validation.text(self.properties.get("group.id")) or None

    def group_lag(self) -> Iterator[tuple[str, int, int]]:
        """How many records of each partition the group has yet to read: topic, number, count."""
        from .group import group_lag

        return group_lag(self)

    @property
    def routes_by_row(self) -> bool:
        """Whether each row says which topic it is written to."""
        return self.topic_pattern is not None or len(self.topic) != 1

    def lanes(self, options: Mapping[str, str | Secret]) -> Sequence[Mapping[str, str | Secret]]:
        """One lane per partition there is now, if the watermark is to follow the slowest one.

        Partitions that come later join the lanes of their topic, which stay as many as they are.
        """
        from .discovery import Cluster

        if not self.per_partition_watermark:
            return (options,)
        shares: list[dict[str, str | Secret]] = []
        for name, topic in sorted(Cluster(self).topics().items()):
            numbers = [str(number) for number in topic.partitions]
            if not self.only_partitions:
                count = min(self.watermark_lanes or len(numbers), len(numbers))
                numbers = [f"{lane}/{count}" for lane in range(count)]
            shares += [{"topic": name, "scan.partitions": number} for number in numbers]
        limits = {
            "scan.max-rows-per-batch": self.max_rows,
            "scan.max-bytes-per-batch": self.max_bytes,
        }
        limited: dict[str, str | Secret] = {
            key: str(max(1, limit // max(1, len(shares)))) for key, limit in limits.items() if limit
        }
        ours = {"topic", "topic-pattern", "scan.partitions", "scan.watermark.lanes", *limits}
        plain = {key: text for key, text in options.items() if key.lower() not in ours}
        return [{**plain, **limited, **share} for share in shares]

    def problems(self) -> Iterator[Problem | str]:
        yield from super().problems()
        yield from validation.option_problems(self)

    def metadata(self) -> Mapping[str, MetadataKey]:
        return metadata_keys(self.format, topic_is_writable=self.routes_by_row)

    def produces(self) -> frozenset[str]:
        return ALL_CHANGES if self.format.changelog else INSERT_ONLY

    def accepts(self) -> frozenset[str]:
        return ALL_CHANGES if self.format.changelog else INSERT_ONLY

    def needs_old_rows(self) -> bool:
        return self.format.changelog

    def write_tasks(self) -> int | None:
        return self.sink_parallelism

    def write_keys(self, table: Table) -> tuple[str, ...]:
        return self.key_fields or table.primary_key

    def bounded(self) -> bool:
        return self.bounded_mode is not Bounded.UNBOUNDED

    def table_problems(self, table: Table, *, writing: bool) -> Iterator[Problem | str]:
        yield from validation.table_problems(self, table, writing=writing)

    def online_problems(self, table: Table, *, writing: bool) -> Iterator[Problem | str]:
        from .online import online_problems

        yield from online_problems(self, table, writing=writing)

    def reader(self, table: Table) -> DataSourceReader:
        from .source import KafkaReader

        return KafkaReader(self, table)

    def stream_reader(self, table: Table) -> DataSourceStreamReader:
        from .source import KafkaStreamReader

        return KafkaStreamReader(self, table)

    def writer(self, table: Table) -> DataSourceWriter:
        from .sink import KafkaWriter

        return KafkaWriter(self, table)

    def stream_writer(self, table: Table) -> DataSourceStreamWriter:
        from .sink import KafkaStreamWriter

        return KafkaStreamWriter(self, table)
