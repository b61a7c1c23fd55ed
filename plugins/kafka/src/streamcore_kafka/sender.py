"""Hands messages to a producer: quickly, in bounded memory, and knowing which ones failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import repeat
from typing import Any

from streamcore import ConnectionFailed, RecordError

from .client import KafkaError, KafkaException, explain, producer
from .idle import Idle
from .keystores import Settings, text
from .messages import Messages

BUFFERS: Mapping[str, str] = {
    "queue.buffering.max.messages": "200000",
    "queue.buffering.max.kbytes": "65536",
    "linger.ms": "50",
}
"""Memory for messages on their way, and how long to fill a batch; the end of a task never waits."""
KEPT = 16
"""Idle producers a process keeps, each for one set of properties; a transaction has its own."""
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
        self._failures: list[tuple[str, KafkaError]] = []
        self.producer = producer(
            properties,
            **{**buffers(properties), **overrides},
            **{"on_delivery": _noting(self._failures), "delivery.report.only.error": True},
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
        sender = _IDLE.take(key) or cls(properties, **overrides)
        sender.rows, sender.bytes, sender.seconds = 0, 0, 0.0
        try:
            yield sender
            sender.flush()
        except BaseException:
            sender.discard()
            raise
        _IDLE.keep(key, sender)

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
            first = 0 if error.args[0].fatal() else len(self._failures)
            self._failures.insert(first, ("", error.args[0]))
        except SystemError:  # the library's way to say that two errors came at once
            self._failures.append(("", KafkaError(KafkaError._FATAL)))
        if self._failures:
            raise self._undelivered(*self._failures[0])
        return left

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
        if error.name() == "MSG_SIZE_TOO_LARGE":
            raised = "raise 'max.message.bytes' of the topic, or lower 'properties.batch.size'"
            reason = f"{reason.rstrip('.')}; {raised}."
        if error.name() == "_MSG_TIMED_OUT":
            limit = text(self._properties.get("delivery.timeout.ms")) or "120000"
            where += f"not delivered within 'properties.delivery.timeout.ms' ({limit} ms): "
        return Undelivered(where + reason, error)


_IDLE: Idle[Sender] = Idle(KEPT, close=lambda sender: None)  # it ends with its last reference
close_all = _IDLE.close


def _noting(failures: list[tuple[str, KafkaError]]) -> Callable[[KafkaError | None, Any], None]:
    """A callback that knows no sender: a cycle would keep producers open until it is collected."""

    def note(error: KafkaError | None, message: Any) -> None:
        if error is not None and not failures:
            failures.append((message.topic(), error))

    return note


def _is_special(messages: Messages) -> bool:
    extras: tuple[object, ...] = (messages.partitions, messages.timestamps, messages.headers)
    return any(extra is not None for extra in extras)


_SAME = {
    "linger.ms": {"linger.ms", "queue.buffering.max.ms"},
    "queue.buffering.max.kbytes": {"queue.buffering.max.kbytes", "buffer.memory"},
}


def buffers(properties: Settings) -> dict[str, str]:
    """Our settings of memory and time, where the user has none."""
    given = {key.lower() for key in properties}
    return {key: value for key, value in BUFFERS.items() if not _SAME.get(key, {key}) & given}
