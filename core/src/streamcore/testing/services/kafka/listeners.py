"""The ports of a broker, and the properties that describe them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..process import HOST


@dataclass(frozen=True)
class Listener:
    """A port of a broker, the protocol spoken there, and the port clients are told."""

    name: str
    port: int
    protocol: str = "PLAINTEXT"
    advertised: int | None = None

    def at(self, port: int) -> str:
        return f"{self.name}://{HOST}:{port}"


def topology(
    controllers: Sequence[int], number: int, listeners: Sequence[Listener]
) -> dict[str, str]:
    """Properties of one member, given the controller ports of all.

    The brokers talk to each other through the first listener.
    """
    voters = ",".join(f"{i}@{HOST}:{port}" for i, port in enumerate(controllers, 1))
    controller = Listener("CONTROLLER", controllers[number - 1])
    everything = [controller, *listeners]
    return {
        "process.roles": "broker,controller",
        "controller.quorum.voters": voters,
        "controller.listener.names": controller.name,
        "inter.broker.listener.name": listeners[0].name,
        "listeners": ",".join(each.at(each.port) for each in everything),
        "advertised.listeners": ",".join(e.at(e.advertised or e.port) for e in listeners),
        "listener.security.protocol.map": ",".join(f"{e.name}:{e.protocol}" for e in everything),
    }


def replication(size: int) -> dict[str, str]:
    """Properties that fit the number of brokers: three copies, of which two must have a write."""
    copies, enough = str(min(size, 3)), str(2 if size >= 3 else 1)
    return {
        "default.replication.factor": copies,
        "min.insync.replicas": enough,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": enough,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": enough,
    }
