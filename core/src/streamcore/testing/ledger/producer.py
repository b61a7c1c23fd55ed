"""Writes numbered rows to a topic, drawn from a seed, and remembers how many of each key."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from typing import Any

from .checker import Seen


class Ledger:
    """What was sent: for each key the rows 0…n-1, acknowledged by all replicas."""

    def __init__(self, servers: str, topic: str, *, keys: int = 50, seed: int = 0) -> None:
        self.topic, self.sent = topic, Counter[str]()
        self._servers = servers
        self._keys = [f"k{number}" for number in range(keys)]
        self._random = random.Random(seed)
        self._homes: dict[str, int] = {}
        self._partitions = 0
        self._aborted = 0
        self._kept: Any = None
        self._lock = threading.Lock()
        self._running: threading.Thread | None = None
        self._over = threading.Event()
        self._failed: BaseException | None = None

    @property
    def rows(self) -> int:
        return self.sent.total()

    def send(self, count: int, *, pad: int = 0) -> None:
        """Write that many more rows, each with `pad` bytes of ballast."""
        with self._lock:  # rows of one key are in order, whoever sends
            producer = self._kept or self._producer()
            ballast = "x" * pad
            for _ in range(count):
                key = self._random.choice(self._keys)
                self._produce(producer, key, self.sent[key], ballast)
                self.sent[key] += 1
            _deliver(producer)

    def keep_producer(self) -> None:
        """Send with one producer from now on: to open one takes half a second.

        Not for tests that hurt brokers: it may find itself fenced for good.
        """
        self._kept = self._producer()

    def pin(self, partitions: int) -> None:
        """Keep each key in one partition, so that its order outlives new ones; those get keys, too.

        Call it again when there are more partitions.
        """
        with self._lock:
            for number, key in enumerate(self._keys):
                self._homes.setdefault(key, number % partitions)
            for partition in range(self._partitions or partitions, partitions):
                new = [f"p{partition}k{number}" for number in range(5)]
                self._keys += new
                self._homes |= dict.fromkeys(new, partition)
            self._partitions = partitions

    def send_and_abort(self, count: int) -> None:
        """Write rows nobody may see: their transaction is taken back."""
        producer = self._producer(**{"transactional.id": f"aborting-{self.topic}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for _ in range(count):
            self._aborted += 1
            self._produce(producer, self._random.choice(self._keys), -self._aborted, "")
        _deliver(producer)
        producer.abort_transaction(30)

    def keep_sending(self, count: int, *, pieces: int, pause: float) -> None:
        """Write rows in the background, in so many pieces; `finish()` waits for the last."""
        self._over.clear()

        def run() -> None:
            try:
                for piece in range(pieces):
                    self.send(count // pieces + (count % pieces if piece == 0 else 0))
                    if self._over.wait(pause):
                        return
            except BaseException as error:
                self._failed = error

        self._running = threading.Thread(target=run, daemon=True)
        self._running.start()

    def finish(self, timeout: float = 600) -> None:
        if self._running is not None:
            self._running.join(timeout)
            assert not self._running.is_alive(), "the ledger is still being written"
            self._running = None
        if self._failed is not None:
            raise self._failed

    def stop(self) -> None:
        """End the background writing after the piece under way."""
        self._over.set()
        self.finish()

    def _producer(self, **settings: str) -> Any:
        from confluent_kafka import Producer

        safe = {"bootstrap.servers": self._servers, "enable.idempotence": True, "linger.ms": 20}
        return Producer({**safe, "queue.buffering.max.messages": 10_000_000, **settings})

    def _produce(self, producer: Any, key: str, sequence: int, ballast: str) -> None:
        value = f'{{"key":"{key}","seq":{sequence},"pad":"{ballast}"}}'
        home = self._homes.get(key, -1)  # -1: wherever its hash puts it
        producer.produce(self.topic, value.encode(), key.encode(), home)
        if sequence % 1000 == 0:
            producer.poll(0)


def _deliver(producer: Any) -> None:
    left = producer.flush(300)
    assert left == 0, f"{left} rows of the ledger were not delivered"


def parse(value: bytes, place: tuple[object, ...] = ()) -> Seen:
    """A row of a ledger from its JSON text."""
    row = json.loads(value)
    return Seen(row["key"], row["seq"], place)
