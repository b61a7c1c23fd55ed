"""Pytest fixtures for plugin authors: real services, started when asked for, once per run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from streamcore.testing.services import KafkaBroker


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """A real Kafka broker, shared by the whole run: use topics of your own."""
    from streamcore.testing.services import KafkaBroker

    with KafkaBroker() as broker:
        yield broker


@pytest.fixture
def kafka_topic(kafka: KafkaBroker, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Creates topics nobody else uses: `kafka_topic(partitions=4, config={...}) -> name`."""
    from streamcore.testing.services.kafka import unique_name

    def create(partitions: int = 1, config: dict[str, str] | None = None) -> str:
        return kafka.create_topic(unique_name(request.node.name), partitions, config)

    return create
