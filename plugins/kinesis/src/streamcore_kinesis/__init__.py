"""Kinesis tables for streamcore."""

from __future__ import annotations

from collections.abc import Iterable

from streamcore import Connector, CredentialProvider, Partitioner, hookimpl

from .connector import Kinesis
from .credentials import (
    AssumeRole,
    Auto,
    Basic,
    Custom,
    EnvVar,
    Profile,
    SysProp,
    WebIdentityToken,
)
from .legacy import KinesisLegacy
from .partitioners import Random


@hookimpl
def register_connectors() -> Iterable[type[Connector]]:
    return [Kinesis, KinesisLegacy]


@hookimpl
def register_credentials() -> Iterable[type[CredentialProvider]]:
    return [Auto, Basic, EnvVar, SysProp, Profile, AssumeRole, WebIdentityToken, Custom]


@hookimpl
def register_partitioners() -> Iterable[type[Partitioner]]:
    return [Random]
