"""Kafka topics as tables with a primary key."""

from __future__ import annotations

from collections.abc import Iterable

from streamcore import Connector, hookimpl

from .connector import UpsertKafka


@hookimpl
def register_connectors() -> Iterable[type[Connector]]:
    return [UpsertKafka]
