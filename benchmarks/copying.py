"""From one topic to another, decoded and encoded again: ours, Spark's own and Flink's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

from .data import COLUMNS
from .kafka_sink import written
from .measure import Case, Run, alternate
from .setting import Setting

_numbers = itertools.count(1)
SCRIPT = """
CREATE TABLE events ({columns}) WITH ('connector' = 'kafka', 'topic' = '{source}',
  'properties.bootstrap.servers' = '{servers}', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset', 'format' = 'json');
CREATE TABLE copies ({columns}) WITH ('connector' = 'kafka', 'topic' = '{target}',
  'properties.bootstrap.servers' = '{servers}', 'format' = 'json');
INSERT INTO copies SELECT * FROM events;
"""


def cases(setting: Setting) -> Iterator[Case]:
    """At least once, which every side can."""
    rows = setting.fewer
    source = setting.topic("json", rows)

    def ours(target: str) -> Run:
        script = _script(setting, source, target)
        return setting.ours.run("page_view_jobs.run_script", script=script, rows=rows)

    def sparks(target: str) -> Run:
        names = {"servers": setting.servers, "source": source, "target": target}
        return setting.spark.run("copy_spark", **names)

    def flinks(target: str) -> Run:
        assert setting.flink is not None
        return setting.flink.run(_script(setting, source, target), rows)

    sides = {"streamcore": ours, "Spark's own": sparks}
    if setting.flink:
        sides["Flink SQL"] = flinks
    what = f"{rows:,} JSON messages from topic to topic, at least once, 4 partitions"
    runs = {side: partial(_into_new_topic, setting, run) for side, run in sides.items()}
    yield alternate("copy-json", what, runs, runs=min(3, setting.runs), warmups=setting.warmups)


def _into_new_topic(setting: Setting, run: Callable[[str], Run]) -> Run:
    target = f"bench-copy-{next(_numbers)}"
    setting.broker.create_topic(target, 4)
    done = run(target)
    found = written(setting.servers, target)
    setting.broker.delete_topic(target)
    if found != done.rows:
        raise SystemExit(f"copying: {found} of {done.rows} rows are in the topic")
    return done


def _script(setting: Setting, source: str, target: str) -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    names = {"columns": columns, "source": source, "target": target}
    return SCRIPT.format(servers=setting.servers, **names)
