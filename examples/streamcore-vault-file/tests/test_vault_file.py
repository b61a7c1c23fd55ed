import json

import pytest
from streamcore import ConnectionFailed
from streamcore.testing import CredentialsContract
from streamcore_vault_file import VaultFile


class TestVaultFile(CredentialsContract):
    plugin = VaultFile(path="vault.json")

    def prepare(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "vault.json").write_text(json.dumps({"password": "correct horse"}))


@pytest.mark.parametrize("text", ["", "{", None])
def test_a_file_that_cannot_be_read_is_named_and_nothing_of_it_is_shown(text, tmp_path):
    path = tmp_path / "vault.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConnectionFailed, match=r"vault\.json"):
        VaultFile(path=str(path)).fetch({})
