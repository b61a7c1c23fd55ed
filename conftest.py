"""For every test: what a machine has, and how busy it is, decides nothing."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared-machine")

# Tests freeze, kill and count their services, which must be processes of their own for that.
os.environ["STREAMCORE_DOCKER"] = "0"
for variable in ("STREAMCORE_KAFKA", "STREAMCORE_SCHEMA_REGISTRY", "STREAMCORE_KINESIS"):
    os.environ.pop(variable, None)

# Their Sparks live for seconds: code compiled once, and quickly, is the faster one.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
