"""One Kafka broker process: its life and death, and whether it answers."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..process import HOST, Process, ServiceError, java
from . import storage
from .tools import classpath
from .wire import ask

SMALL = {  # what a broker for a few topics on a shared machine needs to differ from the defaults
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "log.retention.ms": "-1",  # a record written with a date of last year would be deleted at once
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
}


class Node:
    """One broker process, which is a controller as well."""

    def __init__(
        self,
        number: int,
        home: Path,
        properties: Mapping[str, str],
        *,
        client_port: int,
        jvm: Sequence[str] = (),
        detached: bool = False,
    ) -> None:
        self.number, self.home, self.client_port = number, home, client_port
        self._jvm, self._detached = list(jvm), detached
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

    def format(self, cluster: str, arguments: Sequence[str] = ()) -> None:
        """Give it empty storage as a member of the cluster."""
        storage.copy(self.home / "data", cluster, self.number, arguments)

    def launch(self) -> None:
        self._process = Process(
            f"Kafka broker {self.number}",
            [
                java(),
                "-Xmx512m",
                "-XX:TieredStopAtLevel=1",  # starts faster, and serves as fast with less work
                *self._jvm,
                "-Djava.awt.headless=true",
                "-Dorg.slf4j.simpleLogger.showDateTime=true",
                "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss,SSS",
                *("-cp", classpath(), "kafka.Kafka", str(self._config)),
            ],
            self.log,
            cwd=self.home,
            detached=self._detached,
        )

    def wait_ready(self, members: int = 1, timeout: float = 120) -> None:
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


def brokers_seen(port: int, host: str = HOST) -> set[int]:
    """The live brokers that the one at this plain listener knows of; none while it does not answer.

    Speaks the few bytes of a Metadata request itself, so that no client library is needed.
    """
    no_topics = struct.pack(">i?", 0, False)
    header = struct.pack(">hhih", 3, 4, 1, -1)  # Metadata v4, correlation 1, no client id
    try:
        reply = ask(port, header + no_topics, host)
    except OSError:
        return set()
    reply.number(4)  # correlation
    reply.number(4)  # throttle time
    seen = set()
    for _ in range(reply.number(4)):
        seen.add(reply.number(4))
        reply.text()  # host
        reply.number(4)  # port
        reply.text()  # rack
    return seen
