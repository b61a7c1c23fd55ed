"""Kafka tables for streamcore: the hooks, and nothing that imports a client."""

from __future__ import annotations

from collections.abc import Iterable

from streamcore import Connector, hookimpl

from .connector import Kafka


@hookimpl
def register_connectors() -> Iterable[type[Connector]]:
    return [Kafka]
