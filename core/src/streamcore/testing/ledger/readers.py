"""Reads a topic as `read_committed` users do: to its end, or live while it is written."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from .checker import Seen
from .producer import parse


def _consumer(servers: str, topic: str, *, end: bool) -> tuple[Any, int]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "ledger-reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": end,
            "fetch.wait.max.ms": 100,
            "topic.metadata.refresh.interval.ms": 1000,
        }
    )
    partitions = sorted(consumer.list_topics(topic, 30).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    return consumer, len(partitions)


def read_to_end(servers: str, topic: str, timeout: float = 300) -> list[Seen]:
    """Every committed row of a topic, in the order of each partition."""
    from confluent_kafka import KafkaError

    consumer, partitions = _consumer(servers, topic, end=True)
    ended: set[int] = set()
    found: list[Seen] = []
    deadline = time.monotonic() + timeout
    try:
        while len(ended) < partitions:
            assert time.monotonic() < deadline, f"topic {topic} did not end in {timeout:g} s"
            for message in consumer.consume(5000, 0.2):
                if message.error() is None:
                    place = (message.partition(), message.offset())
                    found.append(parse(message.value(), place))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
    finally:
        consumer.close()
    return found


class LiveReader:
    """Collects the committed rows of a topic while they appear."""

    def __init__(self, servers: str, topic: str) -> None:
        self._consumer, _ = _consumer(servers, topic, end=False)
        self.rows: list[Seen] = []
        self._distinct: set[tuple[str, int]] = set()
        self._running = True
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def distinct(self) -> int:
        """How many different rows were seen: those seen twice make up for none that is missing."""
        return len(self._distinct)

    def wait_for(
        self, count: int, timeout: float, check: Callable[[], None] = lambda: None
    ) -> float:
        """Wait until that many different rows were seen; the seconds it took."""
        began = time.monotonic()
        while self.distinct < count:
            check()
            waited = time.monotonic() - began
            seen = self.distinct
            assert waited < timeout, f"{seen} of {count} rows after {timeout:g} s"
            time.sleep(0.1)
        return time.monotonic() - began

    def stop(self) -> list[Seen]:
        if self._running:
            self._running = False
            self._thread.join(30)
            self._consumer.close()
        return self.rows

    def _run(self) -> None:
        while self._running:
            for message in self._consumer.consume(5000, 0.1):
                if message.error() is None:
                    row = parse(message.value(), (message.partition(), message.offset()))
                    self.rows.append(row)
                    self._distinct.add((row.key, row.sequence))
