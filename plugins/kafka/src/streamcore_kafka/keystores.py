"""Java's key and trust stores, in the forms the C library reads: PEM and PKCS12."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from streamcore import OptionError, Problem, Secret

Settings = Mapping[str, str | Secret]
_JKS_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")


def text(value: str | Secret | None) -> str:
    """The text of a setting; empty when it is not set."""
    return value.reveal() if isinstance(value, Secret) else value or ""


def store_problems(given: Settings) -> Iterator[Problem]:
    """Complain about what can be judged here; the files may be only where the clients run."""
    for store in ("ssl.keystore", "ssl.truststore"):
        location, kind = text(given.get(f"{store}.location")), _declared(given, store)
        if kind not in ("", "JKS", "PKCS12", "PEM"):
            yield Problem(f"properties.{store}.type", f"'{kind}' is not one of PKCS12, PEM")
        elif location and _head(location) in _JKS_MAGIC:
            yield Problem(f"properties.{store}.location", _is_jks(store, location))
    inline = ("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.truststore.certificates")
    for key in inline:
        store = key[: key.index("store") + 5]
        if given.get(key) and _declared(given, store) not in ("PEM", ""):
            yield Problem(f"properties.{key}", f"needs 'properties.{store}.type' to be 'PEM'")
    if bool(given.get(inline[0])) != bool(given.get(inline[1])):
        names = f"'properties.{inline[0]}' and 'properties.{inline[1]}'"
        yield Problem("properties.ssl.keystore.key", f"{names} must be set together")


def store_settings(given: Settings) -> dict[str, str | Secret]:
    """Translate both stores; reads the files, so it is called where the client runs."""
    return {**_key_settings(given), **_trust_settings(given)}


_WRITTEN = {
    "ssl.key.location": "ssl.keystore.location",
    "ssl.certificate.location": "ssl.keystore.location",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
}
"""What users may have written instead of a setting of the C library."""


def store_trouble(key: str, told: str, given: Settings) -> Problem | None:
    """What a client found wrong with a key or a certificate, in words; None if it has better ones.

    The C library repeats the codes of another one, which few can read.
    """
    written = key if given.get(key) else _WRITTEN.get(key, key)
    value, password = text(given.get(written)), given.get("ssl.key.password")
    in_file = written.endswith(".location")
    what = f"'{value}'" if in_file else "it"
    if in_file and _head(value) is None:
        trouble = f"{what} cannot be read on this machine"
    elif "mac verify failure" in told:
        trouble = f"{what} cannot be opened with 'properties.ssl.keystore.password'"
    elif "key values mismatch" in told:
        trouble = "the key is not the one of the certificate"
    elif key.startswith("ssl.key.") and "ENCRYPTED" in (_content(value) if in_file else value):
        trouble = (
            f"the key cannot be opened with 'properties.ssl.key.password'; {what} has another one"
            if password
            else f"the key in {what} is encrypted; set 'properties.ssl.key.password'"
        )
    elif re.search("no certificate or crl found|no start line", told):
        trouble = f"{what} holds no {'key' if key.startswith('ssl.key.') else 'certificate'} in PEM"
    else:
        return None
    return Problem(f"properties.{written}", trouble)


def _key_settings(given: Settings) -> dict[str, str | Secret]:
    found: dict[str, str | Secret] = {}
    if chain := given.get("ssl.keystore.certificate.chain"):
        found |= {"ssl.certificate.pem": text(chain), "ssl.key.pem": given["ssl.keystore.key"]}
    elif location := text(given.get("ssl.keystore.location")):
        if _kind("ssl.keystore", location) == "PEM":
            found |= {"ssl.certificate.location": location, "ssl.key.location": location}
        else:
            found["ssl.keystore.location"] = location
            found["ssl.keystore.password"] = given.get("ssl.keystore.password", Secret(""))
    return found


def _trust_settings(given: Settings) -> dict[str, str | Secret]:
    if certificates := given.get("ssl.truststore.certificates"):
        return {"ssl.ca.pem": text(certificates)}
    location = text(given.get("ssl.truststore.location"))
    if not location:
        return {}
    if _kind("ssl.truststore", location) == "PEM":
        return {"ssl.ca.location": location}
    return {"ssl.ca.pem": _certificates(location, given.get("ssl.truststore.password"))}


def _certificates(location: str, password: str | Secret | None) -> str:
    """Every certificate of a PKCS12 file, as PEM; the C library takes authorities only so."""
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, pkcs12
    except ModuleNotFoundError:
        hint = "pip install 'streamcore-kafka[pkcs12]', or give it as PEM"
        trouble = f"'{location}' is PKCS12; {hint}"
        raise _refuse("ssl.truststore", trouble) from None
    try:
        store = pkcs12.load_pkcs12(Path(location).read_bytes(), text(password).encode() or None)
    except ValueError:
        trouble = f"'{location}' cannot be opened with 'properties.ssl.truststore.password'"
        raise _refuse("ssl.truststore", trouble) from None
    entries = [*store.additional_certs, *([store.cert] if store.cert else [])]
    if not entries:
        raise _refuse("ssl.truststore", f"'{location}' holds no certificates")
    return "".join(e.certificate.public_bytes(Encoding.PEM).decode() for e in entries)


def _kind(store: str, location: str) -> str:
    """PEM or PKCS12, by the file itself: Java opens PKCS12 as 'JKS' too, so types mislead."""
    head = _head(location)
    if head is None:
        raise _refuse(store, f"'{location}' cannot be read on this machine")
    if head in _JKS_MAGIC:
        raise _refuse(store, _is_jks(store, location))
    return "PKCS12" if head[:1] == b"\x30" else "PEM"


def _head(location: str) -> bytes | None:
    try:
        with open(location, "rb") as content:
            return content.read(4)
    except OSError:
        return None


def _content(location: str) -> str:
    return Path(location).read_text(encoding="utf-8", errors="replace")


def _refuse(store: str, trouble: str) -> OptionError:
    return OptionError("connector 'kafka'", [Problem(f"properties.{store}.location", trouble)])


def _declared(given: Settings, store: str) -> str:
    kind = text(given.get(f"{store}.type")).upper()
    return "PKCS12" if kind == "P12" else kind


def _is_jks(store: str, location: str) -> str:
    name = location.removesuffix(".jks")
    return (
        f"'{location}' is a Java keystore (JKS), which only Java can read; convert it once: "
        f"keytool -importkeystore -srckeystore {location} "
        f"-destkeystore {name}.p12 -deststoretype PKCS12, "
        f"then set this to '{name}.p12' and 'properties.{store}.type' to 'PKCS12'"
    )
