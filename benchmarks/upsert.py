"""Upsert tables against plain ones and against Flink's, and what the state behind them costs."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from . import pipelines
from .measure import BenchmarkError, Plan, Run
from .pipelines import latest, untold, written
from .setting import Setting

Outcome = Callable[[str], str]
"""What a target came to."""
KEYS = 20_000
BATCHES = {50_000: 5, 1_000_000: 2}
"""Sizes of micro-batches, and how many of them, so that starting the query hardly counts."""
UPSERTS = """
CREATE TABLE {name} (id BIGINT, name STRING, n BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{{{topic}}}', 'key.format' = 'json',
  'value.format' = 'json', 'properties.bootstrap.servers' = '{{servers}}'{more});
"""
PLAIN = """
CREATE TABLE source (id BIGINT, name STRING, n BIGINT) WITH ('connector' = 'kafka',
  'topic' = '{source}', 'format' = 'json', 'properties.bootstrap.servers' = '{servers}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
"""
INTO = UPSERTS.format(name="target", topic="target", more="") + (
    "INSERT INTO target SELECT id, name, n FROM source;\n"
)
READING = {
    "streamcore": ", 'changelog.normalize' = 'true'",
    "Flink SQL": ", 'scan.bounded.mode' = 'latest-offset'",
}
"""What makes a full changelog of upserts that ends: Flink keeps state by itself."""
RESTART_KEYS = 1_000_000
_numbers = itertools.count(1)
_topics: set[str] = set()


def cases(setting: Setting) -> Iterator[Plan]:
    """Writing and reading beside the kafka connector, the buffer, then normalisation."""
    rows = setting.fewer // 2
    what = f"{rows:,} upserts to Kafka json, with a key"
    yield _plan(setting, "upsert-sink", what, rows, _writing)
    what = f"{rows:,} upserts of {rows // 10:,} keys to Kafka json"
    yield _plan(setting, "upsert-buffer", what, rows, _buffered)
    what = f"Kafka json, key and value, to upserts, {rows:,} messages, nothing kept"
    yield _plan(setting, "upsert-source", what, rows, _reading)
    for batch, batches in BATCHES.items():
        what = f"a full changelog of {KEYS:,} keys, micro-batches of {batch:,} messages"
        yield Plan(
            f"upsert-normalize-{batch}",
            what,
            partial(_normalizing, setting, batch, batches),
            setting.runs,
            setting.warmups,
            warming=partial(_normalizing, setting, min(batch, setting.sample), 1),
        )
    what = f"{rows:,} messages of {KEYS:,} keys, topic to upsert topic"
    yield _plan(setting, "upsert-from-topic", what, rows, _from_plain)
    what = f"{rows:,} upserts of {KEYS:,} keys, upsert topic to upsert topic by a full changelog"
    yield _plan(setting, "upsert-to-upsert", what, rows, _from_upserts)
    what = f"the first result of a query taken up again with {RESTART_KEYS:,} keys in its state"
    sides = partial(_restarting, setting)
    note = "One run: filling the state takes longer than all else."
    yield Plan("upsert-restart", what, sides, runs=1, warmups=0, unit="ms", note=note)


def _plan(
    setting: Setting,
    name: str,
    what: str,
    rows: int,
    sides: Callable[[Setting, int, Outcome], dict[str, Callable[[], Run]]],
) -> Plan:
    """The tables that the warm-up leaves are looked into."""
    return Plan(
        name,
        what,
        partial(sides, setting, rows, untold),
        setting.runs,
        setting.warmups,
        warming=partial(sides, setting, min(rows, setting.sample), partial(_table, setting)),
    )


def _writing(setting: Setting, rows: int, outcome: Outcome) -> dict[str, Callable[[], Run]]:
    write = partial(_into_new_topics, setting, outcome, rows=rows, keys=rows)
    return {
        "upsert-kafka": write("upsert_jobs.write_upserts"),
        "kafka": write("upsert_jobs.write_plain"),
    }


def _reading(setting: Setting, rows: int, _: Outcome) -> dict[str, Callable[[], Run]]:
    topic = _filled(setting, rows)
    return {
        "upsert-kafka": partial(_from_topic, setting, "upsert_jobs.read_upserts", topic),
        "kafka": partial(_from_topic, setting, "upsert_jobs.read_plain", topic),
    }


def _normalizing(setting: Setting, batch: int, batches: int) -> dict[str, Callable[[], Run]]:
    topic = _filled(setting, batch * batches)
    return {"upsert-kafka": partial(_normalized, setting, topic, batch, batches)}


def _from_plain(setting: Setting, rows: int, outcome: Outcome) -> dict[str, Callable[[], Run]]:
    """The same script on both sides, and the same table in the end."""
    return pipelines.sides(setting, PLAIN + INTO, rows, outcome, source=_filled(setting, rows))


def _from_upserts(setting: Setting, rows: int, outcome: Outcome) -> dict[str, Callable[[], Run]]:
    topic, copied = _filled(setting, rows), {}
    for side, more in READING.items():
        script = UPSERTS.format(name="source", topic="source", more=more) + INTO
        both = pipelines.sides(setting, script, rows, outcome, source=topic)
        copied |= {side: both[side]} if side in both else {}
    return copied


def _table(setting: Setting, topic: str) -> str:
    """A checksum of the table that a topic of upserts leaves."""
    values = latest(setting.servers, topic).values()
    found = sorted(str(sorted(json.loads(value).items())) for value in values)
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def _restarting(setting: Setting) -> dict[str, Callable[[], Run]]:
    return {"streamcore": lambda: Run(restart(setting, RESTART_KEYS), 1)}


def _buffered(setting: Setting, rows: int, outcome: Outcome) -> dict[str, Callable[[], Run]]:
    """Every key ten times: what the buffer leaves of that is in `records`."""
    buffer = {
        "sink.buffer-flush.max-rows": str(rows // 5),
        "sink.buffer-flush.interval": "1 min",
    }
    job = "upsert_jobs.write_upserts"
    write = partial(_into_new_topics, setting, outcome, job, rows=rows, keys=rows // 10)
    return {"buffered": write(most=0.15, **buffer), "every row": write()}


def _into_new_topics(
    setting: Setting,
    outcome: Outcome,
    job: str,
    rows: int,
    keys: int,
    most: float = 1.0,
    **extra: str,
) -> Callable[[], Run]:
    """Into a topic of its own each time."""

    def run() -> Run:
        topic = f"bench-upsert-{next(_numbers)}"
        setting.broker.create_topic(topic, 4)
        place = {"servers": setting.servers, "topic": topic}
        done = setting.ours.run(job, **place, rows=rows, keys=keys, **extra)
        records = written(setting.servers, topic)
        done.checksum = outcome(topic)
        setting.broker.delete_topic(topic)
        if not records <= rows * most:
            raise BenchmarkError(
                f"{job}: {records} records of {rows} rows, at most {rows * most} wanted"
            )
        done.extra["records"] = records
        return done

    return run


def _filled(setting: Setting, rows: int) -> str:
    """A topic of upserts over the keys, written once."""
    topic = f"bench-upserts-of-{rows}"
    if topic in _topics:
        return topic
    _topics.add(topic)
    setting.broker.create_topic(topic, 4)
    setting.ours.run(
        "upsert_jobs.write_upserts", servers=setting.servers, topic=topic, rows=rows, keys=KEYS
    )
    return topic


def _from_topic(setting: Setting, job: str, topic: str, **more: Any) -> Run:
    checkpoint = tempfile.mkdtemp(prefix="bench")
    try:
        return setting.ours.run(
            job, servers=setting.servers, topic=topic, checkpoint=checkpoint, **more
        )
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)


def _normalized(setting: Setting, topic: str, batch: int, batches: int) -> Run:
    """The first micro-batch meets new keys, the others change them."""
    run = _from_topic(setting, "upsert_jobs.normalize", topic, batch=batch)
    run.rows = batch * batches  # messages read: what a task hands on is one row of each key
    return run


def restart(setting: Setting, keys: int = 1_000_000) -> float:
    """Seconds from starting a query on a checkpoint of so many keys to its first result."""
    topic = f"bench-restart-{next(_numbers)}"
    setting.broker.create_topic(topic, 4)
    write = partial(setting.ours.run, "upsert_jobs.write_upserts", servers=setting.servers)
    write(topic=topic, rows=keys, keys=keys)
    checkpoint = tempfile.mkdtemp(prefix="bench")
    read = partial(
        setting.ours.run,
        "upsert_jobs.normalize",
        servers=setting.servers,
        topic=topic,
        checkpoint=checkpoint,
        batch=keys,
    )
    try:
        read()
        write(topic=topic, rows=1_000, keys=1_000)
        start = time.perf_counter()
        read()
        return time.perf_counter() - start
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)
