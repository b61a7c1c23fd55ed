"""One SQL script run by ours and by Flink, each time into a new topic that is looked at after."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

from .measure import Run
from .setting import Setting

Side = Callable[[str], Run]
"""Runs a script."""
_numbers = itertools.count(1)


def sides(
    setting: Setting, script: str, rows: int, outcome: Callable[[str], str], **names: str
) -> dict[str, Callable[[], Run]]:
    """Ours, and Flink if it takes part; `outcome` tells what the target came to, or refuses it."""
    found = {"streamcore": partial(_ours, setting, rows)}
    if setting.flink is not None:
        found["Flink SQL"] = partial(setting.flink.run, rows=rows)
    names["servers"] = setting.servers
    return {
        side: partial(_into_new_topic, setting, run, script, outcome, names)
        for side, run in found.items()
    }


def _ours(setting: Setting, rows: int, script: str) -> Run:
    return setting.ours.run("script_jobs.run_script", script=script, rows=rows)


def _into_new_topic(
    setting: Setting, run: Side, script: str, outcome: Callable[[str], str], names: dict[str, Any]
) -> Run:
    target = f"bench-into-{next(_numbers)}"
    setting.broker.create_topic(target, 4)
    done = run(script.format(target=target, **names))
    done.checksum = outcome(target)
    setting.broker.delete_topic(target)
    return done


def written(servers: str, topic: str) -> int:
    """Offsets that are taken in a topic of four partitions."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench-count"})
    try:
        return sum(consumer.get_watermark_offsets(TopicPartition(topic, at))[1] for at in range(4))
    finally:
        consumer.close()


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
