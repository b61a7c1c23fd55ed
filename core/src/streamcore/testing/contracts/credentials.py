"""What holds for every credential provider."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from ...api import CredentialProvider, Credentials
from ...values import Secret
from .plugin import PluginContract


class CredentialsContract(PluginContract):
    """Tests for a credential provider.

    class TestVault(CredentialsContract):
        plugin = Vault(path="vault.json")

        def prepare(self, tmp_path, monkeypatch): ...  # put a secret where `fetch` will find it
    """

    plugin: ClassVar[CredentialProvider]
    scope: ClassVar[Mapping[str, str]] = {}
    """What the connector would say it knows, such as the region."""

    def prepare(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make the secrets available; called before each test that fetches."""

    def test_what_it_fetches_is_secret(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.prepare(tmp_path, monkeypatch)
        found = self.plugin.fetch(self.scope)
        assert isinstance(found, Credentials)
        assert found.values, "it found nothing"
        for name, value in found.values.items():
            assert isinstance(value, Secret), f"{name}: wrap it in Secret"
            assert value.reveal() not in repr(found) or not value
        assert found.expires is None or found.expires.tzinfo is not None, "expiry needs a zone"

    def test_secrets_are_fetched_where_they_are_needed_and_not_before(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.prepare(tmp_path, monkeypatch)
        found = self.plugin.fetch(self.scope)
        carried = pickle.dumps(self.plugin)
        given = {v.reveal() for v in vars(self.plugin).values() if isinstance(v, Secret)}
        for name, value in found.values.items():
            if value.reveal() not in given:
                assert value.reveal().encode() not in carried, f"{name} travels with the plugin"
