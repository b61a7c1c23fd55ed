"""What seeing a job costs it.

Both sides run the same job in the same Spark, in turns. Beside the pace stands the CPU time of the
whole process tree, because wall time on a machine that others use says little, and that of the
driver's own Python, where all of the monitoring but the tasks' reports lives.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from pyspark.sql import SparkSession
from rich.console import Console
from streamcore import reports
from streamcore_sql import Session
from streamcore_sql.display import view
from streamcore_sql.monitoring.surfaces import Surfaces
from streamcore_sql.progress import Watch

from .jobs import Answer
from .measure import Plan, Run
from .setting import Setting

BATCH, LEAST = 50_000, 0.98
SQL = """
CREATE TABLE orders (user_id BIGINT, behavior STRING, item_id BIGINT) WITH (
  'connector' = 'kafka', 'topic' = '${topic}', 'format' = 'json',
  'properties.bootstrap.servers' = '${brokers}', 'scan.startup.mode' = 'earliest-offset',
  'scan.max-rows-per-batch' = '${batch}');
CREATE TABLE hole WITH ('connector' = 'blackhole') LIKE orders (EXCLUDING OPTIONS);
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

        with surfaces.shown(lambda text: None, lambda *_: None):
            threads = [threading.Thread(target=each, daemon=True) for each in (look, ask)]
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                over.set()
                for thread in threads:
                    thread.join()


def cases(setting: Setting) -> Iterator[Plan]:
    """With everything on, and with nothing."""
    rows = 4 * setting.fewer // 10
    yield Plan(
        "monitoring",
        f"a job on {rows:,} messages in batches of {BATCH:,}, seen and unseen",
        partial(_sides, setting, rows),
        setting.runs,
        setting.warmups,
        warming=partial(_sides, setting, setting.sample),
        note=f"At least {LEAST} of the unseen job's pace is wanted.",
    )


def _sides(setting: Setting, rows: int) -> dict[str, Callable[[], Run]]:
    place = {"brokers": setting.servers, "topic": setting.topic("json", rows), "rows": rows}
    return {
        name: partial(setting.ours.run, "monitoring.run", **place, watched=name == "seen")
        for name in ("seen", "unseen")
    }


def run(spark: SparkSession, brokers: str, topic: str, rows: int, watched: bool) -> Answer:
    """The job inside a Spark process."""
    given = {"brokers": brokers, "topic": topic, "batch": str(BATCH)}
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder, "checkpoint"))
        job = Session(spark, name="job", checkpoint=place, once=True, variables=given)
        outer: Any = seen(job, folder) if watched else unseen()
        with outer:
            job.execute(SQL)
            cpu, start = time.process_time(), time.perf_counter()
            job.execute("INSERT INTO hole SELECT * FROM orders")
            seconds, spent = time.perf_counter() - start, time.process_time() - cpu
    return {"seconds": seconds, "rows": rows, "extra": {"driver CPU ms/s": 1000 * spent / seconds}}
