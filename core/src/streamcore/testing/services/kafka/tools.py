"""Kafka's own jars, and the command line tools in them."""

from __future__ import annotations

import os
import subprocess

from ..downloads import jars
from ..process import ServiceError, java

VERSION = "4.3.0"
BROKER = jars(
    f"kafka-{VERSION}", f"org.apache.kafka:kafka_2.13:{VERSION}", dependencies=True, megabytes=47
)
TOOLS = jars(
    f"kafka-tools-{VERSION}",
    f"org.apache.kafka:kafka-tools:{VERSION}",
    "org.slf4j:slf4j-simple:1.7.36",
    megabytes=1,
)


def classpath() -> str:
    """Kafka's own jars, its tools and a logger, as `java -cp` takes them."""
    directories = (BROKER.path(), TOOLS.path())
    return os.pathsep.join(str(jar) for each in directories for jar in sorted(each.glob("*.jar")))


def run_tool(main_class: str, *arguments: str, timeout: float = 60) -> str:
    """Run one of Kafka's own command line tools and give back what it prints."""
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
    log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    done = subprocess.run(
        [java(), *quick, log, "-cp", classpath(), main_class, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode:
        said = (done.stderr + done.stdout).strip()
        raise ServiceError(f"{main_class} ended with status {done.returncode}.\n{said}")
    return done.stdout
