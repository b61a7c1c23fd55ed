"""For every test: what a machine has, and how busy it is, decides nothing."""

import os

import pytest
from hypothesis import HealthCheck, settings
from streamcore.testing.services import spark_classes

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
