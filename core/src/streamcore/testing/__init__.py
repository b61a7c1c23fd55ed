"""The testing kit: one-line helpers, contracts for plugin authors, and real services."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..types import arrow_schema
    from .codec import decode, encode
    from .contracts import (
        ConnectorContract,
        CredentialsContract,
        FormatContract,
        PartitionerContract,
        PluginContract,
    )

__all__ = [
    "ConnectorContract",
    "CredentialsContract",
    "FormatContract",
    "PartitionerContract",
    "PluginContract",
    "arrow_schema",
    "decode",
    "encode",
]


def __getattr__(name: str) -> Any:
    """Import on first use: helpers need pyarrow, contracts need pytest and hypothesis as well."""
    if name == "arrow_schema":
        return getattr(import_module("..types", __name__), name)
    if name in ("decode", "encode"):
        return getattr(import_module(".codec", __name__), name)
    if name in __all__:
        import pytest

        pytest.register_assert_rewrite(f"{__name__}.contracts")
        return getattr(import_module(".contracts", __name__), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
