"""Spark's classes, loaded once per Java and PySpark and mapped by every Spark after that."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from .downloads import Package, is_whole
from .process import ServiceError, java

ARCHIVE = "classes.jsa"  # loading and checking classes is most of a Spark's start
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # right for what lives for seconds
UNSAID = "-Xlog:cds=off -Xlog:cds+dynamic=off"  # whether an archive fits is nobody's business
RECORDED = """
import sys
from pyspark import SparkContext
from streamcore.spark.session import session

folder = sys.argv[1]
config = {"spark.log.level": "OFF", "spark.sql.warehouse.dir": folder, "spark.ui.enabled": "false"}
spark = session("classes", "local[2]", config)
rows = spark.createDataFrame([(1, "a"), (2, "b")], "n int, t string")
rows.groupBy("t").count().orderBy("t").collect()
stream = spark.readStream.format("rate").load().groupBy("value").count()
writer = stream.writeStream.foreachBatch(lambda batch, _: batch.collect()).outputMode("update")
writer = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
writer.start().awaitTermination()
gateway = SparkContext._gateway
spark.stop()
gateway.proc.stdin.close()  # the JVM ends, and writes before that
sys.exit(gateway.proc.wait())
"""


def options(*, record: bool = False) -> str:
    """What to give the JVMs of Spark; with `record`, the archive is written first if need be."""
    package = _package()
    if record:
        package.path()
    archive = package.home / ARCHIVE
    mapped = is_whole(package.home) and archive.exists()
    return f"{QUICK} -XX:SharedArchiveFile={archive} {UNSAID}" if mapped else QUICK


def _package() -> Package:
    try:
        import pyspark
    except ModuleNotFoundError:
        raise ServiceError("PySpark is needed: pip install 'streamcore[spark]'") from None
    program, jars = os.path.realpath(java()), Path(pyspark.__file__).parent / "jars"
    identity = f"{program} {os.stat(program).st_mtime_ns} {jars} {os.stat(jars).st_mtime_ns}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return Package(f"spark-{pyspark.__version__}-classes-{digest}", _fill)


def _fill(target: Path, scratch: Path) -> None:
    """Run a Spark once and have the JVM write down at its end what it loaded."""
    written = f"-XX:+IgnoreUnrecognizedVMOptions -XX:ArchiveClassesAtExit={target / ARCHIVE}"
    subprocess.run(
        [sys.executable, "-c", RECORDED, str(scratch)],
        env={**os.environ, "SPARK_SUBMIT_OPTS": f"{QUICK} {UNSAID} {written}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    )
