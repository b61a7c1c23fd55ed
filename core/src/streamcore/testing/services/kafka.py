"""Real Apache Kafka brokers: one, a cluster, restarted, paused or killed at will."""

from __future__ import annotations

import re
import secrets
import shutil
import socket
import struct
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from .downloads import jars
from .process import HOST, Process, Service, ServiceError, Workspace, free_port, java
from .proxy import KafkaProxy

VERSION = "4.3.0"
BROKER = jars(
    f"kafka-{VERSION}", f"org.apache.kafka:kafka_2.13:{VERSION}", dependencies=True, megabytes=47
)
TOOLS = jars(
    f"kafka-tools-{VERSION}",
    f"org.apache.kafka:kafka-tools:{VERSION}",
    "org.slf4j:slf4j-simple:1.7.36",
    megabytes=1,
)
SMALL = {  # what a broker for a few topics on a shared machine needs to differ from the defaults
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
}
START_ATTEMPTS = 3


def classpath() -> str:
    """Kafka's own jars, its tools and a logger, as `java -cp` takes them."""
    return f"{BROKER.path()}/*:{TOOLS.path()}/*"


def run_tool(main_class: str, *arguments: str, timeout: float = 60) -> str:
    """Run one of Kafka's own command line tools and give back what it prints."""
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
    log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    done = subprocess.run(
        [java(), *quick, log, "-cp", classpath(), main_class, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode:
        said = (done.stderr + done.stdout).strip()
        raise ServiceError(f"{main_class} ended with status {done.returncode}.\n{said}")
    return done.stdout


class Node:
    """One broker process, which is a controller as well."""

    def __init__(
        self,
        number: int,
        home: Path,
        properties: Mapping[str, str],
        *,
        client_port: int,
        detached: bool = False,
    ) -> None:
        self.number, self.home, self.client_port = number, home, client_port
        self._detached = detached
        self._process: Process | None = None
        self.log = home / "broker.log"
        self._config = home / "server.properties"
        home.mkdir(parents=True, exist_ok=True)
        lines = {**SMALL, **properties, "node.id": str(number), "log.dirs": str(home / "data")}
        self._config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))

    @property
    def process(self) -> Process:
        if self._process is None:
            raise ServiceError(f"broker {self.number} is not running.")
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    def format(self, cluster: str, *arguments: str) -> None:
        config = ["-t", cluster, "-c", str(self._config), *arguments]
        run_tool("kafka.tools.StorageTool", "format", *config)

    def format_like(self, other: Node) -> None:
        """Take another node's formatted storage under our own number: starts no second JVM."""
        shutil.copytree(other.home / "data", self.home / "data")
        meta = self.home / "data" / "meta.properties"
        text = re.sub(r"node\.id=\d+", f"node.id={self.number}", meta.read_text())
        meta.write_text(re.sub(r"directory\.id=.*", f"directory.id={_random_id()}", text))

    def launch(self) -> None:
        self._process = Process(
            f"Kafka broker {self.number}",
            [
                java(),
                "-Xmx512m",
                "-Djava.awt.headless=true",
                "-Dorg.slf4j.simpleLogger.showDateTime=true",
                "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss,SSS",
                *("-cp", classpath(), "kafka.Kafka", str(self._config)),
            ],
            self.log,
            cwd=self.home,
            detached=self._detached,
        )

    def wait_ready(self, members: int = 1, timeout: float = 60) -> None:
        """Return once the broker knows that many live members and answers for itself."""

        def ready() -> bool:
            seen = brokers_seen(self.client_port)
            return self.number in seen and len(seen) >= members

        self.process.wait_until(ready, timeout)

    def start(self) -> None:
        self.launch()
        self.wait_ready()

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def pause(self) -> None:
        self.process.pause()

    def resume(self) -> None:
        self.process.resume()

    def restart(self) -> None:
        """Start again on the same data and ports, after a stop, a kill or none."""
        self.stop()
        self.start()


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
        first.format(_random_id(), *self._format_arguments())
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


def brokers_seen(port: int, host: str = HOST) -> set[int]:
    """The live brokers that the one at this plain listener knows of; none while it does not answer.

    Speaks the few bytes of a Metadata request itself, so that no client library is needed.
    """
    no_topics = struct.pack(">i?", 0, False)
    header = struct.pack(">hhih", 3, 4, 1, -1)  # Metadata v4, correlation 1, no client id
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            connection.sendall(struct.pack(">i", len(header + no_topics)) + header + no_topics)
            with connection.makefile("rb") as reply:
                (size,) = struct.unpack(">i", _exactly(reply.read(4), 4))
                body = _exactly(reply.read(size), size)
    except OSError:
        return set()
    position, seen = 12, set()
    (count,) = struct.unpack_from(">i", body, 8)  # after correlation and throttle time
    for _ in range(count):
        number, length = struct.unpack_from(">ih", body, position)
        position += 6 + length + 4
        (rack,) = struct.unpack_from(">h", body, position)
        position += 2 + max(rack, 0)
        seen.add(number)
    return seen


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ConnectionError("the reply ended early")
    return data


def _listeners(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())


def _random_id() -> str:
    """A Kafka uuid; one that begins with a dash would be taken for an option."""
    while (text := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        continue
    return text


def unique_name(prefix: str) -> str:
    """A name no other test has."""
    return f"{prefix}-{secrets.token_hex(4)}"
