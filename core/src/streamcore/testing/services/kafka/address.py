"""What can be done with any Kafka that answers, whoever started it."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping
from typing import Any

from ..process import ServiceError
from .tools import run_tool


class KafkaAddress:
    """A Kafka cluster by its address; a running service and an existing cluster alike."""

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients under test."""
        raise NotImplementedError

    @property
    def direct_servers(self) -> str:
        """The address for the checks around a test: past any proxy, without any login."""
        return self.bootstrap_servers

    def admin(self) -> Any:
        """A confluent_kafka AdminClient; keep a reference to it while its futures are pending."""
        from confluent_kafka.admin import AdminClient

        quiet = {"log_level": 2}  # it may outlive the brokers, and would tell of each retry
        return AdminClient({"bootstrap.servers": self.direct_servers, **quiet})

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        """Create the topic, wait until each partition has a leader, and give back the name."""
        from confluent_kafka.admin import NewTopic

        admin = self.admin()
        topic = NewTopic(name, partitions, replication_factor=-1, config=dict(config or {}))
        admin.create_topics([topic], operation_timeout=30)[name].result()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            known = admin.list_topics(name, timeout=10).topics[name].partitions.values()
            if len(known) == partitions and all(part.leader >= 0 for part in known):
                return name
            time.sleep(0.05)
        raise ServiceError(f"topic '{name}' has no leaders after 30 s.")

    def delete_topic(self, name: str) -> None:
        admin = self.admin()
        admin.delete_topics([name], operation_timeout=30)[name].result()

    def tool(self, main_class: str, *arguments: str, timeout: float = 60) -> str:
        """Run one of Kafka's own tools here, such as org.apache.kafka.tools.TopicCommand."""
        servers = ["--bootstrap-server", self.direct_servers]
        return run_tool(main_class, *servers, *arguments, timeout=timeout)


class ExistingKafka(KafkaAddress):
    """A cluster somebody else runs."""

    def __init__(self, servers: str) -> None:
        self._servers = servers

    @property
    def bootstrap_servers(self) -> str:
        return self._servers


def unique_name(title: str) -> str:
    """A name for a topic, group or stream that no other test has, but which tells of this one."""
    return f"{re.sub(r'[^a-zA-Z0-9_]+', '-', title)[:80].strip('-')}-{secrets.token_hex(4)}"
