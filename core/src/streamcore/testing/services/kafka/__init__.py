"""Real Apache Kafka, from its own jars."""

from .address import ExistingKafka, KafkaAddress, unique_name
from .cluster import KafkaBroker, KafkaCluster
from .secure import SecureKafkaBroker

__all__ = [
    "ExistingKafka",
    "KafkaAddress",
    "KafkaBroker",
    "KafkaCluster",
    "SecureKafkaBroker",
    "unique_name",
]
