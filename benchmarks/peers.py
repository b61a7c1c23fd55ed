"""The peers, fetched by package name: Spark's own Kafka source and sink, and Flink SQL."""

from __future__ import annotations

from pathlib import Path

from streamcore.testing.services.downloads import Package, jars

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


def spark_kafka() -> str:
    """Spark's own Kafka connector as the value of `spark.jars`."""
    home = jars("bench-spark-kafka", *SPARK_KAFKA, megabytes=15).path()
    return ",".join(str(jar) for jar in sorted(home.glob("*.jar")))


def flink() -> Path:
    """The folder of jars that runs Flink SQL in one process."""
    return _flink().path()


def _flink() -> Package:
    return jars("bench-flink-2.2.0", *FLINK, dependencies=True, megabytes=180)
