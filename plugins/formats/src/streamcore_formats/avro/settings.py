"""The options that say how to reach a schema registry, and their translation for its client."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Self
from urllib.parse import urlsplit

from streamcore import ConnectionFailed, Format, OptionError, Problem, Secret, option
from streamcore.values import is_link_local

_NUMBERS = ("timeout", "cache.capacity", "cache.latest.ttl.sec")
_FORWARDED = frozenset(
    (
        *_NUMBERS,
        "proxy",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "basic.auth.user.info",
        "bearer.auth.client.id",
        "bearer.auth.client.secret",
        "bearer.auth.scope",
        "bearer.auth.issuer.endpoint.url",
        "bearer.auth.logical.cluster",
        "bearer.auth.identity.pool.id",
    )
)
_RENAMED = {
    "schema.registry.ssl.truststore.location": "ssl.ca.location",
    "schema.registry.ssl.keystore.location": "ssl.certificate.location",
    "schema.registry.ssl.keystore.password": "ssl.key.password",
    "schema.registry.ssl.key.password": "ssl.key.password",
    "schema.registry.basic.auth.user.info": "basic.auth.user.info",
}
_SOURCES = {"basic.auth.credentials.source", "bearer.auth.credentials.source", "bearer.auth.token"}
_JAVA_STORES = (".jks", ".p12", ".pfx", ".keystore", ".truststore", ".bcfks")


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to reach a registry, in the client's words; equal ones share a client."""

    url: str
    client: tuple[tuple[str, str | Secret], ...] = ()
    token: Secret | None = None

    def revealed(self) -> dict[str, Any]:
        """The client's configuration; only its constructor should see this."""
        plain: dict[str, Any] = {"url": self.url}
        for key, value in self.client:
            text = value.reveal() if isinstance(value, Secret) else value
            plain[key] = float(text) if key in _NUMBERS else text
        return plain


class RegistryFormat(Format):
    """Base of the formats whose schemas live in a registry; not a format of its own."""

    url: str = option(
        "url",
        "Base URL of the registry's API; several, separated by commas, are tried in turn.",
        fallback=("schema-registry.url",),
        example="http://localhost:8081",
    )
    subject: str | None = option(
        "subject",
        "Subject to register the schema of written rows under. Needed for writing; the Kafka "
        "connectors fill in '<topic>-value' or '<topic>-key' for a single fixed topic.",
        default=None,
        fallback=("schema-registry.subject",),
    )
    schema_text: str | None = option(
        "schema",
        "Avro schema to read and write with, instead of the one derived from the table; it must "
        "describe exactly the table's columns.",
        default=None,
        fallback=("schema-registry.schema",),
    )
    keystore: str | None = option(
        "ssl.keystore.location", "PEM file with the client's certificate and key.", default=None
    )
    keystore_password: Secret | None = option(
        "ssl.keystore.password", "Password of the client's key.", default=None
    )
    truststore: str | None = option(
        "ssl.truststore.location", "PEM file with the certificates to trust.", default=None
    )
    truststore_password: Secret | None = option(
        "ssl.truststore.password",
        "Has no effect: PEM files of certificates have none.",
        default=None,
    )
    basic_source: str | None = option(
        "basic-auth.credentials-source",
        "Where name and password come from: USER_INFO, or URL if they are part of 'url'.",
        default=None,
    )
    user_info: Secret | None = option(
        "basic-auth.user-info", "Name and password as 'name:password'.", default=None
    )
    bearer_source: str | None = option(
        "bearer-auth.credentials-source",
        "Where the bearer token comes from: STATIC_TOKEN, or OAUTHBEARER with 'properties.*'.",
        default=None,
    )
    token: Secret | None = option("bearer-auth.token", "The bearer token.", default=None)
    properties: Mapping[str, str | Secret] = option(
        "properties.*", "More settings of the registry's client, such as 'proxy' or 'timeout'."
    )

    def problems(self) -> Iterator[Problem | str]:
        yield from _url_problems("url", self.url)
        yield from self._basic_problems()
        yield from self._bearer_problems()
        yield from self._store_problems()
        yield from self._property_problems()
        yield from self._schema_text_problems()

    def online_problems(self) -> Iterator[Problem | str]:
        from .client import registry

        try:
            registry(self.settings()).greet()
        except ConnectionFailed as error:
            yield str(error)

    def written_to(self, target: str, part: str) -> Self:
        return self if self.subject else dataclasses.replace(self, subject=f"{target}-{part}")

    def required_subject(self) -> str:
        """The subject to write to."""
        if self.subject is None:
            raise OptionError(f"format '{self.identifier}'", list(self.subject_problems()))
        return self.subject

    def subject_problems(self) -> Iterator[Problem]:
        """Complain unless it is known where to register what is written."""
        if self.subject is None:
            trouble = "required for writing, such as '<topic>-value'"
            yield Problem(f"{self.identifier}.subject", trouble)

    def settings(self) -> Settings:
        """How to reach the registry; dedicated options win over 'properties.*'."""
        client: dict[str, str | Secret | None] = {
            _RENAMED.get(key, key): value
            for key, value in self.properties.items()
            if key not in _SOURCES
        }
        user_info = self.user_info or client.pop("basic.auth.user.info", None)
        url, token = self.url, self._token()
        client |= {
            "ssl.ca.location": self.truststore or client.get("ssl.ca.location"),
            "ssl.certificate.location": self.keystore or client.get("ssl.certificate.location"),
            "ssl.key.password": self.keystore_password or client.get("ssl.key.password"),
            "basic.auth.user.info": None if token or _has_userinfo(url) else user_info,
        }
        if self._source("bearer") == "OAUTHBEARER":
            client["bearer.auth.credentials.source"] = "OAUTHBEARER"
        kept = [(key, value) for key, value in client.items() if value is not None]
        return Settings(url, tuple(sorted(kept, key=lambda item: item[0])), token)

    def _token(self) -> Secret | None:
        other = self.properties.get("bearer.auth.token")
        return self.token or (Secret(other) if isinstance(other, str) else other)

    def _source(self, kind: str) -> str:
        own = self.basic_source if kind == "basic" else self.bearer_source
        other = self.properties.get(f"{kind}.auth.credentials.source", "")
        return (own or str(other)).upper()

    def _basic_problems(self) -> Iterator[Problem]:
        source, info = self._source("basic"), self.user_info
        key = "basic-auth.credentials-source"
        if source == "SASL_INHERIT":
            yield Problem(key, "'SASL_INHERIT' needs Java; write 'basic-auth.user-info' instead")
        elif source not in ("", "USER_INFO", "URL"):
            yield Problem(key, f"'{source}' is not one of USER_INFO, URL")
        if source == "USER_INFO" and not (info or "basic.auth.user.info" in self.properties):
            yield Problem("basic-auth.user-info", "required with USER_INFO, as 'name:password'")
        if info is not None and ":" not in info.reveal():
            yield Problem("basic-auth.user-info", "write it as 'name:password'")
        if _has_userinfo(self.url) and info is not None:
            yield Problem("url", "name and password are also in 'basic-auth.user-info'; keep one")
        elif _has_userinfo(self.url) and source != "URL":
            trouble = "has a password in it; move it to 'basic-auth.user-info'"
            yield Problem("url", trouble)

    def _bearer_problems(self) -> Iterator[Problem]:
        source, key = self._source("bearer"), "bearer-auth.credentials-source"
        if source not in ("", "STATIC_TOKEN", "OAUTHBEARER"):
            yield Problem(key, f"'{source}' is not one of STATIC_TOKEN, OAUTHBEARER")
        if source == "STATIC_TOKEN" and not self._token():
            yield Problem("bearer-auth.token", "required with STATIC_TOKEN")
        if (source or self._token()) and (self.user_info or _has_userinfo(self.url)):
            yield Problem(key, "basic and bearer authentication cannot both be set; keep one")
        endpoint = self.properties.get("bearer.auth.issuer.endpoint.url")
        if source == "OAUTHBEARER":
            name = "properties.bearer.auth.issuer.endpoint.url"
            if endpoint is None:
                yield Problem(name, "required with OAUTHBEARER")
            else:
                yield from _url_problems(name, str(endpoint))

    def _store_problems(self) -> Iterator[Problem]:
        for key, location, advice in (
            ("ssl.truststore.location", self.truststore, _export_certificates),
            ("ssl.keystore.location", self.keystore, _export_key),
        ):
            if location is not None and location.lower().endswith(_JAVA_STORES):
                trouble = f"'{location}' is a Java keystore; convert it to PEM once: "
                yield Problem(key, trouble + advice(location))
        if self.keystore is None and self.keystore_password is not None:
            yield Problem("ssl.keystore.password", "has no 'ssl.keystore.location' to open")

    def _property_problems(self) -> Iterator[Problem]:
        for key, value in self.properties.items():
            name = f"properties.{key}"
            if key not in _FORWARDED and key not in _RENAMED and key not in _SOURCES:
                known = ", ".join(sorted(_FORWARDED | _SOURCES))
                yield Problem(name, f"unknown to the registry's client; it knows {known}")
            elif key in _NUMBERS and not _is_number(str(value)):
                yield Problem(name, f"'{value}' is not a number")
            elif key == "proxy":
                yield from _url_problems(name, str(value))

    def _schema_text_problems(self) -> Iterator[Problem]:
        if self.schema_text is not None:
            from .schema import SchemaError, parse

            try:
                parse(self.schema_text)
            except SchemaError as error:
                yield Problem("schema", str(error))


def without_userinfo(url: str) -> str:
    """A URL as it may be shown."""
    parts = urlsplit(url.strip())
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _has_userinfo(urls: str) -> bool:
    return any("@" in urlsplit(url.strip()).netloc for url in urls.split(","))


def _url_problems(key: str, urls: str) -> Iterator[Problem]:
    for url in urls.split(","):
        try:
            parts = urlsplit(url.strip())
            fits = parts.scheme in ("http", "https") and bool(parts.hostname)
            _ = parts.port
        except ValueError:
            fits = False
        if fits and is_link_local(parts.hostname or ""):
            yield Problem(key, f"'{parts.hostname}' is a link-local address, refused")
        if not fits:
            shown = "***" if "@" in url else url.strip()
            yield Problem(key, f"'{shown}' is not a URL that starts with http:// or https://")


def _is_number(text: str) -> bool:
    try:
        return float(text) >= 0
    except ValueError:
        return False


def _export_certificates(location: str) -> str:
    return f"keytool -exportcert -rfc -keystore {location} -alias <alias> -file trusted.pem"


def _export_key(location: str) -> str:
    return (
        f"keytool -importkeystore -srckeystore {location} -destkeystore client.p12 "
        "-deststoretype pkcs12 && openssl pkcs12 -in client.p12 -out client.pem -nodes"
    )
