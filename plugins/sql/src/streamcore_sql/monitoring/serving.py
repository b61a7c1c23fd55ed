"""A small web server inside the job's process: loopback by default, and only for who asks for it.

A page in a browser elsewhere may point its own host name at 127.0.0.1 to read what is served
here, so a server on loopback answers only requests made to a loopback name.
"""

from __future__ import annotations

import ipaddress
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from streamcore import StreamcoreError

LOOPBACK = "127.0.0.1"
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_SECONDS = 10.0


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    query: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    """What is sent back."""

    body: bytes
    kind: str


Route = Callable[[Request], Answer]


class CannotServe(StreamcoreError):  # noqa: N818 - says what happened
    """A port cannot be opened."""

    exit_code = 2


def address(text: str) -> tuple[str, int]:
    """`PORT` or `HOST:PORT`; port 0 is any free one. Raises ValueError."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"'{text}' is neither a port nor HOST:PORT")
    return host.strip("[]") or LOOPBACK, int(port)


class Server:
    """Answers on a thread of its own until it is closed."""

    def __init__(self, place: tuple[str, int], routes: Mapping[str, Route], what: str) -> None:
        handler = type("Handler", (_Handler,), {"routes": routes, "host": place[0]})
        is_v6 = ":" in place[0]
        try:
            self._server = (_ServerV6 if is_v6 else _Server)(place, handler)
        except OSError as error:
            where = f"{place[0]}:{place[1]}"
            raise CannotServe(f"{what}: cannot listen on {where}: {error.strerror}") from error
        self.port = int(self._server.server_address[1])
        self.url = f"http://[{place[0]}]:{self.port}" if is_v6 else f"http://{place[0]}:{self.port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # their own also asks name servers who we are
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]


class _ServerV6(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    routes: Mapping[str, Route] = {}
    host = LOOPBACK
    timeout = _SECONDS
    server_version, sys_version = "streamcore", ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if not self._is_for_us():
            return self._send(421, Answer(b"this server answers to a loopback name only\n", _TEXT))
        route = self.routes.get(parts.path)
        if route is None:
            return self._send(404, Answer(b"not found\n", _TEXT))
        query = {key: found[-1] for key, found in parse_qs(parts.query).items()}
        try:
            answer = route(Request(query, dict(self.headers.items())))
        except Exception as error:  # a page that cannot be made must not disturb the job
            return self._send(500, Answer(f"{type(error).__name__}\n".encode(), _TEXT))
        return self._send(200, answer)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _is_for_us(self) -> bool:
        if not _is_loopback(self.host):
            return True
        name = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
        return name == "localhost" or _is_loopback(name)

    def _send(self, status: int, answer: Answer) -> None:
        self.send_response(status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - their name
        """Requests are nobody's news."""


_TEXT = "text/plain; charset=utf-8"


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
