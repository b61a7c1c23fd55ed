"""From one topic to another, decoded and encoded again: ours, Spark's own and Flink's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from .data import COLUMNS
from .measure import Case, Run, alternate
from .pipelines import sides, written
from .setting import Setting

_numbers = itertools.count(1)
_MARKERS = 1_000
"""Offsets that the ends of transactions may take, far fewer than rows."""
SCRIPT = """
SET 'execution.checkpointing.interval' = '5 s';
CREATE TABLE events ({columns}) WITH ('connector' = 'kafka', 'topic' = '{source}',
  'properties.bootstrap.servers' = '{servers}', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset', 'format' = 'json');
CREATE TABLE copies ({columns}) WITH ('connector' = 'kafka', 'topic' = '{target}',
  'properties.bootstrap.servers' = '{servers}', 'format' = 'json'{guarantee});
INSERT INTO copies SELECT * FROM events;
"""
EXACTLY_ONCE = (
    ", 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{prefix}', "
    "'properties.transaction.timeout.ms' = '600000'"
)


def cases(setting: Setting) -> Iterator[Case]:
    """At least once, which every side can, and exactly once, which Spark's own cannot."""
    rows = setting.fewer
    source = setting.topic("json", rows)
    names = {"source": source, "columns": ", ".join(" ".join(each) for each in COLUMNS.items())}
    times = {"runs": setting.runs, "warmups": setting.warmups}

    def counted(target: str) -> str:
        found = written(setting.servers, target)
        if not rows <= found <= rows + _MARKERS:
            raise SystemExit(f"copying: {found} of {rows} rows are in the topic")
        return ""

    def sparks() -> Run:
        target = f"bench-copy-{next(_numbers)}"
        setting.broker.create_topic(target, 4)
        place = {"servers": setting.servers, "source": source, "target": target}
        done = setting.spark.run("copy_spark", **place)
        counted(target)
        setting.broker.delete_topic(target)
        return done

    found = sides(setting, SCRIPT, rows, counted, guarantee="", **names)
    every: dict[str, Callable[[], Run]] = {"streamcore": found.pop("streamcore")}
    every |= {"Spark's own": sparks, **found}
    what = f"{rows:,} JSON messages from topic to topic, at least once, 4 partitions"
    yield alternate("copy-json", what, every, **times)
    once = EXACTLY_ONCE.format(prefix="bench-{target}")
    script = SCRIPT.replace("{guarantee}", once)
    what = f"{rows:,} JSON messages from topic to topic, exactly once, 4 partitions"
    exactly = sides(setting, script, rows, counted, **names)
    yield alternate("copy-json-exactly-once", what, exactly, **times)
