"""A TCP proxy before a broker."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self

from .process import HOST, Service


class KafkaProxy(Service):
    """Passes bytes between clients and one broker."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._server = socket.create_server((HOST, 0))
        self.port: int = self._server.getsockname()[1]

    def start(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def stop(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                broker = socket.create_connection(self._upstream)
                for source, sink in ((client, broker), (broker, client)):
                    threading.Thread(target=_pass, args=(source, sink), daemon=True).start()


def _pass(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError), source, sink:
        while data := source.recv(65536):
            sink.sendall(data)
