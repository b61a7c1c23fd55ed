"""Real Apache Kafka brokers: one, a cluster, restarted, paused or killed at will."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from ..process import HOST, Detached, Service, ServiceError, Workspace, free_port
from ..proxy import KafkaProxy
from .address import KafkaAddress
from .classes import archive_flags
from .listeners import Listener, replication, topology
from .node import Node
from .storage import random_id
from .transactions import states

LONE = {  # a killed broker may come back as soon as the old one is given up
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
}
START_ATTEMPTS = 3  # another process may take a port between our choice and the broker's bind


class KafkaCluster(KafkaAddress, Service):
    """Brokers that replicate every topic: by default three, of which two must have a write."""

    def __init__(
        self,
        size: int = 3,
        properties: Mapping[str, str] | None = None,
        *,
        proxy: bool = False,
        detached: Detached | None = None,
    ) -> None:
        self.size = size
        self._properties = dict(properties or {})
        self._proxied, self._detached = proxy, detached
        self.nodes: list[Node] = []
        self.proxies: list[KafkaProxy] = []
        self._workspace: Workspace | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients under test: through the proxies where there are some."""
        if not self.proxies:
            return self.direct_servers
        return ",".join(proxy.address for proxy in self.proxies)

    @property
    def direct_servers(self) -> str:
        return ",".join(f"{HOST}:{node.client_port}" for node in self.nodes)

    @property
    def pids(self) -> list[int]:
        return [node.pid for node in self.nodes]

    def start(self) -> Self:
        for attempt in range(1, START_ATTEMPTS + 1):
            self._workspace = Workspace("kafka", self._detached)
            try:
                self._start(self._workspace.path)
                break
            except BaseException as error:
                self.stop()
                if attempt == START_ATTEMPTS or "in use" not in str(error):
                    raise
        return self

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()  # nobody needs its data again, and an orderly end waits for a quorum
        for proxy in self.proxies:
            proxy.stop()
        if self._workspace is not None:
            self._workspace.remove()
        self.nodes, self.proxies = [], []

    def _start(self, directory: Path) -> None:
        controllers = [free_port() for _ in range(self.size)]
        flags, apart = archive_flags(), self._detached is not None
        for number in range(1, self.size + 1):
            client = free_port(self._detached.port if self._detached else None)
            listeners = [Listener("PLAINTEXT", client), *self._more_listeners()]
            properties = {
                **topology(controllers, number, listeners),
                **replication(self.size),
                **(LONE if self.size == 1 else {}),
                **self._more_properties(),
                **self._properties,
            }
            home = directory / f"broker-{number}"
            self.nodes.append(
                Node(number, home, properties, client_port=client, jvm=flags, detached=apart)
            )
        cluster = random_id()
        for node in self.nodes:
            node.format(cluster, self._format_arguments())
            node.launch()
        for node in self.nodes:
            node.wait_ready(self.size)

    def _more_listeners(self) -> Sequence[Listener]:
        """Called once per broker."""
        if not self._proxied:
            return []
        behind = free_port()
        proxy = KafkaProxy(behind).start()
        self.proxies.append(proxy)
        return [Listener("PROXIED", behind, advertised=proxy.port)]

    def _more_properties(self) -> Mapping[str, str]:
        return {}

    def _format_arguments(self) -> Sequence[str]:
        return ()


class KafkaBroker(KafkaCluster):
    """A single broker."""

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        proxy: bool = False,
        detached: Detached | None = None,
    ) -> None:
        super().__init__(1, properties, proxy=proxy, detached=detached)

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

    @property
    def log(self) -> Path:
        return self.node.log

    def transactions(self) -> dict[str, str]:
        """The state of every transaction, by transactional id; `Ongoing` is open."""
        return states(self.node.client_port)

    def kill(self) -> None:
        self.node.kill()

    def pause(self) -> None:
        self.node.pause()

    def resume(self) -> None:
        self.node.resume()

    def restart(self) -> None:
        self.node.restart()
