"""The `upsert-kafka` connector: a topic whose keys are a table's primary key."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

from streamcore import (
    Format,
    MetadataKey,
    OptionError,
    Partitioner,
    Problem,
    Secret,
    Table,
    at_least,
    option,
)
from streamcore.table import INSERT_ONLY
from streamcore_kafka.connector import Kafka
from streamcore_kafka.metadata import metadata_keys
from streamcore_kafka.offsets import Startup
from streamcore_kafka.validation import table_problems, text

from .aliyun import aliyun_problems

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

UPSERTS = frozenset({"+U", "-D"})
NORMALIZED = frozenset({"+I", "-U", "+U", "-D"})
WRITABLE = frozenset({"+I", "+U", "-D"})
_AS_JAVA = ("murmur2", "murmur2_random")


def _refused(reason: str) -> Callable[[object], str]:
    return lambda _: f"is not an option of 'upsert-kafka': {reason}"


class UpsertKafka(Kafka):
    """Reads and writes a topic as a table with a primary key: a value upserts, a null deletes."""

    identifier = "upsert-kafka"
    example_columns = ("id BIGINT", "name STRING", "PRIMARY KEY (id) NOT ENFORCED")
    example_options: ClassVar[Mapping[str, str]] = {"topic": "orders"}

    format: Format = option("value.format", "How values are encoded; an insert-only format.")
    key_format: Format = option("key.format", "How keys are encoded; an insert-only format.")
    format_of_both: str | None = option(
        "format",
        "Refused: keys and values each have a format here.",
        default=None,
        check=_refused("set 'key.format' and 'value.format'"),
    )
    key_fields: tuple[str, ...] = option(
        "key.fields",
        "Refused: the columns of the PRIMARY KEY are the key.",
        default=(),
        check=_refused("the columns of the PRIMARY KEY are the key"),
    )
    startup: Startup = option(
        "scan.startup.mode",
        "Where a new query starts. Anything but the beginning misses rows that were written "
        "before and not since, so it needs the acknowledgement below.",
        default=Startup.EARLIEST,
    )
    incomplete_is_fine: bool = option(
        "scan.startup.incomplete-is-fine",
        "Acknowledges that a start elsewhere than at the beginning gives an incomplete table.",
        default=False,
    )
    normalize: bool = option(
        "changelog.normalize",
        "Whether reading keeps the latest row of each key in Spark's state, and so tells inserts "
        "from updates, gives the row before an update, and whole rows for deletes.",
        default=False,
    )
    normalize_ttl: timedelta | None = option(
        "changelog.normalize.ttl",
        "How long the row of a key that no longer changes is kept for that; for ever if unset.",
        default=None,
        check=at_least(1),
    )
    partitioner: Partitioner = option(
        "sink.partitioner",
        "Refused: rows of one key must stay in one partition, which the default sees to.",
        default="default",
    )
    semantic: str | None = option(  # type: ignore[assignment]
        "sink.semantic",
        "Refused: the deprecated name of 'sink.delivery-guarantee'.",
        default=None,
        check=_refused("write 'sink.delivery-guarantee'"),
    )
    buffer_rows: int = option(
        "sink.buffer-flush.max-rows",
        "Keys to collect before writing the latest row of each; 0: write every row.",
        default=0,
        check=at_least(0),
    )
    buffer_interval: timedelta = option(
        "sink.buffer-flush.interval",
        "The longest time rows are collected for; 0: write every row.",
        default=timedelta(0),
        check=at_least(0),
    )
    aliyun: Mapping[str, str | Secret] = option(
        "aliyun.kafka.*",
        "Accepted with a warning: this client writes to topics, it does not manage instances.",
    )

    def problems(self) -> Iterator[Problem | str]:
        yield from super().problems()
        if self.startup is not Startup.EARLIEST and not self.incomplete_is_fine:
            yield Problem(
                "scan.startup.mode",
                f"'{self.startup.value}' misses rows that are older and gives an incomplete table; "
                "set 'scan.startup.incomplete-is-fine' to 'true' if that is meant",
            )
        if self.partitioner.identifier != "default":
            yield Problem(
                "sink.partitioner",
                f"'{self.partitioner.identifier}' "
                + _refused("rows of one key must stay in one partition")(None),
            )
        chosen = text(self.properties.get("partitioner"))
        if chosen and chosen not in _AS_JAVA:
            yield Problem(
                "properties.partitioner",
                f"'{chosen}' is not one of {', '.join(_AS_JAVA)}: rows of one key must stay in the "
                "partition that every other client looks for them in",
            )
        if self.normalize_ttl is not None and not self.normalize:
            yield Problem(
                "changelog.normalize.ttl",
                "has no effect without 'changelog.normalize'; set that to 'true', or remove this",
            )
        if bool(self.buffer_rows) != bool(self.buffer_interval):
            yield Problem(
                "sink.buffer-flush.max-rows",
                "this and 'sink.buffer-flush.interval' must be set together, both greater than 0",
            )
        for key, each in (("key.format", self.key_format), ("value.format", self.format)):
            if each.changelog:
                yield Problem(
                    key,
                    f"'{each.identifier}' carries updates and deletes itself; 'upsert-kafka' needs "
                    "an insert-only format, or use connector 'kafka' for this topic",
                )
        yield from aliyun_problems(self.aliyun)

    def metadata(self) -> Mapping[str, MetadataKey]:
        # The value format's own metadata stays hidden: a tombstone has none to give.
        found = metadata_keys(self.format, topic_is_writable=self.routes_by_row)
        return {k: each for k, each in found.items() if not k.startswith("value.")}

    def produces(self) -> frozenset[str]:
        if self.bounded():  # read as a batch, which gives the table's rows and not its changes
            return INSERT_ONLY
        return NORMALIZED if self.normalize else UPSERTS

    def accepts(self) -> frozenset[str]:
        return WRITABLE

    def table_problems(self, table: Table, *, writing: bool) -> Iterator[Problem | str]:
        if not table.primary_key:
            yield Problem(
                "PRIMARY KEY",
                "required: it is the key of the messages, and says which row one updates or "
                "deletes; declare PRIMARY KEY (columns) NOT ENFORCED",
            )
            return
        for name in table.primary_key:
            column = table.by_name.get(name)
            if column is not None and column.field.type.num_fields:
                yield Problem(
                    "PRIMARY KEY",
                    f"column '{name}' is {column.type}, and keys of that type cannot be compared; "
                    "choose columns of simple types",
                )
        plain = dataclasses.replace(table, primary_key=())
        yield from table_problems(self.keyed(table), plain, writing=writing)

    def online_problems(self, table: Table, *, writing: bool) -> Iterator[Problem | str]:
        plain = dataclasses.replace(self, normalize=False)
        yield from Kafka.online_problems(plain, table, writing=writing)

    def keyed(self, table: Table) -> UpsertKafka:
        """The same connector, knowing which columns are the key of this table's messages."""
        return dataclasses.replace(self, key_fields=table.primary_key)

    def reader(self, table: Table) -> DataSourceReader:
        from .snapshot import SnapshotReader

        return SnapshotReader(self.keyed(table), table)

    def stream_reader(self, table: Table) -> DataSourceStreamReader:
        from streamcore_kafka.source import KafkaStreamReader

        from .collapsing import CollapsingStreamReader, is_collapsed

        if is_collapsed(table):
            return CollapsingStreamReader(self.keyed(table), table)
        if self.normalize:
            problem = Problem(
                "changelog.normalize",
                "needs state, which a plain read has not; call "
                "streamcore.spark.changes.read_changes(spark, options, schema), and write its "
                "result in update mode",
            )
            raise OptionError("connector 'upsert-kafka'", [problem])
        return KafkaStreamReader(self.keyed(table), table, upsert=True)

    def stream_frame(self, load: Callable[[Table], DataFrame], table: Table) -> DataFrame:
        if not self.normalize:
            return load(table)
        from .collapsing import with_batch
        from .normalizing import normalized

        if self.normalize_ttl is not None:
            self._check_pandas()
        wanted = [column.name for column in table.output]
        return normalized(load(with_batch(table)), table, self).select(*wanted)

    def _check_pandas(self) -> None:
        if find_spec("pandas") is None:
            problem = Problem(
                "changelog.normalize.ttl",
                "needs pandas, which is not installed; pip install 'streamcore-upsert-kafka[ttl]'",
            )
            raise OptionError("connector 'upsert-kafka'", [problem])

    def stream_updates(self) -> bool:
        return self.normalize

    def with_old_rows(self) -> Mapping[str, str]:
        return {"changelog.normalize": "true"}

    def forgets_rows(self) -> bool:
        return self.normalize_ttl is not None

    def writer(self, table: Table) -> DataSourceWriter:
        from .sink import UpsertWriter

        return UpsertWriter(self.keyed(table), table)

    def stream_writer(self, table: Table) -> DataSourceStreamWriter:
        from .sink import UpsertStreamWriter

        return UpsertStreamWriter(self.keyed(table), table)
