"""A gate before the real registry: it asks for credentials, fails on demand, and remembers."""

import contextlib
import http.server
import ssl
import threading
import urllib.error
import urllib.request
import uuid

import pytest
from streamcore.testing.services.certificates import Authority
from streamcore_formats.avro import client


class Gate(http.server.ThreadingHTTPServer):
    """Forwards to the registry, unless `answer` has something else to say."""

    daemon_threads = True

    def __init__(self, target, tls=None):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target, self.scheme = target, "https" if tls else "http"
        self.requests = []
        self.answer = lambda handler: None
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """Keep quiet: clients that hang up are what some tests are about."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.command, self.path, self.headers.get("Authorization")))
        answer = self.server.answer(self) or self._ask(body)
        status, headers, content = answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _ask(self, body):
        request = urllib.request.Request(
            self.server.target + self.path, body or None, method=self.command
        )
        request.add_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        try:
            with urllib.request.urlopen(request) as response:
                return response.status, {"Content-Type": "application/json"}, response.read()
        except urllib.error.HTTPError as error:
            return error.code, {"Content-Type": "application/json"}, error.read()

    def log_message(self, *args):
        pass

    do_GET = do_POST = _pass_on


@pytest.fixture
def gates(schema_registry):
    """Makes gates anybody may pass, until their `answer` is set."""
    with contextlib.ExitStack() as opened:

        def make():
            server = opened.enter_context(Gate(schema_registry.url))
            opened.callback(server.shutdown)
            return server

        yield make


@pytest.fixture
def gate(gates):
    """One such gate."""
    return gates()


@pytest.fixture
def tls_gate(schema_registry, tmp_path):
    """A gate that speaks TLS and asks for a client's certificate."""
    authority = Authority(tmp_path / "tls")
    server_side = authority.issue("registry")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server_side.certificate, server_side.key)
    context.load_verify_locations(authority.trust)
    context.verify_mode = ssl.CERT_REQUIRED
    with Gate(schema_registry.url, context) as server:
        server.authority = authority
        yield server
        server.shutdown()


@pytest.fixture
def subject():
    """A subject nobody else uses."""
    return f"s{uuid.uuid4().hex}"


@pytest.fixture
def impatient(monkeypatch):
    """Gives a registry that is away three seconds instead of sixty."""
    monkeypatch.setattr(client, "PATIENCE", 3.0)
