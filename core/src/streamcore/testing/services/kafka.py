"""Real Apache Kafka brokers: one, a cluster, restarted, paused or killed at will."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from .kafka_node import Node, random_id, run_tool
from .process import HOST, Service, ServiceError, Workspace, free_port
from .proxy import KafkaProxy

START_ATTEMPTS = 3


class KafkaCluster(Service):
    """Brokers that replicate every topic: by default three, of which two must have a write."""

    def __init__(
        self,
        size: int = 3,
        properties: Mapping[str, str] | None = None,
        *,
        proxy: bool = False,
        home: Path | None = None,
        detached: bool = False,
    ) -> None:
        self.size = size
        self._extra = dict(properties or {})
        self._proxied, self._home, self._detached = proxy, home, detached
        self.nodes: list[Node] = []
        self.proxies: list[KafkaProxy] = []

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients under test: through the proxy where there is one."""
        ports = [proxy.port for proxy in self.proxies] or [node.client_port for node in self.nodes]
        return ",".join(f"{HOST}:{port}" for port in ports)

    @property
    def direct_servers(self) -> str:
        """The address past any proxy, for the checks around a test."""
        return ",".join(f"{HOST}:{node.client_port}" for node in self.nodes)

    @property
    def logs(self) -> list[Path]:
        return [node.log for node in self.nodes]

    def start(self) -> Self:
        for attempt in range(1, START_ATTEMPTS + 1):
            self._workspace = Workspace("kafka", self._home)
            try:
                self._start()
                return self
            except BaseException as error:
                self.stop()
                taken = isinstance(error, ServiceError) and "Address already in use" in str(error)
                if not taken or attempt == START_ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def _start(self) -> None:
        controllers = [free_port() for _ in range(self.size)]
        voters = ",".join(f"{i}@{HOST}:{port}" for i, port in enumerate(controllers, 1))
        for number, controller in enumerate(controllers, 1):
            client = free_port()
            properties = {
                **self._topology(controller, client, voters),
                **self._replication(),
                **self._listener_properties(client),
                **self._extra,
            }
            home = self._workspace.path / f"broker-{number}"
            self.nodes.append(
                Node(number, home, properties, client_port=client, detached=self._detached)
            )
        first, *others = self.nodes
        first.format(random_id(), *self._format_arguments())
        for node in others:
            node.format_like(first)
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.wait_ready(self.size)

    def _topology(self, controller: int, client: int, voters: str) -> dict[str, str]:
        listeners = {"CONTROLLER": controller, "PLAINTEXT": client}
        advertised = {"PLAINTEXT": client}
        if self._proxied:
            behind = free_port()
            proxy = KafkaProxy(behind).start()
            self.proxies.append(proxy)
            listeners["PROXIED"], advertised["PROXIED"] = behind, proxy.port
        return {
            "process.roles": "broker,controller",
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listeners": _listeners(listeners),
            "advertised.listeners": _listeners(advertised),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in listeners),
        }

    def _replication(self) -> dict[str, str]:
        copies, enough = str(min(self.size, 3)), str(2 if self.size >= 3 else 1)
        return {
            "default.replication.factor": copies,
            "min.insync.replicas": enough,
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": enough,
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": enough,
        }

    def _listener_properties(self, client: int) -> dict[str, str]:
        return {}

    def _format_arguments(self) -> Sequence[str]:
        return ()

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()  # nobody needs its data again, and an orderly end waits for a quorum
        for proxy in self.proxies:
            proxy.stop()
        self._workspace.remove()
        self.nodes, self.proxies = [], []

    def admin_config(self) -> dict[str, str]:
        """Client configuration that may do everything, past any proxy."""
        return {"bootstrap.servers": self.direct_servers}

    def admin(self) -> Any:
        """A confluent_kafka AdminClient; keep a reference to it while its futures are pending."""
        from confluent_kafka.admin import AdminClient

        return AdminClient(self.admin_config())

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        """Create the topic, wait until every broker serves it, and give back its name."""
        from confluent_kafka.admin import NewTopic

        topic = NewTopic(name, partitions, min(self.size, 3), config=dict(config or {}))
        admin = self.admin()
        admin.create_topics([topic], operation_timeout=30)[name].result()
        return name

    def delete_topic(self, name: str) -> None:
        admin = self.admin()
        admin.delete_topics([name], operation_timeout=30)[name].result()

    def tool(self, main_class: str, *arguments: str, timeout: float = 60) -> str:
        """Run one of Kafka's own tools here, such as org.apache.kafka.tools.TopicCommand."""
        servers = ["--bootstrap-server", self.direct_servers]
        return run_tool(main_class, *servers, *arguments, timeout=timeout)


class KafkaBroker(KafkaCluster):
    """A single broker."""

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        proxy: bool = False,
        home: Path | None = None,
        detached: bool = False,
    ) -> None:
        super().__init__(1, properties, proxy=proxy, home=home, detached=detached)

    @property
    def node(self) -> Node:
        if not self.nodes:
            raise ServiceError("the Kafka broker is not running.")
        return self.nodes[0]

    @property
    def proxy(self) -> KafkaProxy:
        if not self.proxies:
            raise ServiceError("this broker has no proxy; start it as KafkaBroker(proxy=True).")
        return self.proxies[0]

    @property
    def pid(self) -> int:
        return self.node.pid

    def kill(self) -> None:
        self.node.kill()

    def pause(self) -> None:
        self.node.pause()

    def resume(self) -> None:
        self.node.resume()

    def restart(self) -> None:
        self.node.restart()


def _listeners(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())


def unique_name(prefix: str) -> str:
    """A name no other test has."""
    return f"{prefix}-{secrets.token_hex(4)}"
