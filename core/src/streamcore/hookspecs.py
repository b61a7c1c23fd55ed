"""The five hooks. A plugin module implements those it has something for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

from .api import Connector, CredentialProvider, Format, Partitioner

if TYPE_CHECKING:
    import click

hookspec = pluggy.HookspecMarker("streamcore")
hookimpl = pluggy.HookimplMarker("streamcore")


@hookspec
def register_connectors() -> Iterable[type[Connector]]:
    """Return the connector classes this plugin provides."""
    return ()


@hookspec
def register_formats() -> Iterable[type[Format]]:
    """Return the format classes this plugin provides."""
    return ()


@hookspec
def register_partitioners() -> Iterable[type[Partitioner]]:
    """Return the partitioner classes this plugin provides."""
    return ()


@hookspec
def register_credentials() -> Iterable[type[CredentialProvider]]:
    """Return the credential provider classes this plugin provides."""
    return ()


@hookspec
def register_commands() -> Iterable[click.Command]:
    """Return commands to add to the `streamcore` command line."""
    return ()
