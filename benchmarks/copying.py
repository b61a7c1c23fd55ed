"""From one topic to another, decoded and encoded again: ours, Spark's own and Flink's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .data import COLUMNS
from .measure import Plan, Run
from .pipelines import contents, count, sides
from .setting import Setting

_numbers = itertools.count(1)
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


def cases(setting: Setting) -> Iterator[Plan]:
    """At least once, which every side can, and exactly once, which Spark's own cannot."""
    rows = setting.fewer // 2
    what = f"{rows:,} JSON messages from topic to topic, at least once, 4 partitions"
    yield _plan(setting, "copy-json", what, _at_least_once)
    what = f"{rows:,} JSON messages from topic to topic, exactly once, 4 partitions"
    yield _plan(setting, "copy-json-exactly-once", what, _exactly_once)


def _plan(setting: Setting, name: str, what: str, sides: Callable[..., Any]) -> Plan:
    """All copies are counted, those of the warm-up read."""
    rows, sample = setting.fewer // 2, min(setting.sample, setting.fewer // 2)
    return Plan(
        name,
        what,
        partial(sides, setting, rows, partial(count, setting, rows=rows)),
        setting.runs,
        setting.warmups,
        warming=partial(sides, setting, sample, partial(contents, setting, "json", rows=sample)),
    )


def _at_least_once(
    setting: Setting, rows: int, check: Callable[[str], str]
) -> dict[str, Callable[[], Run]]:
    found = _scripts(setting, rows, SCRIPT.replace("{guarantee}", ""), check)

    def sparks() -> Run:
        target = f"bench-copy-{next(_numbers)}"
        setting.broker.create_topic(target, 4)
        place = {"servers": setting.servers, "source": setting.topic("json", rows)}
        done = setting.spark.run("copy_spark", **place, target=target)
        done.checksum = check(target)
        setting.broker.delete_topic(target)
        return done

    return {"streamcore": found.pop("streamcore"), "Spark's own": sparks, **found}


def _exactly_once(
    setting: Setting, rows: int, check: Callable[[str], str]
) -> dict[str, Callable[[], Run]]:
    once = EXACTLY_ONCE.format(prefix="bench-{target}")
    return _scripts(setting, rows, SCRIPT.replace("{guarantee}", once), check)


def _scripts(
    setting: Setting, rows: int, script: str, check: Callable[[str], str]
) -> dict[str, Callable[[], Run]]:
    return sides(
        setting,
        script,
        rows,
        check,
        source=setting.topic("json", rows),
        columns=", ".join(" ".join(each) for each in COLUMNS.items()),
    )
