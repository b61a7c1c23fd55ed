"""A Spark session with what streams of ours need, leaving alone what the user has set."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from .finished import listen
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
    given = config or {}
    builder = SparkSession.builder.appName(name)
    if not master:
        remote = remote or given.get("spark.remote") or os.environ.get("SPARK_REMOTE")
    if remote:
        own = {key: value for key, value in given.items() if key != "spark.remote"}
        return _settle(builder.remote(remote).getOrCreate(), own)
    active = SparkSession.getActiveSession()
    if active is not None:
        listen(active)
        return _settle(active, given)
    submitted = _submitted()
    chosen = (
        master
        or given.get("spark.master")
        or submitted.get("spark.master")
        or os.environ.get("SPARK_MASTER", "local[*]")
    )
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
        spark = builder.getOrCreate()
    listen(spark)
    return spark


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


def _submitted() -> dict[str, str]:
    """What the user has told Spark elsewhere, which we leave alone."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit runs us: its JVM knows all of it
        SparkContext._ensure_initialized()
        return dict(SparkConf().getAll())
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    folder = Path(os.environ.get("SPARK_CONF_DIR") or Path(home, "conf"))
    return _properties(folder / "spark-defaults.conf") | _arguments()


def _arguments() -> dict[str, str]:
    """The settings in PYSPARK_SUBMIT_ARGS, in every spelling that spark-submit takes."""
    found: dict[str, str] = {}
    words = iter(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
    for word in words:
        flag, joined, value = word.partition("=")
        if flag not in ("--conf", "-c", "--master", "--properties-file"):
            continue
        value = value if joined else next(words, "")
        if flag == "--master":
            found["spark.master"] = value
        elif flag == "--properties-file":
            found = _properties(Path(value)) | found
        else:
            key, _, setting = value.partition("=")
            found[key] = setting
    return found


def _properties(path: Path) -> dict[str, str]:
    """A file of Java properties: '=', ':' or blanks stand between a key and its value."""
    if not path.is_file():
        return {}
    lines = map(str.strip, path.read_text("utf-8").splitlines())
    pairs = (re.split(r"\s*[=:]\s*|\s+", line, maxsplit=1) for line in lines if line)
    return {key: "".join(value) for key, *value in pairs if key[0] not in "#!"}


def _settle(spark: SparkSession, config: Mapping[str, str]) -> SparkSession:
    """Set on a running session what may still be set there."""
    for key, value in config.items():
        spark.conf.set(key, value)
    return spark
