"""Asks a schema registry for a schema by its id."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from streamcore import ConnectionFailed, OptionError

from .detection import Registry

_SECONDS = 10.0


def registry_at(url: str) -> Registry:
    """A lookup of schemas; None for an id the registry does not know."""
    if not url.startswith(("http://", "https://")):
        raise OptionError("--registry", [f"'{url}' is not an http or https address"])

    def schema(number: int) -> Mapping[str, Any] | None:
        address = f"{url.rstrip('/')}/schemas/ids/{number}"
        try:
            with urllib.request.urlopen(address, timeout=_SECONDS) as answer:  # noqa: S310 - checked
                found: Mapping[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise ConnectionFailed(f"the registry at '{url}' answers {error.code}") from error
        except (OSError, ValueError) as error:
            raise ConnectionFailed(f"the registry at '{url}' does not answer: {error}") from error

    return schema
