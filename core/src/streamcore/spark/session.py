"""A Spark session with what streams of ours need, leaving alone what the user has set."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping

from pyspark.sql import SparkSession

from .interpreter import LAUNCHER, of_running_jvm, worker_environment

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def defaults(master: str = "local", python: str = sys.executable) -> dict[str, str]:
    """The settings streamcore asks for, each with its reason in docs/spark.md."""
    cores = os.cpu_count() or 2
    # One machine needs no listener that others could reach.
    here = ("spark.driver.host", "spark.driver.bindAddress") if master.startswith("local") else ()
    return dict.fromkeys(here, "127.0.0.1") | {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timeType.enabled": "true",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.sql.streaming.metricsEnabled": "true",
        "spark.executorEnv.PYSPARK_PYTHON": python,
        "spark.pyspark.python": python,
        "spark.ui.showConsoleProgress": "false",
    }


def session(
    name: str = "streamcore",
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    remote: str | None = None,
) -> SparkSession:
    """Return the active session, or build one; explicit `config` and Spark's own settings win."""
    builder = SparkSession.builder.appName(name)
    if remote:
        return _settle(builder.remote(remote).getOrCreate(), config or {})
    active = SparkSession.getActiveSession()
    if active is not None:
        return _settle(active, config or {})
    given = config or {}
    submitted = _from_environment()
    chosen = master or given.get("spark.master") or os.environ.get("SPARK_MASTER", "local[*]")
    if chosen.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # its web pages heed nothing else
    if master or "spark.master" not in submitted:
        builder = builder.master(chosen)
    running = of_running_jvm()  # which keeps what it was started with
    environment = worker_environment(chosen) if running is None else running
    python = environment.get("PYSPARK_PYTHON") or os.environ.get("PYSPARK_PYTHON", sys.executable)
    if python == str(LAUNCHER) and not chosen.startswith("local"):
        python = sys.executable
    for key, value in {**defaults(chosen, python), **given}.items():
        if key in given or key not in submitted:
            builder = builder.config(key, value)
    with _added(environment):
        return builder.getOrCreate()


@contextlib.contextmanager
def _added(environment: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _from_environment() -> set[str]:
    """Keys the user has set in spark-defaults.conf or spark-submit, which we leave alone."""
    from pyspark import SparkConf

    keys = set()
    for home in filter(
        None, (os.environ.get("SPARK_CONF_DIR"), os.environ.get("SPARK_HOME", "") + "/conf")
    ):
        path = os.path.join(home, "spark-defaults.conf")
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as lines:
                keys |= {line.split()[0] for line in lines if line.strip() and line[0] != "#"}
    if "--conf" in os.environ.get("PYSPARK_SUBMIT_ARGS", ""):
        words = os.environ["PYSPARK_SUBMIT_ARGS"].split()
        pairs = [words[i + 1] for i, word in enumerate(words[:-1]) if word == "--conf"]
        keys |= {pair.split("=")[0] for pair in pairs}
    return keys | {key for key, _ in SparkConf(loadDefaults=False).getAll()}


def _settle(spark: SparkSession, config: Mapping[str, str]) -> SparkSession:
    """Set on a running session what may still be set there."""
    for key, value in config.items():
        spark.conf.set(key, value)
    return spark
