"""Kafka source: ours, Spark's own with from_*, Flink SQL, and bare consume as the ceiling."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from .data import COLUMNS
from .measure import Case, Run, alternate
from .setting import Setting

ALL = tuple(COLUMNS)
NARROW = ("user_id", "behavior")


def cases(setting: Setting) -> Iterator[Case]:
    """Every format with all columns, then JSON with two of eight."""
    for name in ("json", "csv", "avro"):
        yield _case(setting, name, ALL)
    yield _case(setting, "json", NARROW)


def _case(setting: Setting, format_name: str, columns: tuple[str, ...]) -> Case:
    topic = setting.topic(format_name)
    source = {
        "servers": setting.servers,
        "topic": topic,
        "format_name": format_name,
        "columns": list(columns),
    }
    checks = {
        side.run(job, **source).checksum
        for side, job in ((setting.ours, "check_ours"), (setting.spark, "check_spark"))
    }
    if len(checks) != 1:
        raise SystemExit(f"kafka source {format_name}: ours and Spark's rows differ: {checks}")
    sides = {
        "streamcore": partial(setting.ours.run, "read_ours", **source),
        "Spark's own": partial(setting.spark.run, "read_spark", **source),
    }
    if setting.flink:
        script = _flink_script(setting, topic, format_name, columns)
        sides["Flink SQL"] = partial(setting.flink.run, script, setting.rows)
    if format_name == "json" and columns == ALL:
        sides["bare consume"] = partial(_consume, setting.servers, topic, setting.rows)
    wide = "" if columns == ALL else f", {len(columns)} of {len(ALL)} columns"
    name = f"source-{format_name}" + ("" if columns == ALL else "-narrow")
    what = f"Kafka {format_name}{wide} to rows, {setting.rows:,} messages, 4 partitions"
    return alternate(name, what, sides, runs=setting.runs, warmups=setting.warmups)


def _flink_script(setting: Setting, topic: str, format_name: str, columns: tuple[str, ...]) -> str:
    declared = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    wanted = ", ".join(f"{name} {COLUMNS[name]}" for name in columns)
    return f"""
CREATE TABLE events ({declared}) WITH ('connector' = 'kafka', 'topic' = '{topic}',
  'properties.bootstrap.servers' = '{setting.servers}', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset', 'format' = '{format_name}');
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
