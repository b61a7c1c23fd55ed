"""Hands messages to a producer: quickly, in bounded memory, and knowing which ones failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import repeat
from typing import Any

from streamcore import ConnectionFailed, RecordError

from .client import KafkaError, KafkaException, explain, producer
from .keystores import Settings, text
from .messages import Messages

BUFFERS: Mapping[str, str] = {
    "queue.buffering.max.messages": "200000",
    "queue.buffering.max.kbytes": "65536",
    "linger.ms": "50",
}
"""Memory for messages on their way, and how long to fill a batch; the end of a task never waits."""
_SHORT = 0.05


class Undelivered(ConnectionFailed):
    """A message could not be written; `error` is what the client says."""

    def __init__(self, told: str, error: KafkaError) -> None:
        super().__init__(told)
        self.error = error


class Sender:
    """Sends the messages of one task; a message that cannot be delivered fails it."""

    def __init__(self, properties: Settings, **overrides: object) -> None:
        self._properties = properties
        self._failed: tuple[str, KafkaError] | None = None
        given = {key.lower() for key in properties}
        buffers = {key: value for key, value in BUFFERS.items() if not _is_given(key, given)}
        self.producer = producer(
            properties,
            **{**buffers, **overrides},
            **{"on_delivery": self._on_failure, "delivery.report.only.error": True},
        )
        self.rows = 0
        self.bytes = 0
        self.seconds = 0.0
        self.repeated = False
        """Whether the rows were there already, from an earlier attempt."""

    @classmethod
    @contextmanager
    def borrowed(cls, properties: Settings, **overrides: object) -> Iterator[Sender]:
        """A sender that the process keeps for its next task, unless this one fails."""
        key = frozenset({**properties, **overrides}.items())
        sender = _IDLE.pop(key, None) or cls(properties, **overrides)
        sender.rows, sender.bytes, sender.seconds = 0, 0, 0.0
        try:
            yield sender
            sender.flush()
        except BaseException:
            sender.discard()
            raise
        _IDLE[key] = sender

    def send(self, messages: Messages) -> None:
        """Queue a batch, waiting while the queue is full; raises for an earlier failure."""
        began = time.perf_counter()
        try:
            if isinstance(messages.topic, str) and not _is_special(messages):
                self._send_plain(messages.topic, messages)
            else:
                self._send_special(messages)
        except KafkaException as error:
            raise self._refused(error.args[0], messages) from None
        self._served(self.producer.poll, 0)
        self.rows += len(messages.values)
        self.bytes += sum(map(len, filter(None, messages.values)))
        self.seconds += time.perf_counter() - began

    def flush(self) -> None:
        """Return when every message is delivered; raise when one is not."""
        began = time.perf_counter()
        while self._served(self.producer.flush, 1.0):
            continue
        self.seconds += time.perf_counter() - began

    def discard(self) -> None:
        """Drop what is still queued, after a failure."""
        self.producer.purge(in_queue=True, in_flight=True, blocking=False)
        with suppress(KafkaException, SystemError):  # the failure is known already
            self.producer.flush(1.0)

    def _send_plain(self, topic: str, messages: Messages) -> None:
        produce, keys = self.producer.produce, messages.keys
        if keys is None:
            for value in messages.values:
                try:
                    produce(topic, value)
                except BufferError:
                    self._produce_when_there_is_room(topic, value)
        else:
            for key, value in zip(keys, messages.values, strict=True):
                try:
                    produce(topic, value, key)
                except BufferError:
                    self._produce_when_there_is_room(topic, value, key)

    def _send_special(self, messages: Messages) -> None:
        produce, topics = self.producer.produce, messages.topic
        rows = zip(
            repeat(topics) if isinstance(topics, str) else topics,
            messages.values,
            messages.keys if messages.keys is not None else repeat(None),
            messages.partitions if messages.partitions is not None else repeat(-1),
            messages.timestamps if messages.timestamps is not None else repeat(0),
            messages.headers if messages.headers is not None else repeat(None),
            strict=False,
        )
        for topic, value, key, partition, timestamp, headers in rows:
            message = (topic, value, key, partition, None, None, timestamp, headers)
            try:
                produce(*message)
            except BufferError:
                self._produce_when_there_is_room(*message)

    def _produce_when_there_is_room(self, *message: Any) -> None:
        """Wait for the broker: this is what slows a task down to the broker's pace."""
        while True:
            self._served(self.producer.poll, _SHORT)
            try:
                self.producer.produce(*message)
                return
            except BufferError:
                continue

    def _served(self, call: Callable[[float], int], seconds: float) -> int:
        """Let the client report; raise for a message it could not deliver."""
        left = 0
        try:
            left = call(seconds)
        except KafkaException as error:
            if self._failed is None or error.args[0].fatal():
                self._failed = ("", error.args[0])
        except SystemError:  # the library's way to say that two errors came at once
            self._failed = self._failed or ("", KafkaError(KafkaError._FATAL))
        if self._failed is not None:
            raise self._undelivered(*self._failed)
        return left

    def _on_failure(self, error: KafkaError | None, message: Any) -> None:
        if error is not None and self._failed is None:
            self._failed = (message.topic(), error)

    def _refused(self, error: KafkaError, messages: Messages) -> Exception:
        """A message the client itself would not take, most often for its size."""
        topic = messages.topic if isinstance(messages.topic, str) else messages.topic[0]
        if error.name() != "MSG_SIZE_TOO_LARGE":
            return self._undelivered(topic, error)
        size = max(map(len, filter(None, messages.values)))
        return RecordError(
            f"topic '{topic}': a message of {size} bytes is too large; raise "
            "'properties.max.request.size', and 'max.message.bytes' of the topic"
        )

    def _undelivered(self, topic: str, error: KafkaError) -> Undelivered:
        """Say which topic a message could not be written to, and why."""
        reason, where = str(explain(error, self._properties)), f"topic '{topic}': " if topic else ""
        if error.name() == "_MSG_TIMED_OUT":
            limit = text(self._properties.get("delivery.timeout.ms")) or "120000"
            where += f"not delivered within 'properties.delivery.timeout.ms' ({limit} ms): "
        return Undelivered(where + reason, error)


_IDLE: dict[frozenset[tuple[str, object]], Sender] = {}


def _is_special(messages: Messages) -> bool:
    extras: tuple[object, ...] = (messages.partitions, messages.timestamps, messages.headers)
    return any(extra is not None for extra in extras)


_SAME = {
    "linger.ms": {"linger.ms", "queue.buffering.max.ms"},
    "queue.buffering.max.kbytes": {"queue.buffering.max.kbytes", "buffer.memory"},
}


def _is_given(key: str, given: set[str]) -> bool:
    return bool(_SAME.get(key, {key}) & given)
