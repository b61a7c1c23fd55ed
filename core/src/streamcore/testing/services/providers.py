"""Where a service comes from: an address in the environment, Docker, or a local process."""

from __future__ import annotations

import functools
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from .kafka import ExistingKafka, KafkaAddress, KafkaBroker
from .kafka.node import brokers_seen
from .kafka.tools import VERSION as KAFKA_VERSION
from .kinesis import ExistingKinesis, KinesisAddress, KinesisEmulator
from .process import HOST, ServiceError, free_port
from .registry import VERSION as REGISTRY_VERSION
from .registry import ExistingRegistry, RegistryAddress, SchemaRegistry, answers, api_url

KAFKA, REGISTRY, KINESIS = "STREAMCORE_KAFKA", "STREAMCORE_SCHEMA_REGISTRY", "STREAMCORE_KINESIS"
START_SECONDS = 120


@contextmanager
def kafka() -> Iterator[KafkaAddress]:
    """A Kafka cluster to use until the block ends."""
    if servers := os.environ.get(KAFKA):
        _must_answer(KAFKA, servers, servers.split(",")[0])
        yield ExistingKafka(servers)
    elif docker_answers():
        port = free_port()
        image, settings = f"apache/kafka:{KAFKA_VERSION}", _kafka_settings(port)
        with _container(image, 9092, port, settings, lambda: bool(brokers_seen(port))):
            yield ExistingKafka(f"{HOST}:{port}")
    else:
        with KafkaBroker() as broker:
            yield broker


@contextmanager
def schema_registry() -> Iterator[RegistryAddress]:
    """A schema registry to use until the block ends."""
    if url := os.environ.get(REGISTRY):
        _must_answer(REGISTRY, url, urlsplit(url).netloc)
        yield ExistingRegistry(url)
    elif docker_answers():
        port = free_port()
        image, url = f"apicurio/apicurio-registry:{REGISTRY_VERSION}", api_url(port)
        with _container(image, 8080, port, {}, lambda: answers(url)):
            yield ExistingRegistry(url)
    else:
        with SchemaRegistry() as registry:
            yield registry


@contextmanager
def kinesis() -> Iterator[KinesisAddress]:
    """A Kinesis endpoint to use until the block ends; never from Docker: Node runs everywhere."""
    if url := os.environ.get(KINESIS):
        _must_answer(KINESIS, url, urlsplit(url).netloc)
        yield ExistingKinesis(url)
    else:
        with KinesisEmulator() as emulator:
            yield emulator


@functools.cache
def docker_answers() -> bool:
    """Whether a Docker engine can be used; STREAMCORE_DOCKER=0 says no without asking."""
    if os.environ.get("STREAMCORE_DOCKER") == "0":
        return False
    try:
        import docker  # type: ignore[import-untyped]
        import testcontainers  # noqa: F401 - is needed as well
    except ModuleNotFoundError:
        return False
    try:
        return bool(docker.from_env(timeout=3).ping())
    except docker.errors.DockerException:
        return False


@contextmanager
def _container(
    image: str, inside: int, outside: int, settings: dict[str, str], ready: Callable[[], bool]
) -> Iterator[None]:
    from testcontainers.core.container import DockerContainer

    container = DockerContainer(image)
    container.ports[f"{inside}/tcp"] = (HOST, outside)  # with_bind_ports would bind all interfaces
    container.env.update(settings)
    with container:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            if time.monotonic() > deadline:
                output, errors = container.get_logs()
                said = (output + errors).decode(errors="replace")[-3000:]
                raise ServiceError(f"{image} was not ready in {START_SECONDS} s:\n{said}")
            time.sleep(0.2)
        yield


def _kafka_settings(port: int) -> dict[str, str]:
    """Clients are told the port of the host, brokers inside find each other at another one."""
    return {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{HOST}:{port}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    }


def _must_answer(variable: str, value: str, address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as error:
        trouble = f"nothing answers at '{value}' ({error}). Start it, or unset the variable."
        raise ServiceError(f"{variable}: {trouble}") from None
