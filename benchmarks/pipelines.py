"""One SQL script run by ours and by Flink, each time into a new topic, which is looked into."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from .data import COLUMNS
from .measure import BenchmarkError, Run
from .setting import Setting

Side = Callable[[str], Run]
"""Runs a script."""
MARKERS = 1_000
"""Offsets that the ends of transactions may take, far fewer than rows."""
_numbers = itertools.count(1)


def sides(
    setting: Setting,
    script: str,
    rows: int,
    outcome: Callable[[str], str],
    variants: Mapping[str, str] | None = None,
    **names: str,
) -> dict[str, Callable[[], Run]]:
    """Ours, and Flink if it takes part, also with the settings of `variants` before its script.

    `outcome` tells what a side's target came to, or refuses it.
    """
    found: dict[str, tuple[Side, str]] = {"streamcore": (partial(_ours, setting, rows), script)}
    if setting.flink is not None:
        flink = partial(setting.flink.run, rows=rows)
        found["Flink SQL"] = (flink, script)
        for name, settings in (variants or {}).items():
            found[f"Flink SQL, {name}"] = (flink, settings + script)
    names["servers"] = setting.servers
    return {
        side: partial(_into_new_topic, setting, run, text, outcome, names)
        for side, (run, text) in found.items()
    }


def _ours(setting: Setting, rows: int, script: str) -> Run:
    return setting.ours.run("script_jobs.run_script", script=script, rows=rows)


def _into_new_topic(
    setting: Setting,
    run: Side,
    script: str,
    outcome: Callable[[str], str],
    names: dict[str, Any],
) -> Run:
    target = f"bench-into-{next(_numbers)}"
    setting.broker.create_topic(target, 4)
    done = run(script.format(target=target, **names))
    done.checksum = outcome(target)
    setting.broker.delete_topic(target)
    return done


def untold(target: str) -> str:
    """The outcome of a run that is measured, where that of a warm-up was looked into."""
    return ""


def written(servers: str, *topics: str, partitions: int = 4) -> int:
    """Offsets that are taken in topics."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench-count"})
    try:
        places = [TopicPartition(topic, at) for topic in topics for at in range(partitions)]
        return sum(consumer.get_watermark_offsets(place)[1] for place in places)
    finally:
        consumer.close()


def count(setting: Setting, topic: str, rows: int) -> str:
    """Refuse a topic that has not as many offsets as rows, but for the markers of transactions."""
    found = written(setting.servers, topic)
    if not rows <= found <= rows + MARKERS:
        raise BenchmarkError(f"{found} offsets are taken in a topic of {rows} rows")
    return ""


def contents(setting: Setting, format_name: str, topic: str, rows: int) -> str:
    """What the rows of a topic add up to, read by ours; refused if they are not so many."""
    source = {"format_name": format_name, "columns": list(COLUMNS)}
    found = setting.ours.run("check_ours", servers=setting.servers, topic=topic, **source)
    if found.rows != rows:
        raise BenchmarkError(f"{found.rows} of {rows} rows are in the topic")
    return found.checksum


def latest(servers: str, topic: str) -> dict[bytes, bytes]:
    """The last value of each key, as any reader of an upsert topic sees it."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench-latest"})
    places = [TopicPartition(topic, number, 0) for number in range(4)]
    left = sum(consumer.get_watermark_offsets(place)[1] for place in places)
    consumer.assign(places)
    found: dict[bytes, bytes] = {}
    while left > 0:
        for message in consumer.consume(10_000, 1.0):
            left -= 1
            key, value = message.key(), message.value()
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
    consumer.close()
    return found
