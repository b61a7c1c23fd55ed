"""The Python that Spark starts for its workers: with installed PySpark in place of its zip.

Spark puts `pyspark.zip` before everything else on the path of every Python it starts, and Python
compiles what it imports from a zip anew each time: about a second of CPU for each of the processes
a query needs. The same modules lie beside the zip, installed and compiled.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark import SparkContext

LAUNCHER = Path(__file__).parent / "worker-python"
_PYTHON, _ZIPPED = "STREAMCORE_WORKER_PYTHON", "STREAMCORE_ZIPPED_PYSPARK"


def worker_environment(master: str, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What to add to the environment of the JVM about to be started, for workers to run well."""
    if "PYSPARK_PYTHON" in given:
        return {}
    zipped = _zipped(given)
    # Workers elsewhere may have another PySpark, and no such launcher.
    if not (master.startswith("local") and zipped and os.access(LAUNCHER, os.X_OK)):
        return {"PYSPARK_PYTHON": sys.executable}
    return {"PYSPARK_PYTHON": str(LAUNCHER), _PYTHON: sys.executable, _ZIPPED: zipped}


def of_running_jvm() -> dict[str, str] | None:
    """The same of the JVM that this process has started before; None if it has not."""
    if SparkContext._gateway is None:
        return None
    system = SparkContext._gateway.jvm.java.lang.System
    found = {name: system.getenv(name) for name in ("PYSPARK_PYTHON", _PYTHON, _ZIPPED)}
    return {name: value for name, value in found.items() if value}


def _zipped(environment: Mapping[str, str]) -> str:
    """What Spark will put first on the path, if that is a copy of the PySpark we run in."""
    home = Path(pyspark.__file__).parent
    if environment.get("SPARK_HOME", str(home)) != str(home):
        return ""
    folder = home / "python" / "lib"
    found = [folder / "pyspark.zip", *folder.glob("py4j-*-src.zip")]
    if len(found) != 2 or not all(path.is_file() for path in found):
        return ""
    return os.pathsep.join(map(str, found))
