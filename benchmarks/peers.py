"""The peers, fetched by package name: Spark's own Kafka source and sink, and Flink SQL."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

from streamcore.testing.services.downloads import jars
from streamcore.testing.services.kafka.tools import VERSION as BROKER
from streamcore.testing.services.process import java

SPARK_KAFKA = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:4.1.0",
    "org.apache.commons:commons-pool2:2.12.0",
    "org.apache.spark:spark-avro_2.13:4.1.1",
)
FLINK = (
    *(
        f"org.apache.flink:{name}:2.2.0"
        for name in (
            "flink-clients",
            "flink-table-api-java-bridge",
            "flink-table-runtime",
            "flink-table-planner-loader",
            "flink-json",
            "flink-csv",
            "flink-connector-datagen",
            "flink-connector-base",
        )
    ),
    "org.apache.flink:flink-sql-avro:2.3.0",
    "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2",
    "org.slf4j:slf4j-simple:1.7.36",
)
FLINK_REGISTRY = ("org.apache.flink:flink-sql-avro-confluent-registry:2.3.0",)


@functools.cache
def versions() -> dict[str, str]:
    """What else a figure depends on, by name."""
    told = subprocess.run([java(), "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "([^"]+)"', told)
    return {
        "Kafka broker": BROKER,
        "Spark's Kafka connector": _version(SPARK_KAFKA[0]),
        "Flink SQL": _version(FLINK[0]),
        "Flink's Kafka connector": _version(FLINK[-2]),
        "Java": found[1] if found else "unknown",
    }


def _version(coordinate: str) -> str:
    return coordinate.rpartition(":")[2]


def spark_kafka() -> str:
    """Spark's own Kafka connector as the value of `spark.jars`."""
    home = jars("bench-spark-kafka", *SPARK_KAFKA, megabytes=15).path()
    return ",".join(str(jar) for jar in sorted(home.glob("*.jar")))


def flink() -> list[Path]:
    """The folders of jars that run Flink SQL in one process."""
    return [
        jars("bench-flink-2.2.0", *FLINK, dependencies=True, megabytes=180).path(),
        jars("bench-flink-registry-2.3.0", *FLINK_REGISTRY, megabytes=25).path(),
    ]
