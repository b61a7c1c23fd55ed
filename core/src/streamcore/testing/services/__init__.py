"""Real services on loopback, started from packages: nothing but Java and pip is needed."""

from .kafka import KafkaBroker, KafkaCluster
from .process import ServiceError

__all__ = ["KafkaBroker", "KafkaCluster", "ServiceError"]
