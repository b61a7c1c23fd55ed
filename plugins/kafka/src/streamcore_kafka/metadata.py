"""The metadata columns of Kafka tables: their types, and their values for a batch of messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from streamcore import Format, MetadataKey

_TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")
_HEADER = pa.struct([pa.field("key", pa.string(), False), pa.field("value", pa.binary())])


def metadata_keys(value_format: Format, *, topic_is_writable: bool) -> Mapping[str, MetadataKey]:
    """What a table can declare: Kafka's own keys, and those of its value format under `value.`."""
    ours = {
        "topic": MetadataKey("STRING NOT NULL", "Topic of the record.", topic_is_writable),
        "partition": MetadataKey("INT NOT NULL", "Partition of the record."),
        "headers": MetadataKey(
            "MAP<STRING, BYTES> NOT NULL", "Headers; of equal names the last one counts.", True
        ),
        "header-list": MetadataKey(
            "ARRAY<ROW<`key` STRING NOT NULL, `value` BYTES>> NOT NULL",
            "Headers in their order, equal names kept.",
            True,
        ),
        "leader-epoch": MetadataKey("INT", "Leader epoch of the record, if the broker tells."),
        "offset": MetadataKey("BIGINT NOT NULL", "Offset of the record in its partition."),
        "timestamp": MetadataKey("TIMESTAMP_LTZ(3) NOT NULL", "Timestamp of the record.", True),
        "timestamp-type": MetadataKey(
            "STRING NOT NULL", "Who set the timestamp: " + ", ".join(_TIMESTAMP_TYPES) + "."
        ),
    }
    theirs = {f"value.{key}": spec for key, spec in value_format.metadata_keys.items()}
    return {**ours, **theirs}


def _epoch(message: Any) -> int | None:
    epoch: int | None = message.leader_epoch()
    return epoch if epoch is not None and epoch >= 0 else None


def _header_map(message: Any) -> list[tuple[str, bytes | None]]:
    return list(dict(message.headers() or ()).items())


def _header_list(message: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in message.headers() or ()]


_COLUMNS: Mapping[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    "topic": (pa.string(), lambda message: message.topic()),
    "partition": (pa.int32(), lambda message: message.partition()),
    "headers": (pa.map_(pa.string(), pa.binary()), _header_map),
    "header-list": (pa.list_(_HEADER), _header_list),
    "leader-epoch": (pa.int32(), _epoch),
    "offset": (pa.int64(), lambda message: message.offset()),
    "timestamp": (pa.timestamp("ms", "UTC"), lambda message: message.timestamp()[1]),
    "timestamp-type": (pa.string(), lambda message: _TIMESTAMP_TYPES[message.timestamp()[0]]),
}


def metadata_arrays(keys: Sequence[str], messages: Sequence[Any]) -> Mapping[str, pa.Array]:
    """One array per wanted key, with one value per message."""
    arrays = {}
    for key in keys:
        kind, value = _COLUMNS[key]
        arrays[key] = pa.array(map(value, messages), kind, size=len(messages))
    return arrays
