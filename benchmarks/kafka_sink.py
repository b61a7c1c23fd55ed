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
    rows, times = setting.fewer * setting.pace, (setting.runs, setting.warmups)
    for name in ("json", "avro"):
        what = f"{rows:,} rows of 8 columns to Kafka {name}, at least once, 4 partitions"
        both = partial(_both, setting, format_name=name)
        warming = partial(both, setting.sample, looked_into=True)
        sides = partial(both, rows)
        yield Plan(f"sink-{name}", what, sides, *times, note=NOTE, warming=warming)

    def guarantees(rows: int, *, looked_into: bool = False) -> dict[str, Callable[[], Run]]:
        ours = partial(_into_new_topic, setting, setting.ours, rows=rows, looked_into=looked_into)
        return {
            "exactly once": ours("write_ours_exactly_once"),
            "at least once": ours("write_ours"),
        }

    what = f"{rows:,} rows of 8 columns to Kafka json, a transaction per task"
    warming = partial(guarantees, setting.sample, looked_into=True)
    yield Plan("sink-exactly-once", what, partial(guarantees, rows), *times, warming=warming)


def _both(
    setting: Setting, rows: int, format_name: str, *, looked_into: bool = False
) -> dict[str, Callable[[], Run]]:
    given = {"rows": rows, "format_name": format_name, "looked_into": looked_into}
    return {
        "streamcore": _into_new_topic(setting, setting.ours, "write_ours", **given),
        "Spark's own": _into_new_topic(setting, setting.spark, "write_spark", **given),
    }


def _into_new_topic(
    setting: Setting,
    side: SparkSide,
    job: str,
    rows: int,
    format_name: str = "json",
    *,
    looked_into: bool = False,
) -> Callable[[], Run]:
    """Into a topic of its own each time, whose rows are counted, or read and added up."""
    written_as = {} if job == "write_ours_exactly_once" else {"format_name": format_name}
    check = partial(contents, setting, format_name) if looked_into else partial(count, setting)

    def run() -> Run:
        topic = f"bench-out-{next(_numbers)}"
        setting.broker.create_topic(topic, 4)
        done = side.run(job, servers=setting.servers, topic=topic, rows=rows, **written_as)
        done.checksum = check(topic, rows)
        setting.broker.delete_topic(topic)
        return done

    return run
