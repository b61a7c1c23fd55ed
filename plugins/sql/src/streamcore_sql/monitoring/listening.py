"""Opens the driver's ear for what tasks report, where the tasks can reach it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamcore import reports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def listen_on(spark: SparkSession) -> None:
    """Listen for the tasks of a session: on loopback, unless they run on other machines."""
    if reports.listening() is None:
        reports.listen(_host(spark))


def _host(spark: SparkSession) -> str:
    if not hasattr(spark, "_jsparkSession"):  # a client of Spark Connect, which may be far away
        return "127.0.0.1"
    context = spark.sparkContext
    if (context.master or "local").startswith("local"):
        return "127.0.0.1"
    return str(context.getConf().get("spark.driver.host", "127.0.0.1"))
