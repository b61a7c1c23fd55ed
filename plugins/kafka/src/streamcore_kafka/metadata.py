"""The metadata columns of Kafka tables: their types, and their values for a batch of messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamcore import Format, MetadataKey

if TYPE_CHECKING:
    import pyarrow as pa

_TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")

KEYS: Mapping[str, MetadataKey] = {
    "topic": MetadataKey("STRING NOT NULL", "Topic of the record."),
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


def metadata_keys(value_format: Format, *, topic_is_writable: bool) -> Mapping[str, MetadataKey]:
    """What a table can declare: Kafka's own keys, and those of its value format under `value.`."""
    topic = {"topic": replace(KEYS["topic"], writable=topic_is_writable)}
    theirs = {f"value.{key}": spec for key, spec in value_format.metadata_keys.items()}
    return {**KEYS, **topic, **theirs}


def _epoch(message: Any) -> int | None:
    epoch: int | None = message.leader_epoch()
    return epoch if epoch is not None and epoch >= 0 else None


def _header_map(message: Any) -> list[tuple[str, bytes | None]]:
    return list(dict(message.headers() or ()).items())


def _header_list(message: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in message.headers() or ()]


_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "topic": lambda message: message.topic(),
    "partition": lambda message: message.partition(),
    "headers": _header_map,
    "header-list": _header_list,
    "leader-epoch": _epoch,
    "offset": lambda message: message.offset(),
    "timestamp": lambda message: message.timestamp()[1],
    "timestamp-type": lambda message: _TIMESTAMP_TYPES[message.timestamp()[0]],
}


def metadata_arrays(keys: Sequence[str], messages: Sequence[Any]) -> Mapping[str, pa.Array]:
    """One array per wanted key, with one value per message."""
    import pyarrow as pa
    from streamcore.types import arrow_field

    return {
        key: pa.array(
            map(_VALUES[key], messages), arrow_field("", KEYS[key].type).type, size=len(messages)
        )
        for key in keys
    }
