"""`python -m benchmarks.monitoring [ROWS [BATCH]]`: what seeing a job costs it, in CPU time.

Both sides run the same job in the same Spark, in turns. CPU time of the whole process tree is
compared, because wall time on a machine that others use says little; the driver's own Python,
where all of the monitoring but the tasks' reports lives, is told apart.
"""

from __future__ import annotations

import contextlib
import io
import os
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from confluent_kafka import Producer
from rich.console import Console
from streamcore import reports
from streamcore.spark.session import session
from streamcore.testing.services import providers
from streamcore_sql import Session
from streamcore_sql.display import view
from streamcore_sql.monitoring.surfaces import Surfaces
from streamcore_sql.progress import Watch

from .processes import cpu_seconds, tree

RUNS = 5
SQL = """
CREATE TABLE orders (id BIGINT, name STRING, amount BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'format' = 'json',
  'properties.bootstrap.servers' = '${brokers}', 'scan.startup.mode' = 'earliest-offset',
  'scan.max-rows-per-batch' = '${batch}');
CREATE TABLE hole (id BIGINT, name STRING, amount BIGINT) WITH ('connector' = 'blackhole');
"""


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """A job that nobody listens to or looks at."""
    kept = list(reports._listening)
    reports._listening.clear()
    with (
        mock.patch("streamcore_sql.session.listen_on", return_value=None),
        mock.patch("streamcore_sql.running.sampled", lambda job: job),
    ):
        yield
    reports._listening.extend(kept)


@contextlib.contextmanager
def seen(running: Session, folder: str) -> Iterator[None]:
    """A job with everything on: view and files twice a second, page and scrape every two."""
    with mock.patch.dict(os.environ, STREAMCORE_STATE=folder):
        surfaces = Surfaces("job", "job.sql", lambda: running.jobs, metrics="0", web="0")
        over, watch = threading.Event(), Watch()
        console = Console(file=io.StringIO(), width=120, height=40, force_terminal=True)

        def look() -> None:
            while not over.wait(0.5):
                looks = [look for job in running.jobs for look in watch.look(job)]
                console.print(view(looks, 40))
                if running.jobs:
                    surfaces.look(running.jobs)

        def ask() -> None:
            while not over.wait(2):
                jobs = [job.id for job in running.jobs]
                since = time.time() - 10
                paths = ["api/state", "metrics"]
                paths += [f"api/history?job={each}&since={since}" for each in jobs]
                for path in paths:
                    urllib.request.urlopen(f"{surfaces.urls['web']}/{path}").read()

        with surfaces.shown(lambda text: None, lambda text: None):
            threads = [threading.Thread(target=each, daemon=True) for each in (look, ask)]
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                over.set()
                for thread in threads:
                    thread.join()


def main(rows: int, batch: int) -> None:
    with providers.kafka() as kafka:
        kafka.create_topic("orders", 2, {})
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 20})
        for number in range(rows):
            value = b'{"id":%d,"name":"name %d","amount":%d}' % (number, number, number * 3)
            producer.produce("orders", value)
            producer.poll(0)
        producer.flush()
        given = {"brokers": kafka.bootstrap_servers, "batch": str(batch)}
        spark = session("benchmark", master="local[2]", config={"spark.log.level": "ERROR"})

        def run(watched: bool) -> tuple[float, float, float]:
            with tempfile.TemporaryDirectory() as folder:
                place = str(Path(folder, "checkpoint"))
                job = Session(spark, name="job", checkpoint=place, once=True, variables=given)
                outer: Any = seen(job, folder) if watched else unseen()
                with outer:
                    job.execute(SQL)
                    before = cpu_seconds(tree(os.getpid())), time.process_time(), time.time()
                    job.execute("INSERT INTO hole SELECT * FROM orders")
                    after = cpu_seconds(tree(os.getpid())), time.process_time(), time.time()
            whole, own, wall = (end - start for start, end in zip(before, after, strict=True))
            return whole, own, wall

        sides: dict[str, list[tuple[float, float, float]]] = {"unseen": [], "seen": []}
        for number in range(RUNS + 1):
            for name, found in sides.items():
                took = run(watched=name == "seen")
                if number:  # the first round warms Spark and its workers up
                    found.append(took)
                print(f"{name}: {took[0]:.1f} s of CPU, {took[1]:.2f} s of it here", flush=True)
        medians = {
            name: [statistics.median(each) for each in zip(*found, strict=True)]
            for name, found in sides.items()
        }
        plain, full = medians["unseen"], medians["seen"]
        own = (full[1] - plain[1]) / full[2]
        print(f"{rows:,} rows in batches of {batch:,}, {full[2]:.0f} s each")
        print(f"whole tree: {full[0] / plain[0] - 1:+.1%} CPU ({plain[0]:.1f} s, {full[0]:.1f} s)")
        print(
            f"driver's Python: {own * 1000:.1f} ms of CPU a second, "
            f"{own / (os.cpu_count() or 1):.2%} of the machine"
        )


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    main(*given, *(1_000_000, 100_000)[len(given) :])
