"""Secrets from a mounted file: a complete third-party credential provider."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from streamcore import (
    ConnectionFailed,
    CredentialProvider,
    Credentials,
    Secret,
    hookimpl,
    option,
)


class VaultFile(CredentialProvider):
    """Reads secrets from a JSON file that an agent keeps fresh on every worker."""

    identifier = "vault-file"

    path: str = option(
        "path", "The file: an object of names and secrets.", example="/run/vault.json"
    )
    refresh: timedelta = option(
        "refresh", "How soon to read the file again.", default=timedelta(minutes=5)
    )

    def fetch(self, scope):
        try:
            found = json.loads(Path(self.path).read_text())
        except (OSError, ValueError) as error:
            raise ConnectionFailed(f"credentials '{self.path}': {type(error).__name__}") from None
        values = {name: Secret(text) for name, text in found.items()}
        return Credentials(values, datetime.now(UTC) + self.refresh)


@hookimpl
def register_credentials():
    return [VaultFile]
