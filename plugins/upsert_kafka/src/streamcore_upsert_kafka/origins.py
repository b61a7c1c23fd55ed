"""Which change of a key is the latest, also of a key that is in several partitions.

A key is in one partition, as a rule. It is in more when topics share it, when a topic was given
more partitions, or when its writers choose partitions differently. In a partition the last change
counts; of several partitions, the change that was written last.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamcore import ROW_KIND, Column, Table
from streamcore_kafka.reading import read_rows
from streamcore_kafka.source import KafkaPartition

from .latest import LatestRows, latest_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from streamcore_kafka.connector import Kafka
    from streamcore_kafka.progress import Range

_KIND = Column(ROW_KIND, "STRING", metadata="row-kind", virtual=True)
_TIME = Column("_origin_time", "TIMESTAMP_LTZ(3)", metadata="timestamp", virtual=True)
_TOPIC = Column("_origin_topic", "STRING", metadata="topic", virtual=True)
_PARTITION = Column("_origin_partition", "INT", metadata="partition", virtual=True)


def in_one_task(kafka: Kafka, shares: Sequence[InputPartition]) -> Sequence[InputPartition]:
    """All ranges together where keys may be in several of them: only then one task sees all.

    That is so for several topics, and for one if the user says so by asking for one task.
    """
    if not (_several_topics(kafka) or kafka.scan_parallelism == 1):
        return shares
    return [KafkaPartition(tuple(each for share in shares for each in share.value))]


def _several_topics(kafka: Kafka) -> bool:
    return kafka.topic_pattern is not None or len(set(kafka.topic)) > 1


def with_key_and_kind(table: Table) -> Table:
    """The table as a task must read it: with every key column and the kind of change."""
    return _also_reading(table, (_KIND,))


def with_origins(table: Table, kafka: Kafka) -> Table:
    """The same, with where and when each change was written."""
    topic = (_TOPIC,) if _several_topics(kafka) else ()
    return _also_reading(table, (_KIND, _TIME, *topic, _PARTITION))


def _also_reading(table: Table, columns: Sequence[Column]) -> Table:
    more = tuple(column for column in columns if column.name not in table.by_name)
    whole = dataclasses.replace(table, columns=(*table.columns, *more))
    wanted = [column.name for column in table.output]
    needed = (*table.primary_key, *(column.name for column in columns))
    return whole.reading([*wanted, *(name for name in needed if name not in wanted)])


def latest_changes(kafka: Kafka, table: Table, ranges: Sequence[Range]) -> pa.Table | None:
    """The latest change of each key, as a task reads it; None if there is none.

    The table is one with origins, of which the result keeps nothing.
    """
    names = [column.name for column in table.output]
    origin = [c.name for c in (_TIME, _TOPIC, _PARTITION) if c.name in names]
    rows = LatestRows([*table.primary_key, *origin[1:]])
    for batch in read_rows(kafka, table, ranges, upsert=True):
        rows.add(batch)
    found = rows.take()
    if found is None:
        return None
    latest = latest_rows(found, table.primary_key)
    if latest.num_rows < found.num_rows:
        found = found.sort_by([(name, "ascending") for name in origin])
        latest = latest_rows(found, table.primary_key)
    return latest.drop_columns(origin)
