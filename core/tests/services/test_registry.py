"""The schema registry is real: what is registered is found, until it restarts."""

from __future__ import annotations

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from streamcore.testing.services import SchemaRegistry

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'


def test_a_schema_is_found_by_id_and_version_and_forgotten_on_restart():
    with SchemaRegistry() as registry:
        client = SchemaRegistryClient({"url": registry.url})
        number = client.register_schema("orders-value", Schema(ORDER, "AVRO"))
        address = registry.url
        fresh = SchemaRegistryClient({"url": address})
        assert fresh.get_schema(number).schema_str == ORDER
        assert fresh.get_latest_version("orders-value").version == 1
        registry.restart()
        assert registry.url == address
        assert SchemaRegistryClient({"url": address}).get_subjects() == []
