"""Messages as they are, through the same connector a table would use, without Spark running."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from streamcore import Column, Connector, Table
from streamcore.registry import installed


@dataclass(frozen=True)
class Message:
    """One record before any format touched it."""

    key: bytes | None
    value: bytes | None
    position: str
    time: datetime | None
    headers: Mapping[str, bytes | None]


_KAFKA = Table(
    (
        Column("_key", "BYTES"),
        Column("_value", "BYTES"),
        Column("topic", "STRING", metadata="topic", virtual=True),
        Column("partition", "INT", metadata="partition", virtual=True),
        Column("offset", "BIGINT", metadata="offset", virtual=True),
        Column("time", "TIMESTAMP_LTZ(3)", metadata="timestamp", virtual=True),
        Column("headers", "MAP<STRING, BYTES>", metadata="headers", virtual=True),
    ),
    "sample",
)
_KINESIS = Table(
    (
        Column("_value", "BYTES"),
        Column("shard", "STRING", metadata="shard-id", virtual=True),
        Column("sequence", "STRING", metadata="sequence-number", virtual=True),
        Column("time", "TIMESTAMP_LTZ(3)", metadata="timestamp", virtual=True),
    ),
    "sample",
)
_RAW_KEY = {
    "key.format": "raw",
    "key.fields": "_key",
    "value.format": "raw",
    "value.fields-include": "EXCEPT_KEY",
}


def address(options: Mapping[str, str]) -> dict[str, str]:
    """How the brokers of any Kafka table are reached, for the plain connector."""
    return {key: value for key, value in options.items() if key.startswith("properties.")}


def sample(connector: str, options: Mapping[str, str], count: int) -> list[Message]:
    """The first messages a read with these options finds; formats in the options are ignored."""
    is_kafka = "kafka" in connector
    plain = {k: v for k, v in options.items() if not _is_about_format(k)}
    plain |= _RAW_KEY if is_kafka else {"format": "raw"}
    built: Connector = installed().build("connector", connector, plain)
    table = _KAFKA if is_kafka else _KINESIS
    messages = []
    for row in _rows(built, table, count):
        messages.append(_kafka_message(row) if is_kafka else _kinesis_message(row))
    return messages


def _rows(connector: Connector, table: Table, count: int) -> Iterator[dict[str, Any]]:
    reader = connector.reader(table)
    left = count
    for partition in reader.partitions():
        batches = reader.read(partition)
        for batch in batches:
            rows = batch.slice(0, left).to_pylist()  # type: ignore[union-attr]
            yield from rows
            left -= len(rows)
            if left <= 0:
                return


def _is_about_format(key: str) -> bool:
    first = key.split(".")[0]
    known = {"format", "key", "value", *installed().names("format")}
    return first in known


def _kafka_message(row: dict[str, Any]) -> Message:
    position = f"{row['topic']}@{row['partition']}:{row['offset']}"
    return Message(row["_key"], row["_value"], position, row["time"], dict(row["headers"] or ()))


def _kinesis_message(row: dict[str, Any]) -> Message:
    return Message(None, row["_value"], f"{row['shard']}:{row['sequence']}", row["time"], {})
