"""The loop that fetches messages into Arrow, decoding nothing, beside bare `consume`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from streamcore import Column, Table
from streamcore.registry import installed
from streamcore_kafka.consumers import close_all

from .kafka_source import consume
from .measure import BenchmarkError, Plan, Run
from .setting import Setting

TABLE = Table((Column("message", "BYTES"),), "t")
LEAST = 0.6
"""Of bare consume."""


def cases(setting: Setting) -> Iterator[Plan]:
    """Both in this process, one after the other."""
    rows = min(setting.rows, 2 * setting.fewer)

    def sides(rows: int) -> dict[str, Callable[[], Run]]:
        topic = setting.topic("json", rows)
        setting.at_the_end(close_all)  # consumers that outlive their broker complain
        return {
            "streamcore": partial(_fetch, setting.servers, topic, rows),
            "bare consume": partial(consume, setting.servers, topic, rows),
        }

    what = f"Kafka messages to Arrow, none decoded, one process, {rows:,} messages, 4 partitions"
    note = f"At least {LEAST} of bare consume is wanted."
    times, warming = (setting.runs, setting.warmups), partial(sides, setting.sample)
    yield Plan("consumer-loop", what, partial(sides, rows), *times, note=note, warming=warming)


def _fetch(servers: str, topic: str, rows: int) -> Run:
    """One task that reads all partitions, as it would in a Spark worker."""
    options = {
        "topic": topic,
        "properties.bootstrap.servers": servers,
        "scan.startup.mode": "earliest-offset",
        "scan.parallelism": "1",
        "format": "raw",
    }
    reader = installed().build("connector", "kafka", options).stream_reader(TABLE)
    begin = reader.initialOffset()
    parts = reader.partitions(begin, reader.latestOffset(begin, reader.getDefaultReadLimit()))
    cpu, start = time.process_time(), time.perf_counter()
    seen = sum(batch.num_rows for part in parts for batch in reader.read(part))
    run = Run(time.perf_counter() - start, seen, time.process_time() - cpu)
    if seen != rows or len(parts) != 1:
        raise BenchmarkError(f"consumer loop: {seen} of {rows} messages in {len(parts)} tasks")
    return run
