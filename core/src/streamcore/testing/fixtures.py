"""Pytest fixtures for plugin authors: real services, started when asked for, once per run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamcore.registry import Registry
    from streamcore.testing.ledger.scenario import Scale
    from streamcore.testing.services import SparkConnect
    from streamcore.testing.services.kafka import KafkaAddress
    from streamcore.testing.services.kinesis import KinesisAddress
    from streamcore.testing.services.registry import RegistryAddress


@pytest.fixture(scope="session")
def registry() -> Registry:
    """What is installed in this environment."""
    from streamcore.registry import installed

    return installed()


@pytest.fixture
def scale(request: pytest.FixtureRequest) -> Scale:
    """How much of a fault a `scenario` meets in this run, and the seed of the run."""
    from streamcore.testing.ledger.scenario import seeded

    chosen = seeded(request.param)
    print(f"seed {chosen.seed}: repeat with STREAMCORE_SEED={chosen.seed}")
    return chosen


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local Spark with two cores, on loopback, without its web pages."""
    from streamcore.spark.session import session

    quiet = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.ui.enabled": "false",
    }
    spark = session("tests", master="local[2]", config=quiet)
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def spark_connect() -> Iterator[SparkConnect]:
    """A Spark Connect server; its clients are processes of their own, in its `environment`."""
    from streamcore.testing.services import SparkConnect

    with SparkConnect() as server:
        yield server


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaAddress]:
    """A real Kafka broker, shared by the whole run: use topics of your own."""
    from streamcore.testing.services import providers

    with providers.kafka() as address:
        yield address


@pytest.fixture
def kafka_topic(kafka: KafkaAddress, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Creates topics nobody else uses: `kafka_topic(partitions=4, config={...}) -> name`."""
    from streamcore.testing.services.kafka import unique_name

    def create(partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        return kafka.create_topic(unique_name(request.node.name), partitions, config)

    return create


@pytest.fixture(scope="session")
def schema_registry() -> Iterator[RegistryAddress]:
    """A real schema registry, shared by the whole run: use subjects of your own."""
    from streamcore.testing.services import providers

    with providers.schema_registry() as address:
        yield address


@pytest.fixture(scope="session")
def kinesis() -> Iterator[KinesisAddress]:
    """A Kinesis endpoint, shared by the whole run: use streams of your own."""
    from streamcore.testing.services import providers

    with providers.kinesis() as address:
        yield address


@pytest.fixture
def kinesis_stream(kinesis: KinesisAddress, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Creates streams nobody else uses: `kinesis_stream(shards=2) -> name`."""
    from streamcore.testing.services.kafka import unique_name

    def create(shards: int = 1) -> str:
        name = unique_name(request.node.name)
        kinesis.create_stream(name, shards)
        return name

    return create
