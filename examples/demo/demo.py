"""The demo: a real broker, live page views per region, and a check of every count at the end."""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.table import Table
from streamcore.testing.services import KafkaBroker

if TYPE_CHECKING:
    from confluent_kafka import Producer
    from pyspark.sql import SparkSession
    from streamcore_sql import Job

UPDATES, SECONDS = 25, 20
"""Pages are viewed until the result has changed so often, but no longer than that."""
PATIENCE = 120
USERS = 200
REGIONS = ("Africa", "Americas", "Asia", "Europe", "Oceania")
PIPELINE = Path(__file__).with_name("pipeline.sql")


class Generator(threading.Thread):
    """Logs users in, lets them view pages until it is told to stop, and counts along."""

    def __init__(self, servers: str) -> None:
        super().__init__(daemon=True)
        self._servers = servers
        self._dice = random.Random(42)
        self.views: defaultdict[str, int] = defaultdict(int)
        self.visitors: defaultdict[str, set[int]] = defaultdict(set)
        self.running = True
        self.done = False

    def run(self) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._servers, "linger.ms": 20})
        now = datetime(2024, 1, 1, 12)
        home = {user: self._dice.choice(REGIONS) for user in range(USERS)}
        for user, region in home.items():
            login = {"user_id": user, "region": region, "logintime": _text(now)}
            _send(producer, "logins", login)
        while self.running:
            for _ in range(self._dice.randint(50, 150)):
                now += timedelta(milliseconds=self._dice.randint(1, 15))
                user = int(self._dice.triangular(0, USERS - 1, 20))
                page = self._dice.randrange(1000)
                view = {"user_id": user, "page_id": page, "viewtime": _text(now)}
                _send(producer, "pageviews", view)
                self.views[home[user]] += 1
                self.visitors[home[user]].add(user)
            time.sleep(0.1)
        producer.flush()
        self.done = True

    def expected(self) -> dict[str, tuple[int, int]]:
        return {region: (self.views[region], len(self.visitors[region])) for region in self.views}


class Result(threading.Thread):
    """Follows the result topic with a plain Kafka client."""

    def __init__(self, servers: str) -> None:
        super().__init__(daemon=True)
        from confluent_kafka import Consumer

        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": "watcher", "auto.offset.reset": "earliest"}
        )
        self.rows: dict[str, tuple[int, int]] = {}
        self.updates = 0
        self.running = True

    def run(self) -> None:
        self._consumer.subscribe(["pageviews_per_region"])
        while self.running:
            for message in self._consumer.consume(100, 0.2):
                if message.error() is None and message.value():
                    row = json.loads(message.value())
                    self.rows[row["user_region"]] = (row["pv"], row["uv"])
                    self.updates += 1
        self._consumer.close()


def _send(producer: Producer, topic: str, row: dict[str, object]) -> None:
    producer.produce(topic, json.dumps(row).encode(), str(row["user_id"]).encode())
    producer.poll(0)


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}"


def _table(result: Result, generator: Generator) -> Table:
    table = Table(title="pageviews_per_region", caption=f"{result.updates} updates so far")
    for name in ("region", "page views", "visitors", "produced"):
        table.add_column(name, justify="left" if name == "region" else "right")
    for region in REGIONS:
        views, visitors = result.rows.get(region, (0, 0))
        produced = generator.views.get(region, 0)
        table.add_row(region, f"{views:,}", f"{visitors:,}", f"{produced:,}")
    return table


def main() -> int:
    """Run it all and say whether every count was right."""
    from streamcore_sql import Session

    console = Console()
    began = time.monotonic()
    folder = tempfile.mkdtemp(prefix="streamcore-demo-")
    broker = KafkaBroker()
    try:
        with console.status("starting Kafka and Spark"), ThreadPoolExecutor(1) as aside:
            starting = aside.submit(_start_spark, Path(folder, "spark.log"))
            servers = broker.start().bootstrap_servers
            for topic in ("pageviews", "logins"):
                broker.create_topic(topic, 2)
            broker.create_topic("pageviews_per_region", 2, {"cleanup.policy": "compact"})
            spark = starting.result()
        console.print(f"Kafka is up on {servers}; the pipeline is {PIPELINE.name}:")
        console.print(
            PIPELINE.read_text().partition("-- A view")[2].partition("\n")[2], style="cyan"
        )
        generator, result = Generator(servers), Result(servers)
        generator.start()
        result.start()
        variables = {"BROKERS": servers}
        session = Session(spark, name="demo", variables=variables, checkpoint=folder)
        with console.status("starting the query"):
            job = session.execute(PIPELINE.read_text())
        right = _watch(console, generator, result, job)
        job.stop()
        generator.running = result.running = False
        generator.join()
        result.join()
        spark.stop()
    finally:
        with console.status("stopping"):
            broker.stop()
            shutil.rmtree(folder, ignore_errors=True)
    total = sum(generator.views.values())
    if not right:
        console.print(f"expected {generator.expected()}, found {result.rows}", style="red")
        return 1
    console.print(
        f"All counts of {total:,} page views are right, {time.monotonic() - began:.0f} s in all.\n"
        "Next: 'streamcore sandbox up' for a broker of your own, 'streamcore sql' to type SQL, "
        "'streamcore list-plugins' to see what is installed, README.md to read on."
    )
    return 0


def _start_spark(log: Path) -> SparkSession:
    from streamcore.spark.session import session
    from streamcore_sql.quiet import quiet_start

    with quiet_start(log):
        return session("demo")


def _watch(console: Console, generator: Generator, result: Result, job: Job) -> bool:
    began = time.monotonic()
    with Live(_table(result, generator), console=console, refresh_per_second=4) as live:
        while (watched := time.monotonic() - began) < SECONDS + PATIENCE:
            live.update(_table(result, generator))
            if result.updates >= UPDATES or watched > SECONDS:
                generator.running = False
            if generator.done and result.rows == generator.expected():
                return True
            if job.error is not None:
                console.print(job.error, style="red")
                return False
            time.sleep(0.25)
    return False


if __name__ == "__main__":
    sys.exit(main())
