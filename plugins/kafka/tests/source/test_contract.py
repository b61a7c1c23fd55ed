"""The connector keeps what every connector promises."""

from __future__ import annotations

from streamcore.registry import installed
from streamcore.testing import ConnectorContract


class TestKafka(ConnectorContract):
    plugin = installed().build(
        "connector",
        "kafka",
        {
            "properties.bootstrap.servers": "broker:9092",
            "topic": "orders",
            "format": "json",
            "scan.startup.mode": "earliest-offset",
        },
    )
