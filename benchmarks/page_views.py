"""Page views and visitors per region, from a topic to an upsert-kafka table: ours and Flink's."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

from .data import Event
from .data import produce as fill
from .measure import Case, Run, alternate
from .setting import Setting

USERS = 10_000
REGIONS = ("Africa", "Americas", "Asia", "Europe", "Oceania")
_numbers = itertools.count(1)

TABLES = """
CREATE TABLE pageviews (
  user_id BIGINT, page_id BIGINT, viewtime TIMESTAMP(3), user_region STRING,
  WATERMARK FOR viewtime AS viewtime - INTERVAL '2' SECOND
) WITH ('connector' = 'kafka', 'topic' = '{source}', 'properties.bootstrap.servers' = '{servers}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'json');
CREATE TABLE pageviews_per_region (
  user_region STRING, pv BIGINT, uv BIGINT, PRIMARY KEY (user_region) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka', 'topic' = '{target}',
  'properties.bootstrap.servers' = '{servers}', 'key.format' = 'json', 'value.format' = 'json');
"""
INSERT = """
INSERT INTO pageviews_per_region
SELECT user_region, COUNT(*), COUNT(DISTINCT user_id) FROM pageviews GROUP BY user_region;
"""


def cases(setting: Setting) -> Iterator[Case]:
    """The pipeline of the documentation, end to end; both must arrive at the same counts."""
    rows, topic = setting.fewer, "bench-pageviews"
    setting.broker.create_topic(topic, 4)
    dice = random.Random(7)

    def view(event: Event) -> bytes:
        region = dice.choice(REGIONS)
        return (
            f'{{"user_id":{event.user_id % USERS},"page_id":{event.item_id % 1000},'
            f'"viewtime":"{event.ts:%Y-%m-%d %H:%M:%S}.000","user_region":"{region}"}}'
        ).encode()

    fill(setting.servers, topic, view, rows)

    def ours() -> Run:
        return _finished(setting, topic, rows, lambda **names: _ours(setting, rows, **names))

    def flinks() -> Run:
        return _finished(setting, topic, rows, lambda **names: _flinks(setting, rows, **names))

    sides = {"streamcore": ours} | ({"Flink SQL": flinks} if setting.flink else {})
    what = f"Page views and visitors per region, topic to upsert topic, {rows:,} views"
    yield alternate("page-views", what, sides, runs=setting.runs, warmups=setting.warmups)


def _ours(setting: Setting, rows: int, **names: str) -> Run:
    script = TABLES.format(**names) + INSERT
    return setting.ours.run("page_view_jobs.run_script", script=script, rows=rows)


def _flinks(setting: Setting, rows: int, **names: str) -> Run:
    assert setting.flink is not None
    return setting.flink.run(TABLES.format(**names) + INSERT, rows)


def _finished(setting: Setting, source: str, rows: int, run: Any) -> Run:
    """Run into a new topic, and keep what it came to as the checksum."""
    target = f"bench-regions-{next(_numbers)}"
    setting.broker.create_topic(target, 4)
    done: Run = run(source=source, target=target, servers=setting.servers)
    final = _latest(setting.servers, target)
    if sum(row["pv"] for row in final.values()) != rows:
        raise SystemExit(f"page views: {final} do not add up to {rows}")
    done.checksum = json.dumps(final, sort_keys=True)
    return done


def _latest(servers: str, topic: str) -> dict[str, dict[str, Any]]:
    """The last value of each key, as any reader of an upsert topic sees it."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench-regions"})
    places = [TopicPartition(topic, number, 0) for number in range(4)]
    left = sum(consumer.get_watermark_offsets(place)[1] for place in places)
    consumer.assign(places)
    found: dict[str, dict[str, Any]] = {}
    while left:
        for message in consumer.consume(10_000, 1.0):
            left -= 1
            if (value := message.value()) is not None:
                found[json.loads(message.key())["user_region"]] = json.loads(value)
    consumer.close()
    return found
