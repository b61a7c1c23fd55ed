"""Why a broker's certificate does not pass: the C library only tells that it does not."""

from __future__ import annotations

import socket
import ssl
from enum import Enum
from pathlib import Path

from .keystores import Settings, text
from .properties import Role, translated

_SECONDS = 3.0
_DATES = frozenset((9, 10))  # OpenSSL's codes: not yet valid, expired
_NAMES = frozenset((62, 63, 64))  # another host, mail address, IP address


class Doubt(Enum):
    """What is wrong with a certificate."""

    AUTHORITY = "an authority signed it that we do not trust"
    DATES = "it has expired, or is not valid yet"
    HOST = "it was made for another host"


def doubt(address: str, properties: Settings) -> Doubt | None:
    """Shake hands once more and see what fails; None when that cannot be found out."""
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        return None
    host = host.strip("[]")
    try:
        context = _context(properties)
        with (
            socket.create_connection((host, int(port)), _SECONDS) as connection,
            context.wrap_socket(connection, server_hostname=host),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _DATES:
            return Doubt.DATES
        return Doubt.HOST if error.verify_code in _NAMES else Doubt.AUTHORITY
    except (OSError, ValueError):
        return None


def _context(properties: Settings) -> ssl.SSLContext:
    """The same trust and the same check of the host as the client's."""
    settings = translated(properties, Role.ADMIN)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = text(settings.get("ssl.endpoint.identification.algorithm")) != "none"
    location, content = (text(settings.get(f"ssl.ca.{key}")) for key in ("location", "pem"))
    if content:
        context.load_verify_locations(cadata=content)
    elif location and Path(location).is_dir():
        context.load_verify_locations(capath=location)
    elif location and location != "probe":
        context.load_verify_locations(cafile=location)
    else:
        context.load_default_certs()
    return context
