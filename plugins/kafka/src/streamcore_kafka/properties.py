"""What users write under `properties.`: checked, and put into the words of the C library."""

from __future__ import annotations

import contextlib
import difflib
import warnings
from collections.abc import Iterator, Mapping
from enum import Enum
from urllib.parse import urlsplit

from streamcore import OptionWarning, Problem, Secret
from streamcore.values import is_link_local

from .client_keys import (
    ANY_CLIENT,
    CONSUMER,
    KNOWN,
    LOGIN,
    PRODUCER,
    REFUSED,
    RENAMED,
    STORES,
    WITHOUT_EFFECT,
)
from .jaas import JaasError, parse_jaas
from .keystores import Settings, store_problems, store_settings, text

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
OIDC_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - the name of a setting
AZURE = "sasl.oauthbearer.metadata.authentication.type"


class Role(Enum):
    """What a client is for, and the settings that only such a client knows."""

    CONSUMER = CONSUMER
    PRODUCER = PRODUCER
    ADMIN = frozenset[str]()


_SUFFIXES = {
    Role.CONSUMER: "consumer",
    Role.PRODUCER: "producer",
    Role.ADMIN: "enumerator-admin-client",
}
"""What follows 'client.id.prefix'; no numbers of tasks, for a client serves one after the other."""


def check_properties(properties: Settings) -> Iterator[Problem]:
    """Complain about settings no client would take; asks neither a client nor a broker."""
    given = _by_lower_key(properties)
    for key in sorted(given):
        if key in REFUSED:
            yield Problem(f"properties.{key}", REFUSED[key])
        elif key not in KNOWN:
            close = difflib.get_close_matches(key, KNOWN, n=1)
            hint = f"; did you mean 'properties.{close[0]}'?" if close else ""
            yield Problem(f"properties.{key}", f"the Kafka client has no such setting{hint}")
    dropped = sorted(given.keys() & WITHOUT_EFFECT)
    if dropped:
        names = ", ".join(f"'properties.{key}'" for key in dropped)
        warnings.warn(
            f"{names}: of Java's client only; without effect", OptionWarning, stacklevel=2
        )
    yield from _security_problems(given)
    yield from store_problems(given)


def translated(properties: Settings, role: Role) -> dict[str, str | Secret]:
    """The settings as the C library names them, without those that are not for this role.

    Reads key and trust stores, so it is called where the client runs.
    """
    given = _by_lower_key(properties)
    known = ANY_CLIENT | role.value
    settings: dict[str, str | Secret] = {}
    for key, value in given.items():
        if (name := RENAMED.get(key, key)) in known and not name.startswith("ssl.keystore."):
            settings[name] = value
    settings |= store_settings(given)
    settings |= {key: value for key, value in _login_settings(given).items() if value}
    settings |= _adjusted(given, role)
    settings["client.id"] = client_id(properties, _SUFFIXES[role])
    return settings


def client_id(properties: Settings, suffix: str = "") -> str:
    """How the broker's logs and quotas name a client; one that the user named is called just so."""
    given = _by_lower_key(properties)
    prefix = text(given.get("client.id.prefix"))
    if not prefix and (whole := text(given.get("client.id"))):
        return whole
    return "-".join(filter(None, (prefix or "streamcore", suffix)))


def secrets_of(properties: Settings) -> frozenset[str]:
    """Every text that must never be shown, passwords inside login strings included."""
    found = {value.reveal() for value in properties.values() if isinstance(value, Secret)}
    login = text(_by_lower_key(properties).get("sasl.jaas.config"))
    if login:
        with contextlib.suppress(JaasError):  # a check's business; the whole is hidden anyway
            found |= {value.reveal() for value in _hidden(parse_jaas(login).settings())}
    return frozenset(found - {""})


def _hidden(settings: Mapping[str, str | Secret]) -> Iterator[Secret]:
    return (value for value in settings.values() if isinstance(value, Secret))


def _by_lower_key(properties: Settings) -> dict[str, str | Secret]:
    return {key.lower(): value for key, value in properties.items()}


# --- values that differ between Java and C ------------------------------------------------


def _adjusted(given: Settings, role: Role) -> dict[str, str | Secret]:
    changed: dict[str, str | Secret] = {}
    if protocol := text(given.get("security.protocol")):
        changed["security.protocol"] = protocol.lower()
    if role is Role.CONSUMER and text(given.get("auto.offset.reset")).lower() == "none":
        changed["auto.offset.reset"] = "error"
    if role is Role.PRODUCER and (memory := text(given.get("buffer.memory"))).isdigit():
        changed["queue.buffering.max.kbytes"] = str(max(1, int(memory) // 1024))
    if "ssl.endpoint.identification.algorithm" in given:
        algorithm = text(given["ssl.endpoint.identification.algorithm"]).lower()
        changed["ssl.endpoint.identification.algorithm"] = algorithm or "none"
    for java in ("send.buffer.bytes", "receive.buffer.bytes"):
        if text(given.get(java)) == "-1":  # Java's word for what the system thinks best
            changed[RENAMED[java]] = "0"
    if patience := text(given.get("request.timeout.ms")):
        changed.setdefault("socket.timeout.ms", text(given.get("socket.timeout.ms")) or patience)
    return changed


# --- login ----------------------------------------------------------------------------------


def _security_problems(given: Settings) -> Iterator[Problem]:
    protocol = text(given.get("security.protocol")).upper() or "PLAINTEXT"
    if protocol not in PROTOCOLS:
        shown = f"'{protocol}' is not one of {', '.join(PROTOCOLS)}"
        yield Problem("properties.security.protocol", shown)
        return
    mechanism = _mechanism(given)
    if mechanism and mechanism not in MECHANISMS:
        shown = f"'{mechanism}' is not one of {', '.join(MECHANISMS)}"
        yield Problem("properties.sasl.mechanism", shown)
    yield from _login_problems(given, protocol, mechanism)
    yield from _token_problems(given)
    for family in ("sasl", "ssl"):
        chosen = [key for key in sorted(given) if key in KNOWN and key.startswith(f"{family}.")]
        if chosen and family.upper() not in protocol and chosen != [_HOST_CHECK]:
            yield Problem(
                f"properties.{chosen[0]}",
                f"has no effect, because 'properties.security.protocol' is '{protocol}'; set it to "
                + " or ".join(name for name in PROTOCOLS if family.upper() in name),
            )


_HOST_CHECK = "ssl.endpoint.identification.algorithm"


def _login_problems(given: Settings, protocol: str, mechanism: str) -> Iterator[Problem]:
    modules: tuple[str, ...] = ()
    if "sasl.jaas.config" in given:
        try:
            modules = parse_jaas(text(given["sasl.jaas.config"])).mechanisms
        except JaasError as error:
            yield Problem("properties.sasl.jaas.config", str(error))
            return
        if mechanism and mechanism not in modules:
            yield Problem(
                "properties.sasl.mechanism",
                f"'{mechanism}' does not fit 'properties.sasl.jaas.config' ({', '.join(modules)})",
            )
    if "SASL" in protocol and not mechanism and len(modules) != 1:
        names = ", ".join(modules or MECHANISMS)
        yield Problem("properties.sasl.mechanism", f"required with '{protocol}'; one of {names}")


def _token_problems(given: Settings) -> Iterator[Problem]:
    handler = text(given.get("sasl.login.callback.handler.class"))
    if handler and not handler.endswith(OIDC_HANDLER):
        key = "properties.sasl.login.callback.handler.class"
        hint = "remove it, and have tokens fetched by a credential provider"
        yield Problem(key, f"'{handler}' is Java code, and there is no Java here; {hint}")
    if url := text(given.get(TOKEN_URL)):
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http") or not parts.hostname:
            yield Problem(f"properties.{TOKEN_URL}", f"'{url}' is not an http or https address")
        elif is_link_local(parts.hostname) and not given.get(AZURE):
            yield Problem(f"properties.{TOKEN_URL}", f"'{url}' is a link-local address, refused")


def _mechanism(given: Settings) -> str:
    return text(given.get("sasl.mechanism") or given.get("sasl.mechanisms")).upper()


def _login_settings(given: Settings) -> dict[str, str | Secret]:
    found: dict[str, str | Secret] = {"sasl.mechanism": _mechanism(given)}
    if "sasl.jaas.config" in given:
        login = parse_jaas(text(given["sasl.jaas.config"]))
        found |= login.settings()
        found["sasl.mechanism"] = found["sasl.mechanism"] or login.mechanisms[0]
    if given.get(TOKEN_URL) or given.get(AZURE):
        found["sasl.oauthbearer.method"] = text(given.get("sasl.oauthbearer.method")) or "oidc"
    return found


__all__ = ["LOGIN", "STORES", "Role", "check_properties", "client_id", "secrets_of", "translated"]
