"""Kafka sink: ours at least once and exactly once, Spark's own with to_json."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from .measure import Case, Run, alternate
from .pipelines import written
from .setting import Setting
from .sides import SparkSide

_numbers = itertools.count(1)


def cases(setting: Setting) -> Iterator[Case]:
    """JSON and Avro against Spark's own sink, then exactly once against our own at least once."""
    rows = setting.fewer
    for name in ("json", "avro"):
        sides = {
            "streamcore": _into_new_topic(setting, setting.ours, "write_ours", rows, name),
            "Spark's own": _into_new_topic(setting, setting.spark, "write_spark", rows, name),
        }
        what = f"{rows:,} rows of 8 columns to Kafka {name}, at least once, 4 partitions"
        yield alternate(f"sink-{name}", what, sides, runs=setting.runs, warmups=setting.warmups)
    sides = {
        "exactly once": _into_new_topic(setting, setting.ours, "write_ours_exactly_once", rows),
        "at least once": _into_new_topic(setting, setting.ours, "write_ours", rows),
    }
    what = f"{rows:,} rows of 8 columns to Kafka json, a transaction per task"
    yield alternate("sink-exactly-once", what, sides, runs=setting.runs, warmups=setting.warmups)


def _into_new_topic(
    setting: Setting, side: SparkSide, job: str, rows: int, format_name: str = ""
) -> Callable[[], Run]:
    written_as = {"format_name": format_name} if format_name else {}

    def run() -> Run:
        topic = f"bench-out-{next(_numbers)}"
        setting.broker.create_topic(topic, 4)
        done = side.run(job, servers=setting.servers, topic=topic, rows=rows, **written_as)
        found = written(setting.servers, topic)
        setting.broker.delete_topic(topic)
        if not rows <= found <= rows + 100:  # a transaction adds its markers
            raise SystemExit(f"{job}: {found} of {rows} rows are in the topic")
        return done

    return run
