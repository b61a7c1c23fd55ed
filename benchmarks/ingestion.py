"""Fifty routed tables of one job against the same rows in one table, and in SQL."""

from __future__ import annotations

import itertools
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from pyspark.sql import SparkSession
from streamcore_sql import Session
from streamcore_sql.ingestion.planning import prepare_job

from .jobs import Answer
from .measure import BenchmarkError, Plan, Run
from .pipelines import written
from .setting import Setting

TABLES, LEAST = 50, 1 / 1.5
"""So many tables may take one and a half times as long as one."""
JOB = r"""
source:
  type: kafka
  topic: ${source}
  properties.bootstrap.servers: ${brokers}
  scan.startup.mode: earliest-offset
  value.format: debezium-json
sink:
  type: upsert-kafka
  properties.bootstrap.servers: ${brokers}
route:
  - source-table: shop.(\.*)
    sink-table: ${target}.$1
"""
TRANSFORM = r"""
transform:
  - source-table: shop.\.*
    projection: \*, price * amount AS total
    filter: amount >= 0
"""
SQL = """
CREATE TABLE rows_in (
  id BIGINT, name STRING, price DOUBLE, ok BOOLEAN, note STRING, at STRING, amount BIGINT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ('connector' = 'kafka', 'topic' = '${source}', 'format' = 'debezium-json',
  'properties.bootstrap.servers' = '${brokers}', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE rows_out WITH ('connector' = 'upsert-kafka', 'topic' = '${target}.sql',
  'key.format' = 'json', 'value.format' = 'json',
  'properties.bootstrap.servers' = '${brokers}') LIKE rows_in (EXCLUDING OPTIONS);
INSERT INTO rows_out SELECT * FROM rows_in;
"""
_numbers = itertools.count(1)
_topics: set[str] = set()


def cases(setting: Setting) -> Iterator[Plan]:
    """The first side is what is wanted: many tables, as they come and transformed."""
    rows = 3 * setting.fewer // 10
    for name, more in {"": "", "-transform": TRANSFORM}.items():
        what = f"{rows:,} changes of {TABLES} tables to a topic for each"
        yield Plan(
            f"ingestion{name}",
            what + (", transformed" if more else ""),
            partial(_sides, setting, rows, JOB + more),
            setting.runs,
            setting.warmups,
            warming=partial(_sides, setting, rows // 5, JOB + more),
            note=f"At least {LEAST:.2f} of one table is wanted.",
        )


def _sides(setting: Setting, rows: int, job: str) -> dict[str, Callable[[], Run]]:
    sides = {
        f"{TABLES} tables": partial(_run, setting, rows, TABLES, job),
        "1 table": partial(_run, setting, rows, 1, job),
    }
    if TRANSFORM not in job:
        sides["1 table, in SQL"] = partial(_run, setting, rows, 1, SQL)
    return sides


def _run(setting: Setting, rows: int, tables: int, text: str) -> Run:
    """Into new topics each time, which are counted."""
    source = f"bench-tables-{next(_numbers)}"
    targets = [f"{source}.orders_{n}" for n in range(tables)]
    if text == SQL:
        targets = [f"{source}.sql"]
    topic = _filled(setting, rows, tables)
    admin = setting.broker.admin()
    made = admin.create_topics([NewTopic(name, 2) for name in targets], operation_timeout=30)
    for future in made.values():
        future.result()
    given = {"brokers": setting.servers, "source": topic, "target": source}
    done = setting.ours.run("ingestion.routed", text=text, rows=rows, given=given)
    found = written(setting.servers, *targets, partitions=2)
    for future in admin.delete_topics(targets, operation_timeout=30).values():
        future.result()
    if found != rows:
        raise BenchmarkError(f"{found} of {rows} changes are in {tables} topics")
    return done


def _filled(setting: Setting, rows: int, tables: int) -> str:
    topic = f"bench-{rows}-changes-{tables}"
    if topic not in _topics:
        _topics.add(topic)
        setting.broker.create_topic(topic, 2)
        producer = Producer({"bootstrap.servers": setting.servers, "linger.ms": 20})
        for key, value in changes(rows, tables):
            producer.produce(topic, value, key)
            producer.poll(0)
        producer.flush()
    return topic


def routed(spark: SparkSession, text: str, rows: int, given: dict[str, str]) -> Answer:
    """Run a job of either kind inside a Spark process, to its end."""
    with tempfile.TemporaryDirectory() as folder:
        job = Session(spark, name="job", checkpoint=folder, once=True, variables=given)
        if text == SQL:
            began = time.perf_counter()
            job.execute(text)
        else:
            planned = prepare_job(job, text, "job.yaml", lambda: None)
            began = time.perf_counter()
            job.start(planned).wait()
        return {"seconds": time.perf_counter() - began, "rows": rows}


def changes(rows: int, tables: int) -> Iterator[tuple[bytes, bytes]]:
    for number in range(rows):
        row = {
            "id": number,
            "name": f"name {number}",
            "price": number / 4,
            "ok": True,
            "note": None,
            "at": "2024-05-06 07:08:09",
            "amount": number * 3,
        }
        source = {"db": "shop", "table": f"orders_{number % tables}"}
        value = {"before": None, "after": row, "op": "c", "source": source, "ts_ms": 1}
        yield json.dumps({"id": number}).encode(), json.dumps(value).encode()
