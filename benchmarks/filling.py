"""Topics filled: messages that differ by a producer, and again and again by their own batches."""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import BinaryIO

from streamcore.testing.services import KafkaBroker

from .data import Event, events
from .measure import BenchmarkError

DISTINCT = 100_000
"""Messages that differ in a topic; a longer one repeats them."""
_PORTION = 10_000_000
"""Bytes handed to the producer at once."""
_PRODUCE, _VERSION, _ALL_REPLICAS, _TIMEOUT_MS = 0, 3, -1, 30_000
_NO_TEXT = -1
_NO_LEADER = {3, 5, 6}
"""Errors of a partition that is being created: unknown, without a leader, or not led here yet."""


def produce(
    servers: str, topic: str, encode: Callable[[Event], bytes], count: int, partitions: int
) -> None:
    """Write so many messages that differ; message n goes to partition n modulo their number."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    messages = [{"value": encode(event)} for event in events(count)]
    at_once = max(1, min(5_000, _PORTION // len(messages[0]["value"])))
    for partition in range(partitions):
        mine = messages[partition::partitions]
        for start in range(0, len(mine), at_once):
            portion = mine[start : start + at_once]
            while len(producer) > 50 * at_once:  # the queue is far from full
                producer.poll(0.01)
            if producer.produce_batch(topic, portion, partition=partition) != len(portion):
                raise BenchmarkError(f"{topic}: the producer refused messages")
    if left := producer.flush(120):
        raise BenchmarkError(f"{topic}: {left} messages were not delivered")


def repeat(broker: KafkaBroker, seed: str, topic: str, partitions: int, rounds: int) -> None:
    """Add all of one topic to another, so many times.

    The batches are sent as the broker keeps them: no client makes, checks and packs each message
    once more, which would take most of the time of a long topic.
    """
    kept = broker.node.home / "data"
    batches = {number: list(_batches(kept / f"{seed}-{number}")) for number in range(partitions)}
    add = partial(_add, broker.node.client_port, topic, rounds)
    with ThreadPoolExecutor(2) as halves:  # the broker works on one request of a connection
        list(halves.map(add, [dict(list(batches.items())[half::2]) for half in range(2)]))


def _add(port: int, topic: str, rounds: int, batches: Mapping[int, list[bytes]]) -> None:
    with (
        socket.create_connection(("127.0.0.1", port), timeout=60) as connection,
        connection.makefile("rb") as replies,
    ):
        for _ in range(rounds):
            for column in itertools.zip_longest(*batches.values()):
                left = {at: batch for at, batch in zip(batches, column, strict=True) if batch}
                deadline = time.monotonic() + _TIMEOUT_MS / 1000
                while left:
                    _send(connection, topic, left)
                    early = _too_early(replies, topic)
                    if early and time.monotonic() > deadline:
                        raise BenchmarkError(f"{topic}, partitions {early}: no leader")
                    time.sleep(0.1 if early else 0)
                    left = {at: left[at] for at in early}


def _batches(folder: Path) -> Iterator[bytes]:
    """What the log of a partition consists of: offset, length, and so many bytes."""
    (log,) = folder.glob("*.log")  # a seed is far smaller than a segment
    data, position = log.read_bytes(), 0
    while position < len(data):
        (length,) = struct.unpack_from(">i", data, position + 8)
        end = position + 12 + length
        yield bytes(8) + data[position + 8 : end]  # from offset 0: the broker gives its own
        position = end


def _send(connection: socket.socket, topic: str, batches: Mapping[int, bytes]) -> None:
    """A Produce request with a batch for each of these partitions."""
    name = topic.encode()
    parts = [
        struct.pack(">hhih", _PRODUCE, _VERSION, 0, _NO_TEXT),
        struct.pack(">hhi", _NO_TEXT, _ALL_REPLICAS, _TIMEOUT_MS),
        struct.pack(">ih", 1, len(name)) + name + struct.pack(">i", len(batches)),
    ]
    for partition, batch in batches.items():
        parts += [struct.pack(">ii", partition, len(batch)), batch]
    connection.sendall(struct.pack(">i", sum(map(len, parts))) + b"".join(parts))


def _too_early(replies: BinaryIO, topic: str) -> list[int]:
    """The partitions that have no leader yet: a topic is created before they have."""
    (size,) = struct.unpack(">i", replies.read(4))
    body = replies.read(size)
    position = 4 + 4 + 2 + len(topic.encode())  # correlation, one topic, its name
    (count,) = struct.unpack_from(">i", body, position)
    early = []
    for number in range(count):
        partition, error = struct.unpack_from(">ih", body, position + 4 + 22 * number)
        if error in _NO_LEADER:
            early.append(partition)
        elif error:
            raise BenchmarkError(f"{topic}, partition {partition}: refused with error {error}")
    return early
