"""Spark imports every `pyspark_*` module and registers its DefaultSource: this one is ours."""

from streamcore.spark.datasource import StreamcoreDataSource as DefaultSource

__all__ = ["DefaultSource"]
