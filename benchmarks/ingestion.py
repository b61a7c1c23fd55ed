"""`python -m benchmarks.ingestion [ROWS]`: fifty routed tables against the same rows in one."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator

from confluent_kafka import Producer
from streamcore.spark.session import session
from streamcore.testing.services import providers
from streamcore_sql import Session
from streamcore_sql.ingestion.planning import prepare_job

RUNS = 3
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
    sink-table: ${source}.$1
"""
SQL = """
CREATE TABLE rows_in (
  id BIGINT, name STRING, price DOUBLE, ok BOOLEAN, note STRING, at STRING, amount BIGINT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ('connector' = 'kafka', 'topic' = '${source}', 'format' = 'debezium-json',
  'properties.bootstrap.servers' = '${brokers}', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE rows_out WITH ('connector' = 'upsert-kafka', 'topic' = '${source}.sql',
  'key.format' = 'json', 'value.format' = 'json',
  'properties.bootstrap.servers' = '${brokers}') LIKE rows_in (EXCLUDING OPTIONS);
INSERT INTO rows_out SELECT * FROM rows_in;
"""


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


def main(rows: int) -> None:
    with providers.kafka() as kafka:
        brokers = kafka.bootstrap_servers
        producer = Producer({"bootstrap.servers": brokers, "linger.ms": 20})
        for tables in (1, 50):
            source = f"tables-{tables}"
            for name in (source, f"{source}.sql", *(f"{source}.orders_{n}" for n in range(tables))):
                kafka.create_topic(name, 2, {})
            for key, value in changes(rows, tables):
                producer.produce(source, value, key)
                producer.poll(0)
            producer.flush()
        spark = session("benchmark", master="local[2]", config={"spark.log.level": "ERROR"})

        def run(tables: int, sql: bool = False) -> float:
            given = {"brokers": brokers, "source": f"tables-{tables}"}
            with tempfile.TemporaryDirectory() as folder:
                job = Session(spark, name="job", checkpoint=folder, once=True, variables=given)
                if sql:
                    began = time.perf_counter()
                    job.execute(SQL)
                else:
                    planned = prepare_job(job, JOB, "job.yaml", lambda: None)
                    began = time.perf_counter()
                    job.start(planned).wait()
                return time.perf_counter() - began

        sides = {
            "YAML, 1 table": lambda: run(1),
            "YAML, 50 tables": lambda: run(50),
            "SQL, 1 table": lambda: run(1, sql=True),
        }
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(RUNS + 1):
            for name, side in sides.items():
                took = side()
                if number:  # the first round warms Spark and its workers up
                    seconds[name].append(took)
                print(f"{name}: {took:.1f} s", flush=True)
        for name, taken in seconds.items():
            best = min(taken)
            ratio = statistics.median(taken) / statistics.median(seconds["YAML, 1 table"])
            print(f"{name:16} {rows / best:>10,.0f} rows/s at best, {ratio:.2f} x the one table")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500_000)
