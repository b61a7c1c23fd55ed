"""Opens the driver's ear for what tasks report, where the tasks can reach it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from streamcore import reports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger("streamcore.monitoring")


def listen_on(spark: SparkSession) -> None:
    """Listen for the tasks of a session: on loopback, unless they run on other machines."""
    if reports.listening() is None:
        try:
            reports.listen(_host(spark))
        except OSError as error:  # then figures that only tasks know are absent
            _LOG.warning("what tasks report cannot be heard: %s", error)


def _host(spark: SparkSession) -> str:
    if not hasattr(spark, "_jsparkSession"):  # a client of Spark Connect, which may be far away
        return "127.0.0.1"
    context = spark.sparkContext
    if (context.master or "local").startswith("local"):
        return "127.0.0.1"
    return str(context.getConf().get("spark.driver.host", "127.0.0.1"))
