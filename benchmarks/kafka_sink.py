"""Kafka sink: ours at least once and exactly once, Spark's own with to_json and to_avro."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

from .measure import Plan, Run
from .pipelines import contents, count
from .setting import Setting
from .sides import SparkSide

_numbers = itertools.count(1)
NOTE = "Flink's sink is in the copies from topic to topic: it has no rows in memory to write."


def cases(setting: Setting) -> Iterator[Plan]:
    """JSON and Avro against Spark's own sink, then exactly once against our own at least once."""
    rows, times = setting.fewer, (setting.runs, setting.warmups)
    for name in ("json", "avro"):
        what = f"{rows:,} rows of 8 columns to Kafka {name}, at least once, 4 partitions"
        yield Plan(f"sink-{name}", what, partial(_both, setting, rows, name), *times, note=NOTE)

    def guarantees() -> dict[str, Callable[[], Run]]:
        return {
            "exactly once": _into_new_topic(setting, setting.ours, "write_ours_exactly_once", rows),
            "at least once": _into_new_topic(setting, setting.ours, "write_ours", rows),
        }

    what = f"{rows:,} rows of 8 columns to Kafka json, a transaction per task"
    yield Plan("sink-exactly-once", what, guarantees, *times)


def _both(setting: Setting, rows: int, format_name: str) -> dict[str, Callable[[], Run]]:
    return {
        "streamcore": _into_new_topic(setting, setting.ours, "write_ours", rows, format_name),
        "Spark's own": _into_new_topic(setting, setting.spark, "write_spark", rows, format_name),
    }


def _into_new_topic(
    setting: Setting, side: SparkSide, job: str, rows: int, format_name: str = "json"
) -> Callable[[], Run]:
    """Into a topic of its own each time; what is in the first one is read and added up."""
    written_as = {} if job == "write_ours_exactly_once" else {"format_name": format_name}
    checks = iter([partial(contents, setting, format_name)])

    def run() -> Run:
        topic = f"bench-out-{next(_numbers)}"
        setting.broker.create_topic(topic, 4)
        done = side.run(job, servers=setting.servers, topic=topic, rows=rows, **written_as)
        done.checksum = next(checks, partial(count, setting))(topic, rows)
        setting.broker.delete_topic(topic)
        return done

    return run
