"""Page views and visitors per region, from a topic to an upsert-kafka table: ours and Flink's."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import partial

from .data import Event
from .measure import BenchmarkError, Plan, Run
from .pipelines import latest, sides, untold
from .setting import Setting

USERS = 10_000
REGIONS = ("Africa", "Americas", "Asia", "Europe", "Oceania")

SCRIPT = """
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
INSERT INTO pageviews_per_region
SELECT user_region, COUNT(*), COUNT(DISTINCT user_id) FROM pageviews GROUP BY user_region;
"""


MINI_BATCH = """
SET 'table.exec.mini-batch.enabled' = 'true';
SET 'table.exec.mini-batch.allow-latency' = '1 s';
SET 'table.exec.mini-batch.size' = '100000';
"""


def cases(setting: Setting) -> Iterator[Plan]:
    """The pipeline of the documentation, end to end; all must arrive at the same counts."""
    rows = setting.fewer * 3 // 4
    yield Plan(
        "page-views",
        f"Page views and visitors per region, topic to upsert topic, {rows:,} views",
        partial(_sides, setting, rows, untold),
        setting.runs,
        setting.warmups,
        warming=partial(_sides, setting, setting.sample),
        note="Flink tells each change of an aggregate by default; a micro-batch tells the last "
        "one, and so does Flink with mini-batches.",
    )


def _sides(
    setting: Setting, rows: int, outcome: Callable[[str], str] | None = None
) -> dict[str, Callable[[], Run]]:
    dice = random.Random(7)

    def view(event: Event) -> bytes:
        region = dice.choice(REGIONS)
        return (
            f'{{"user_id":{event.user_id % USERS},"page_id":{event.item_id % 1000},'
            f'"viewtime":"{event.ts:%Y-%m-%d %H:%M:%S}.000","user_region":"{region}"}}'
        ).encode()

    def counted(target: str) -> str:
        final = [json.loads(value) for value in latest(setting.servers, target).values()]
        if sum(row["pv"] for row in final) != rows:
            raise BenchmarkError(f"page views: {final} do not add up to {rows}")
        return json.dumps(sorted(final, key=lambda row: row["user_region"]), sort_keys=True)

    topic = setting.filled(f"bench-views-{rows}", view, rows, seed="bench-views")
    variants = {"mini-batch": MINI_BATCH}
    return sides(setting, SCRIPT, rows, outcome or counted, variants, source=topic)
