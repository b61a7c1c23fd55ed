"""Sends records that are no rows to a topic of their own, with the reason in their headers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from streamcore import ConnectionFailed
from streamcore.failures import BadRecord

from .client import partitions_of
from .messages import Headers, Messages
from .sender import Sender

if TYPE_CHECKING:
    from .connector import Kafka

PREFIX = "streamcore."
"""Begins the headers we add: topic, partition, offset, key (if there is one) and reason."""


def dead_letter_sender(kafka: Kafka) -> Callable[[Sequence[BadRecord]], None]:
    """What a failure policy calls; returns when the letters are delivered, or raises."""
    topic = kafka.failure_topic
    assert topic is not None, "checked with the options"

    def send(bad: Sequence[BadRecord]) -> None:
        letters = Messages(
            values=[record.value for record in bad],
            keys=[record.key for record in bad],
            topic=topic,
            headers=[_headers(record) for record in bad],
        )
        try:
            partitions_of(topic, kafka.properties)
            with Sender.borrowed(kafka.properties) as sender:
                sender.send(letters)
        except ConnectionFailed as error:  # of the login, it does not tell the topic
            told = str(error).removeprefix(f"topic '{topic}': ")
            raise ConnectionFailed(
                f"dead letters cannot be written to topic '{topic}': {told}"
            ) from error

    return send


def _headers(record: BadRecord) -> Headers:
    """The record's own headers, and then ours."""
    ours: Headers = [(PREFIX + name, text.encode()) for name, text in record.origin]
    if record.key is not None:
        ours.append((PREFIX + "key", record.key))
    reason = record.reason.encode("utf-8", "backslashreplace")  # it may quote what is no text
    return [*record.headers, *ours, (PREFIX + "reason", reason)]
