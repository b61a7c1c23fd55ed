"""Asks a schema registry for a schema by its id."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from streamcore import ConnectionFailed, OptionError

from .detection import Registry

_SECONDS = 10.0


def registry_at(url: str, options: Mapping[str, str] = MappingProxyType({})) -> Registry:
    """A lookup of schemas; None for an id the registry does not know.

    `options` are a table's, of which those of a format may say who asks.
    """
    if not url.startswith(("http://", "https://")):
        raise OptionError("--registry", [f"'{url}' is not an http or https address"])

    headers = dict(_authorization(options))

    def schema(number: int) -> Mapping[str, Any] | None:
        address = f"{url.rstrip('/')}/schemas/ids/{number}"
        try:
            request = urllib.request.Request(address, headers=headers)  # noqa: S310 - checked
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
                found: Mapping[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise ConnectionFailed(_refusal(url, error.code)) from error
        except (OSError, ValueError) as error:
            raise ConnectionFailed(f"the registry at '{url}' does not answer: {error}") from error

    return schema


def _authorization(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in options.items():
        if key.endswith("basic-auth.user-info"):
            yield "Authorization", f"Basic {base64.b64encode(value.encode()).decode()}"
        elif key.endswith("bearer-auth.token"):
            yield "Authorization", f"Bearer {value}"


def _refusal(url: str, code: int) -> str:
    text = f"the registry at '{url}' answers {code}"
    if code in (401, 403):
        text += ". Say who asks: --option avro-confluent.basic-auth.user-info=NAME:PASSWORD"
    return text
