"""Kafka source: ours, Spark's own with from_*, Flink SQL, and bare consume as the ceiling."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from .data import COLUMNS, WIDE
from .measure import Case, Run, alternate
from .setting import Setting

ALL, ALL_WIDE = tuple(COLUMNS), tuple(WIDE)
NARROW, NARROW_WIDE = ("user_id", "behavior"), ("c8", "c30")


def cases(setting: Setting) -> Iterator[Case]:
    """JSON in full, then every other format, then two columns of eight and of forty."""
    yield _case(setting, "json", ALL, setting.rows)
    for name in ("csv", "avro", "avro-confluent", "debezium-json"):
        yield _case(setting, name, ALL, setting.fewer)
    yield _case(setting, "json", NARROW, setting.fewer)
    yield _case(setting, "wide", NARROW_WIDE, setting.fewer // 3)


def _case(setting: Setting, format_name: str, columns: tuple[str, ...], rows: int) -> Case:
    shape = WIDE if format_name == "wide" else COLUMNS
    topic = setting.topic(format_name, rows)
    source = {
        "servers": setting.servers,
        "topic": topic,
        "format_name": format_name,
        "columns": list(columns),
        "registry": setting.registry.url if format_name == "avro-confluent" else "",
    }
    sample = source | {"topic": setting.topic(format_name, min(rows, setting.fewer))}
    checks = {
        side.run(job, **sample).checksum
        for side, job in ((setting.ours, "check_ours"), (setting.spark, "check_spark"))
    }
    if len(checks) != 1:
        raise SystemExit(f"kafka source {format_name}: ours and Spark's rows differ: {checks}")
    sides = {
        "streamcore": partial(setting.ours.run, "read_ours", **source),
        "Spark's own": partial(setting.spark.run, "read_spark", **source),
    }
    if setting.flink and format_name != "avro-confluent":
        script = _flink_script(setting, topic, format_name, shape, columns)
        sides["Flink SQL"] = partial(setting.flink.run, script, rows)
    if format_name == "json" and columns == ALL:
        sides["bare consume"] = partial(_consume, setting.servers, topic, rows)
    some = "" if len(columns) == len(shape) else f", {len(columns)} of {len(shape)} columns"
    name = f"source-{format_name}" + (f"-{len(columns)}-of-{len(shape)}" if some else "")
    kind = "json" if format_name == "wide" else format_name
    what = f"Kafka {kind}{some} to rows, {rows:,} messages, 4 partitions"
    return alternate(name, what, sides, runs=setting.runs, warmups=setting.warmups)


def _flink_script(
    setting: Setting, topic: str, format_name: str, shape: dict[str, str], columns: tuple[str, ...]
) -> str:
    declared = ", ".join(f"{name} {kind}" for name, kind in shape.items())
    wanted = ", ".join(f"{name} {shape[name]}" for name in columns)
    kind = "json" if format_name == "wide" else format_name
    return f"""
CREATE TABLE events ({declared}) WITH ('connector' = 'kafka', 'topic' = '{topic}',
  'properties.bootstrap.servers' = '{setting.servers}', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset', 'format' = '{kind}');
CREATE TABLE nowhere ({wanted}) WITH ('connector' = 'blackhole');
INSERT INTO nowhere SELECT {", ".join(columns)} FROM events;
"""


def _consume(servers: str, topic: str, rows: int) -> Run:
    """One process, no decoding: what the client alone can do."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bench-bare",
            "enable.auto.commit": False,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 262_144,
            "fetch.message.max.bytes": 10_485_760,
        }
    )
    cpu, start, seen = time.process_time(), time.perf_counter(), 0
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(4)])
    while seen < rows:
        seen += len([message.value() for message in consumer.consume(10_000, 1.0)])
    run = Run(time.perf_counter() - start, rows, time.process_time() - cpu)
    consumer.close()
    return run
