"""Everything that can be wrong with a Kafka table before a broker is asked."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from streamcore import Format, OptionWarning, Problem, Secret, Table
from streamcore.failures import FailureHandler

from .offsets import COMMITTED, EARLIEST, EXAMPLE, LATEST, Bounded, Startup, parse_specific
from .topics import SHARE, TOPIC_NAME, JavaOnly, java_pattern, matches

if TYPE_CHECKING:
    from .connector import Kafka

LONGEST_PREFIX = 64_000
RESETS = ("earliest", "latest", "none")


def text(value: str | Secret | None) -> str:
    """A property's text; empty when it is not set."""
    return value.reveal() if isinstance(value, Secret) else value or ""


def option_problems(kafka: Kafka) -> Iterator[Problem]:
    """Complain about options that do not go together, on either side of a table."""
    from .client import check_properties

    if not kafka.servers.strip():
        yield Problem("properties.bootstrap.servers", "is empty; write host:port,host:port")
    yield from _topic_problems(kafka)
    yield from _startup_problems(kafka)
    yield from _bounded_problems(kafka)
    yield from _commit_problems(kafka.properties)
    yield from _failure_problems(kafka)
    yield from _watermark_problems(kafka)
    yield from _sink_problems(kafka)
    yield from check_properties(kafka.properties)


def table_problems(kafka: Kafka, table: Table, *, writing: bool) -> Iterator[Problem | str]:
    """Complain about columns and keys, and about what only one side of a table needs."""
    from streamcore.rows import key_problems, key_value

    if table.primary_key and not kafka.format.changelog:
        yield Problem(
            "PRIMARY KEY",
            f"format '{kafka.format.identifier}' only appends rows, so this table cannot "
            "keep a key unique; remove the key, or use connector 'upsert-kafka'",
        )
    if writing and table.partition_keys:
        yield Problem(
            "PARTITIONED BY",
            "Kafka chooses a row's partition by its key or 'sink.partitioner', not by columns; "
            "remove it",
        )
    found = list(
        key_problems(
            table, kafka.key_format, kafka.key_fields, kafka.key_prefix, kafka.value_fields
        )
    )
    yield from found
    if not found:
        layout = key_value(table, kafka.key_fields, kafka.key_prefix, kafka.value_fields)
        value, key = written_formats(kafka) if writing else (kafka.format, kafka.key_format)
        yield from value.schema_problems(layout.value_schema, writing=writing)
        if key is not None:
            yield from key.schema_problems(layout.key_schema, writing=writing)
    if writing:
        yield from _written_metadata_problems(table)
    else:
        yield from _group_problems(kafka)


def written_formats(kafka: Kafka) -> tuple[Format, Format | None]:
    """The formats of values and keys, told the topic they write to where there is only one."""
    value, key = kafka.format, kafka.key_format
    if len(set(kafka.topic)) == 1:
        value = value.written_to(kafka.topic[0], "value")
        key = key.written_to(kafka.topic[0], "key") if key else None
    return value, key


# --- topics, start and end --------------------------------------------------------------


def _topic_problems(kafka: Kafka) -> Iterator[Problem]:
    if kafka.topic and kafka.topic_pattern is not None:
        yield Problem("topic", "'topic' and 'topic-pattern' cannot both be set; keep one")
    if not kafka.topic and kafka.topic_pattern is None:
        yield Problem("topic", "either 'topic' or 'topic-pattern' must be set")
    for name in kafka.topic:
        if not TOPIC_NAME.fullmatch(name):
            yield _no_name("topic", name)
    for number in kafka.only_partitions:
        share = SHARE.fullmatch(number)
        if share is None or (share[2] and int(share[1]) >= int(share[2])):
            yield Problem("scan.partitions", f"'{number}' is not the number of a partition")
    if kafka.topic_pattern is not None:
        try:
            java_pattern(kafka.topic_pattern)
        except JavaOnly as error:
            yield Problem("topic-pattern", f"'{kafka.topic_pattern}': {error}")
        except re.error as error:
            yield Problem(
                "topic-pattern", f"'{kafka.topic_pattern}' is not a regular expression: {error}"
            )


def _no_name(key: str, name: str) -> Problem:
    allowed = "use 1 to 249 letters, digits, '.', '_' and '-'"
    return Problem(key, f"'{name}' is not a topic name; {allowed}")


def _startup_problems(kafka: Kafka) -> Iterator[Problem]:
    mode, specific = kafka.startup, "scan.startup.specific-offsets"
    if mode is Startup.TIMESTAMP and kafka.startup_millis is None:
        yield _required("scan.startup.timestamp-millis", "scan.startup.mode", mode.value)
    if mode is Startup.SPECIFIC and kafka.startup_offsets is None:
        yield _required(specific, "scan.startup.mode", mode.value)
    yield from _specific_problems(
        kafka, specific, kafka.startup_offsets, mode is Startup.SPECIFIC, (LATEST, EARLIEST)
    )
    reset = text(kafka.properties.get("auto.offset.reset"))
    if mode is Startup.GROUP and reset and reset.lower() not in RESETS:
        yield Problem(
            "properties.auto.offset.reset", f"'{reset}' is not one of {', '.join(RESETS)}"
        )


def _bounded_problems(kafka: Kafka) -> Iterator[Problem]:
    mode, specific = kafka.bounded_mode, "scan.bounded.specific-offsets"
    if mode is Bounded.TIMESTAMP and kafka.bounded_millis is None:
        yield _required("scan.bounded.timestamp-millis", "scan.bounded.mode", mode.value)
    if mode is Bounded.SPECIFIC and kafka.bounded_offsets is None:
        yield _required(specific, "scan.bounded.mode", mode.value)
    yield from _specific_problems(
        kafka, specific, kafka.bounded_offsets, mode is Bounded.SPECIFIC, (LATEST,)
    )


def _specific_problems(
    kafka: Kafka, key: str, given: str | None, used: bool, sentinels: tuple[int, ...]
) -> Iterator[Problem]:
    if given is None:
        return
    try:
        offsets = parse_specific(given)
    except ValueError:
        yield Problem(key, f"'{given}' does not look like '{EXAMPLE}'")
        return
    if not used:
        return
    if len(set(kafka.topic)) != 1:
        yield Problem(key, "lists the partitions of one topic; set exactly one 'topic'")
    for partition, offset in offsets.items():
        if offset == COMMITTED:
            if not kafka.group:
                yield Problem(
                    "properties.group.id",
                    f"required because '{key}' takes partition {partition} from the group (-3)",
                )
        elif offset < 0 and offset not in sentinels:
            names = ", ".join(str(number) for number in (*sentinels, COMMITTED))
            yield Problem(
                key,
                f"{offset} of partition {partition} is no offset; "
                f"write 0 or more, or one of {names}",
            )


def _required(key: str, mode_key: str, mode: str) -> Problem:
    return Problem(key, f"required when '{mode_key}' is '{mode}'")


def _group_problems(kafka: Kafka) -> Iterator[Problem]:
    if kafka.group:
        return
    if kafka.startup is Startup.GROUP:
        yield Problem(
            "properties.group.id",
            "required when 'scan.startup.mode' is 'group-offsets', which is the default; "
            "set it, or start elsewhere, such as at 'earliest-offset'",
        )
    if kafka.bounded_mode is Bounded.GROUP:
        yield _required("properties.group.id", "scan.bounded.mode", Bounded.GROUP.value)


def _commit_problems(properties: Mapping[str, str | Secret]) -> Iterator[Problem]:
    commits = text(properties.get("commit.offsets.on.checkpoint"))
    if commits and commits.lower() not in ("true", "false"):
        yield Problem(
            "properties.commit.offsets.on.checkpoint", f"'{commits}' is not one of true, false"
        )
    for key in ("enable.auto.commit", "commit.offsets.on.checkpoint"):
        if text(properties.get(key)).lower() == "true" and not properties.get("group.id"):
            yield Problem("properties.group.id", f"required when 'properties.{key}' is 'true'")


# --- failures, watermarks, writing --------------------------------------------------------


def _failure_problems(kafka: Kafka) -> Iterator[Problem]:
    dead_letters = kafka.failure_handler is FailureHandler.DEAD_LETTER
    if dead_letters and not kafka.failure_topic:
        yield _required("scan.deser.failure-topic", "scan.deser.failure-handler", "dead-letter")
    if kafka.failure_topic and not TOPIC_NAME.fullmatch(kafka.failure_topic):
        yield _no_name("scan.deser.failure-topic", kafka.failure_topic)
    if kafka.failure_topic and _is_read(kafka, kafka.failure_topic):
        yield Problem(
            "scan.deser.failure-topic",
            f"'{kafka.failure_topic}' is read by this table; choose another for dead letters",
        )


def _is_read(kafka: Kafka, topic: str) -> bool:
    if kafka.topic_pattern is None:
        return topic in kafka.topic
    try:
        return matches(java_pattern(kafka.topic_pattern), topic)
    except re.error:  # a problem of its own
        return False


def _watermark_problems(kafka: Kafka) -> Iterator[Problem]:
    if kafka.watermark_lanes is not None:
        if not kafka.per_partition_watermark:
            trouble = "has an effect only with 'scan.watermark.per-partition' = 'true'; set it"
            yield Problem("scan.watermark.lanes", trouble)
        elif len(set(kafka.topic)) != 1 or kafka.only_partitions:
            trouble = "is for all partitions of one topic; set one 'topic', no 'scan.partitions'"
            yield Problem("scan.watermark.lanes", trouble)
    if kafka.per_partition_watermark and kafka.idle_timeout:
        yield Problem(
            "scan.watermark.idle-timeout",
            "Spark cannot let an idle partition go; remove this, or "
            "'scan.watermark.per-partition', without which idle partitions hold nothing back",
        )


def _sink_problems(kafka: Kafka) -> Iterator[Problem]:
    from .connector import Delivery

    if kafka.semantic is not None:
        warnings.warn(
            "'sink.semantic' is deprecated; write 'sink.delivery-guarantee'",
            OptionWarning,
            stacklevel=2,
        )
    if kafka.partitioner.identifier == "round-robin" and kafka.key_fields:
        yield Problem("sink.partitioner", "'round-robin' works only without 'key.fields'")
    prefix = kafka.transactional_prefix
    if kafka.guarantee is Delivery.EXACTLY_ONCE and not prefix:
        key = "sink.semantic" if kafka.semantic else "sink.delivery-guarantee"
        yield _required("sink.transactional-id-prefix", key, kafka.guarantee.value)
    if kafka.guarantee is Delivery.EXACTLY_ONCE:
        yield from _once_problems(kafka.properties)
    if prefix and len(prefix.encode()) > LONGEST_PREFIX:
        yield Problem(
            "sink.transactional-id-prefix",
            f"has {len(prefix.encode())} bytes; {LONGEST_PREFIX} are allowed",
        )


_ONCE = {
    "acks": (re.compile("all|-1", re.IGNORECASE), "'all'"),
    "request.required.acks": (re.compile("all|-1", re.IGNORECASE), "'all'"),
    "enable.idempotence": (re.compile("(?!false).*", re.IGNORECASE), "'true'"),
    "max.in.flight": (re.compile("[1-5]"), "1 to 5"),
    "max.in.flight.requests.per.connection": (re.compile("[1-5]"), "1 to 5"),
    "message.send.max.retries": (re.compile("(?!0$).*"), "1 or more"),
    "retries": (re.compile("(?!0$).*"), "1 or more"),
}
"""What a transaction asks of the settings of its producer."""


def _once_problems(properties: Mapping[str, str | Secret]) -> Iterator[Problem]:
    for key, (fits, wanted) in _ONCE.items():
        given = text(properties.get(key))
        if given and not fits.fullmatch(given):
            yield Problem(
                f"properties.{key}",
                f"'{given}' does not go with 'exactly-once'; set it to {wanted}, or remove it",
            )


def _written_metadata_problems(table: Table) -> Iterator[Problem]:
    written = {column.metadata: column.name for column in table.writable if column.metadata}
    if "headers" in written and "header-list" in written:
        yield Problem(
            written["header-list"],
            "metadata 'headers' and 'header-list' cannot both be written; "
            "declare one of them VIRTUAL",
        )
