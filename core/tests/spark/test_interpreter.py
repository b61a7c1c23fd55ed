"""The Python that Spark's workers run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
from streamcore.spark.interpreter import LAUNCHER, worker_environment

HOME = Path(pyspark.__file__).parent


def test_workers_import_the_installed_pyspark_in_place_of_its_zip(spark):
    def look(_):
        import pyspark

        return [pyspark.__file__, *os.environ["PYTHONPATH"].split(os.pathsep)]

    found = spark.sparkContext.parallelize([1], 1).mapPartitions(look).collect()
    assert found[0] == pyspark.__file__
    assert not [path for path in found if path.endswith(".zip")]


def test_the_launcher_drops_every_copy_of_the_zips_and_keeps_the_rest():
    added = worker_environment("local[2]", {})
    zipped = added["STREAMCORE_ZIPPED_PYSPARK"]
    path = f"first:{zipped}:second:{zipped}"
    asked = "import os; print(os.environ['PYTHONPATH'])"
    done = subprocess.run(
        [LAUNCHER, "-c", asked],
        env={**os.environ, **added, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "first:second"


STARTED_BEFORE = """
import os
from pyspark.sql import SparkSession

quiet = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1",
         "spark.driver.host": "127.0.0.1", "spark.log.level": "OFF"}
builder = SparkSession.builder.master("local[1]")
for key, value in quiet.items():
    builder = builder.config(key, value)
builder.getOrCreate().stop()

import streamcore
spark = streamcore.session("later", "local[1]", quiet)
print("found", spark.sparkContext.parallelize([1], 1).map(lambda n: n + 1).collect())
spark.stop()
"""


def test_a_jvm_that_was_started_before_gets_a_python_it_can_run():
    environment = {key: value for key, value in os.environ.items() if key != "PYSPARK_PYTHON"}
    done = subprocess.run(
        [sys.executable, "-c", STARTED_BEFORE],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "found [2]" in done.stdout, done.stderr[-2000:]


def test_workers_of_other_machines_and_of_another_spark_are_left_alone():
    plain = {"PYSPARK_PYTHON": sys.executable}
    assert worker_environment("spark://10.0.0.1:7077", {}) == plain
    assert worker_environment("local[2]", {"SPARK_HOME": "/opt/spark"}) == plain
    assert worker_environment("local[2]", {"SPARK_HOME": str(HOME)}) != plain
    assert worker_environment("local[2]", {"PYSPARK_PYTHON": "python3"}) == {}
