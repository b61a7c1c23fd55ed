"""For every test: what a machine has, and how busy it is, decides nothing."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from streamcore.testing.services import spark_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKPOINT_FILES = "spark.sql.streaming.checkpointFileManagerClass"
CHEAP_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)

settings.register_profile(
    "shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared-machine")

# Tests freeze, kill and count their services, which must be processes of their own for that.
os.environ["STREAMCORE_DOCKER"] = "0"
for variable in ("STREAMCORE_KAFKA", "STREAMCORE_SCHEMA_REGISTRY", "STREAMCORE_KINESIS"):
    os.environ.pop(variable, None)


def pytest_configure(config: pytest.Config) -> None:
    """Sparks of tests live for seconds: a run that is shared out has them map what one loaded."""
    if "SPARK_SUBMIT_OPTS" not in os.environ:
        shared_out = bool(getattr(config.option, "numprocesses", None))
        os.environ["SPARK_SUBMIT_OPTS"] = spark_classes.options(record=shared_out)


@pytest.fixture(scope="module")
def spark(spark: "SparkSession", request: pytest.FixtureRequest) -> "Iterator[SparkSession]":
    """The Spark of this process; its checkpoints are those of users where faults are tested.

    Elsewhere they are written like those on object stores: what Spark takes for local files runs
    readlink hundreds of times in a short query.
    """
    if "reliability" in request.path.parts:
        yield spark
        return
    spark.conf.set(CHECKPOINT_FILES, CHEAP_FILES)
    yield spark
    spark.conf.unset(CHECKPOINT_FILES)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share files out whole; those that use a server of Spark Connect share it, too."""
    from xdist.scheduler import LoadFileScheduling

    class Files(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return "Spark Connect" if file.endswith("/test_connect.py") else file

    return Files(config, log) if config.option.dist == "loadfile" else None
