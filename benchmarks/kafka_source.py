"""Kafka source: ours, Spark's own with from_*, Flink SQL, and bare consume as the ceiling."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from .data import COLUMNS, WIDE, sums
from .measure import BenchmarkError, Plan, Run
from .setting import Setting

ALL, ALL_WIDE = tuple(COLUMNS), tuple(WIDE)
NARROW, NARROW_WIDE = ("user_id", "behavior"), ("c8", "c30")
ALL_COLUMNS = "ours, all columns"
"""The side that fewer columns are measured against, in place of Flink."""

_IN_MINI_BATCHES = """SET 'execution.runtime-mode' = 'streaming';
SET 'table.exec.mini-batch.enabled' = 'true';
SET 'table.exec.mini-batch.allow-latency' = '1 s';
SET 'table.exec.mini-batch.size' = '100000';
"""


def cases(setting: Setting) -> Iterator[Plan]:
    """JSON in full, then every other format, then two columns of eight and of forty."""
    tenth = setting.fewer // 10
    cold = Source("json", ALL, setting.fewer)  # no side has read anything before
    yield _plan(setting, Source("json", ALL, setting.rows), "bare consume", first=cold)
    # As many as take some seconds: starting a query takes one or two on any side.
    for name, tenths in {"csv": 20, "avro": 40, "avro-confluent": 20, "debezium-json": 10}.items():
        yield _plan(setting, Source(name, ALL, tenths * tenth * setting.pace))
    yield _plan(setting, Source("json", NARROW, 10 * tenth), ALL_COLUMNS)
    yield _plan(setting, Source("wide", NARROW_WIDE, 3 * tenth), ALL_COLUMNS)


@dataclass(frozen=True)
class Source:
    """What is read: a format's topic, and the columns of it that are wanted."""

    format_name: str
    columns: tuple[str, ...]
    rows: int

    @property
    def kind(self) -> str:
        return "json" if self.format_name == "wide" else self.format_name

    @property
    def shape(self) -> dict[str, str]:
        return WIDE if self.format_name == "wide" else COLUMNS


def _plan(setting: Setting, source: Source, also: str = "", first: Source | None = None) -> Plan:
    few, many = len(source.columns), len(source.shape)
    some = "" if few == many else f", {few} of {many} columns"
    sample = first or replace(source, rows=min(source.rows, setting.sample))
    return Plan(
        f"source-{source.format_name}" + (f"-{few}-of-{many}" if some else ""),
        f"Kafka {source.kind}{some} to rows, {source.rows:,} messages, 4 partitions",
        partial(_sides, setting, source, also),
        setting.runs,
        setting.warmups,
        warming=partial(_checks, setting, sample, also),
    )


def _sides(setting: Setting, source: Source, also: str) -> dict[str, Callable[[], Run]]:
    asked = _asked(setting, source)
    sides: dict[str, Callable[[], Run]] = {
        "streamcore": partial(setting.ours.run, "read_ours", **asked),
        "Spark's own": partial(setting.spark.run, "read_spark", **asked),
    }
    if also != ALL_COLUMNS and setting.flink:
        script = _flink_table(setting, source) + _flink_read(source)
        sides["Flink SQL"] = partial(setting.flink.run, script, source.rows)
    if also == "bare consume":
        sides[also] = partial(consume, setting.servers, asked["topic"], source.rows)
    elif also:
        all_columns = asked | {"columns": list(source.shape)}
        sides[also] = partial(setting.ours.run, "read_ours", **all_columns)
    return sides


def _checks(setting: Setting, sample: Source, also: str) -> dict[str, Callable[[], Run]]:
    """The sides, warming up on what is compared: the rows of a shorter topic, added up."""
    asked, sides = _asked(setting, sample), _sides(setting, sample, also)
    sides["streamcore"] = partial(setting.ours.run, "check_ours", **asked)
    sides["Spark's own"] = partial(setting.spark.run, "check_spark", **asked)
    if "Flink SQL" in sides and setting.flink:
        wanted = ", ".join(sums(sample.shape, sample.columns, spark=False))
        script = _flink_table(setting, sample) + f"SELECT {wanted} FROM events;\n"
        if sample.kind == "debezium-json":  # changes, which are no batch to Flink
            script = _IN_MINI_BATCHES + script
        sides["Flink SQL"] = partial(setting.flink.run, script, sample.rows)
    return {side: partial(_counted, run, sample) for side, run in sides.items()}


def _counted(run: Callable[[], Run], sample: Source) -> Run:
    done = run()
    if int(done.checksum.split(",")[0] or done.rows) != sample.rows:
        raise BenchmarkError(f"{done.checksum or done.rows}, not {sample.rows} rows of {sample}")
    return done


def _asked(setting: Setting, source: Source) -> dict[str, object]:
    return {
        "servers": setting.servers,
        "topic": setting.topic(source.format_name, source.rows),
        "format_name": source.format_name,
        "columns": list(source.columns),
        "registry": setting.registry.url if source.format_name == "avro-confluent" else "",
    }


def _flink_table(setting: Setting, source: Source) -> str:
    asked = _asked(setting, source)
    declared = ", ".join(f"{name} {kind}" for name, kind in source.shape.items())
    more = f", 'avro-confluent.url' = '{asked['registry']}'" if asked["registry"] else ""
    return f"""
CREATE TABLE events ({declared}) WITH ('connector' = 'kafka', 'topic' = '{asked["topic"]}',
  'properties.bootstrap.servers' = '{setting.servers}', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset', 'format' = '{source.kind}'{more});
"""


def _flink_read(source: Source) -> str:
    wanted = ", ".join(f"{name} {source.shape[name]}" for name in source.columns)
    return f"""
CREATE TABLE nowhere ({wanted}) WITH ('connector' = 'blackhole');
INSERT INTO nowhere SELECT {", ".join(source.columns)} FROM events;
"""


def consume(servers: str, topic: str, rows: int) -> Run:
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
    places = [TopicPartition(topic, partition, 0) for partition in range(4)]
    for place in places:  # connects it: the consumers of our workers stay connected, too
        consumer.get_watermark_offsets(place)
    cpu, start, seen = time.process_time(), time.perf_counter(), 0
    consumer.assign(places)
    while seen < rows:
        seen += len([message.value() for message in consumer.consume(10_000, 1.0)])
    run = Run(time.perf_counter() - start, rows, time.process_time() - cpu)
    consumer.close()
    return run
