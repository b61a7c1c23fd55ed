"""A certificate authority for one test run, and what it signs, in the formats clients ask for."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .process import HOST

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

STORE_PASSWORD = "changeit"  # noqa: S105 - opens files that live as long as a test


@dataclass(frozen=True)
class Identity:
    """A key with its certificate: apart, in one PEM file, and as a PKCS12 store."""

    name: str
    key: Path
    certificate: Path
    pem: Path
    pkcs12: Path


class Authority:
    """Signs certificates into a directory; `trust` is its own one, also as a PKCS12 store."""

    def __init__(self, directory: Path, name: str = "test authority") -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._key = _new_key()
        self._certificate = _sign(self._key, name, self._key, name, days=30)
        self.trust = directory / "ca.pem"
        self.trust.write_bytes(_pem(self._certificate))
        self.trust_pkcs12 = directory / "ca.p12"
        self.trust_pkcs12.write_bytes(_trust_store(self._certificate))

    def issue(self, name: str, *, host: str = HOST, days: float = 30) -> Identity:
        """A certificate for a server at this host, or a client; negative days make it expired."""
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.serialization import pkcs12

        key = _new_key()
        issuer = self._certificate.subject.rfc4514_string().removeprefix("CN=")
        certificate = _sign(key, name, self._key, issuer, days=days, host=host)
        key_pem = key.private_bytes(
            form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()
        )
        store = pkcs12.serialize_key_and_certificates(
            name.encode(),
            key,
            certificate,
            [self._certificate],
            form.BestAvailableEncryption(STORE_PASSWORD.encode()),
        )
        at = self._directory / name
        identity = Identity(
            name,
            at.with_suffix(".key"),
            at.with_suffix(".crt"),
            at.with_suffix(".pem"),
            at.with_suffix(".p12"),
        )
        chain = _pem(certificate) + _pem(self._certificate)
        identity.key.write_bytes(key_pem)
        identity.certificate.write_bytes(chain)
        identity.pem.write_bytes(key_pem + chain)
        identity.pkcs12.write_bytes(store)
        return identity


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _sign(
    key: EllipticCurvePrivateKey,
    name: str,
    issuer_key: EllipticCurvePrivateKey,
    issuer: str,
    *,
    days: float,
    host: str | None = None,
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    now = datetime.datetime.now(datetime.UTC)
    begin = now - datetime.timedelta(days=1 + max(0.0, -days))
    builder = (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
    )
    if host is not None:
        builder = builder.add_extension(x509.SubjectAlternativeName(_names(host)), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _names(host: str) -> list[x509.GeneralName]:
    from cryptography import x509

    try:
        return [x509.IPAddress(ipaddress.ip_address(host)), x509.DNSName("localhost")]
    except ValueError:
        return [x509.DNSName(host)]


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _trust_store(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.serialization import pkcs12

    entry = pkcs12.PKCS12Certificate(certificate, b"ca")
    secret = form.BestAvailableEncryption(STORE_PASSWORD.encode())
    return pkcs12.serialize_java_truststore([entry], secret)
