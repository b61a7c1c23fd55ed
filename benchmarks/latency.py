"""How long a record takes from topic to topic, and a small batch to run: ours and Spark's own."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .measure import BenchmarkError, Plan, Run
from .setting import Setting
from .sides import SparkSide

RATES = (10, 1000)
SECONDS = 3.0
"""For how long a running query is looked at."""
_numbers = itertools.count(1)


def cases(setting: Setting) -> Iterator[Plan]:
    """A trickle, and a thousand rows a second."""
    for rate in RATES:
        yield Plan(
            f"latency-{rate}",
            f"A record from topic to topic at {rate:,} rows/s, json, 4 partitions",
            partial(_sides, setting, rate, SECONDS / 2 if setting.quick else SECONDS),
            setting.runs,
            setting.warmups,
            "ms",
            note="Each run is a query of its own, looked at for some seconds once it runs; the "
            "time is the median of its records.",
            warming=partial(_sides, setting, rate, 1.0),
        )


def _sides(setting: Setting, rate: int, seconds: float) -> dict[str, Callable[[], Run]]:
    relayed = partial(_relayed, setting, rate=rate, seconds=seconds)
    return {
        "streamcore": partial(relayed, setting.ours, "latency_jobs.relay_ours"),
        "Spark's own": partial(relayed, setting.spark, "latency_jobs.relay_spark"),
    }


def _relayed(setting: Setting, side: SparkSide, job: str, rate: int, seconds: float) -> Run:
    number = next(_numbers)
    source, target = f"bench-from-{number}", f"bench-to-{number}"
    for topic in (source, target):
        setting.broker.create_topic(topic, 4)
    over = threading.Event()
    taken: list[float] = []
    threads = [
        threading.Thread(target=_feed, args=(setting.servers, source, rate, over)),
        threading.Thread(target=_watch, args=(setting.servers, target, over, taken)),
    ]
    for thread in threads:
        thread.start()
    try:
        done = side.run(job, servers=setting.servers, source=source, target=target, seconds=seconds)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    if not taken:
        raise BenchmarkError(f"{job}: no record arrived in {seconds:g} s")
    late = sorted(taken[-int(rate * seconds * 0.8) :])  # the first ones waited for the query
    middle, slowest = statistics.median(late), late[int(len(late) * 0.99)]
    extra = {"p99 ms": slowest * 1000, **done.extra}
    return Run(middle, 1, done.cpu / done.rows, done.peak_mb, extra=extra)


def _feed(servers: str, topic: str, rate: int, over: threading.Event) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    start = time.time()
    for n in itertools.count():
        if over.wait(max(0.0, start + n / rate - time.time())):
            break
        producer.produce(topic, b'{"n":%d,"sent":%d}' % (n, time.time_ns()), partition=n % 4)
        producer.poll(0)
    producer.flush()


def _watch(servers: str, topic: str, over: threading.Event, taken: list[float]) -> None:
    import orjson
    from confluent_kafka import Consumer, TopicPartition

    consumer: Any = Consumer(
        {"bootstrap.servers": servers, "group.id": "bench-latency", "fetch.wait.max.ms": 5}
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(4)])
    while not over.is_set():
        for message in consumer.consume(1000, 0.02):
            if message.error() is None:
                sent = orjson.loads(message.value())["sent"]
                taken.append((time.time_ns() - sent) / 1e9)
    consumer.close()
