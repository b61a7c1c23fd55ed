"""An address in the environment comes first, then Docker, then a local process."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from streamcore.testing.services import ServiceError, providers


@pytest.fixture
def bare(monkeypatch):
    """No address in the environment, no Docker, and local services that are only names."""
    for variable in (providers.KAFKA, providers.REGISTRY, providers.KINESIS):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(providers, "docker_answers", lambda: False)
    for name in ("KafkaBroker", "SchemaRegistry", "KinesisEmulator"):
        monkeypatch.setattr(providers, name, lambda name=name: nullcontext(f"local {name}"))
    return monkeypatch


def test_an_address_in_the_environment_wins_if_something_answers_there(bare, kafka):
    bare.setattr(providers, "docker_answers", lambda: True)
    bare.setenv(providers.KAFKA, kafka.bootstrap_servers)
    with providers.kafka() as address:
        assert address.bootstrap_servers == kafka.bootstrap_servers
        assert address.create_topic("by-address") == "by-address"


def test_an_address_where_nothing_answers_is_an_error_and_no_reason_to_use_another(bare):
    bare.setenv(providers.REGISTRY, "http://127.0.0.1:1/api")
    with pytest.raises(ServiceError) as caught, providers.schema_registry():
        pass
    assert str(caught.value).startswith(
        "STREAMCORE_SCHEMA_REGISTRY: nothing answers at 'http://127.0.0.1:1/api' ("
    )


def test_docker_comes_before_local_processes(bare):
    images = []
    bare.setattr(providers, "docker_answers", lambda: True)
    bare.setattr(providers, "_container", lambda image, *rest: nullcontext(images.append(image)))
    with providers.kafka() as kafka, providers.schema_registry() as registry:
        assert kafka.bootstrap_servers.startswith("127.0.0.1:")
        assert registry.url.endswith("/apis/ccompat/v7")
    assert images == ["apache/kafka:4.3.0", "apicurio/apicurio-registry:3.0.9"]


def test_local_processes_come_last(bare):
    with providers.kafka() as kafka, providers.schema_registry() as registry:
        assert (kafka, registry) == ("local KafkaBroker", "local SchemaRegistry")
    with providers.kinesis() as kinesis:
        assert kinesis == "local KinesisEmulator"
