"""Executors run apart from the driver, with the driver's Python, and may be killed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from streamcore.testing.services import SparkCluster

pytestmark = pytest.mark.soak  # five JVMs

JOB = """
import os, signal, sys
from streamcore.spark.session import session
from streamcore.testing.services import SparkCluster

local = {
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
}
with SparkCluster(workers=1) as cluster:
    spark = session("cluster", master=cluster.master, config=local)
    tasks = spark.sparkContext.parallelize(range(2), 2)
    (python,) = set(tasks.map(lambda _: sys.executable).collect())
    (executor,) = cluster.executors()
    os.kill(executor, signal.SIGKILL)
    survived = tasks.count()
    (successor,) = cluster.executors()
    print(python == sys.executable, survived, successor != executor)
    spark.stop()
"""


def test_tasks_run_on_workers_and_survive_a_killed_executor():
    done = subprocess.run([sys.executable, "-c", JOB], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "2", "True"], done.stderr


def test_a_killed_worker_comes_back_to_its_master():
    with SparkCluster(workers=1) as cluster:
        (worker,) = cluster.workers
        worker.kill()
        cluster.restart_worker(0)
        assert cluster.workers[0].running
        assert cluster.workers[0].pid != worker.pid
        assert cluster.executors() == []
