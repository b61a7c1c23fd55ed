"""Real services on loopback, started from packages: nothing but Java and pip is needed."""

from .browser import Browser
from .kafka import KafkaBroker, KafkaCluster, SecureKafkaBroker
from .kinesis import KinesisEmulator
from .process import ServiceError
from .proxy import KafkaProxy, TcpProxy, Way
from .registry import SchemaRegistry
from .spark_cluster import SparkCluster
from .spark_connect import SparkConnect
from .sts import Sts

__all__ = [
    "Browser",
    "KafkaBroker",
    "KafkaCluster",
    "KafkaProxy",
    "KinesisEmulator",
    "SchemaRegistry",
    "SecureKafkaBroker",
    "ServiceError",
    "SparkCluster",
    "SparkConnect",
    "Sts",
    "TcpProxy",
    "Way",
]
