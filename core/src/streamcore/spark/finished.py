"""Tells sources which of their batches Spark has committed, as soon as it has.

Spark itself tells a source of it with the next batch, which may be late or never come. A source
that wants to know sooner opens an `Ear` and shows its address in the progress, as `tell` under
any key of what it reports as its latest offset; sessions of ours send a word there.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HOST = "127.0.0.1"


def word_for(end: Mapping[str, Any]) -> str:
    """What stands for an end offset in a short message."""
    return f"{crc32(json.dumps(end.get('offsets'), sort_keys=True).encode()):08x}"


class Ear:
    """Hears of finished batches, in a thread of its own; lives where the reader does."""

    def __init__(self, heard: Callable[[str], None]) -> None:
        """`heard` is called with the word for the end of each batch."""
        self._token = secrets.token_hex(16)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((_HOST, 0))
        self.address = f"{self._socket.getsockname()[1]}/{self._token}"
        threading.Thread(target=self._listen, args=(heard,), daemon=True).start()

    def _listen(self, heard: Callable[[str], None]) -> None:
        while True:
            token, _, word = self._socket.recv(1024).decode(errors="replace").partition("/")
            if secrets.compare_digest(token.encode(), self._token.encode()):
                heard(word)


def tell(progress: Mapping[str, Any]) -> None:
    """Send word to every source of a query's progress that asks for it."""
    for source in progress.get("sources", ()):
        end = source.get("endOffset")
        if not isinstance(end, Mapping):
            continue
        for address in _addresses(source.get("latestOffset")):
            port, _, token = address.partition("/")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
                out.sendto(f"{token}/{word_for(end)}".encode(), (_HOST, int(port)))


def _addresses(latest: Any) -> Iterator[str]:
    for part in latest.values() if isinstance(latest, Mapping) else ():
        address = part.get("tell") if isinstance(part, Mapping) else None
        if isinstance(address, str) and address.partition("/")[0].isdecimal():
            yield address


class _Listener:
    """Spark calls it after each batch, once the batch is in the commit log."""

    def onQueryStarted(self, event: Any) -> None: ...

    def onQueryProgress(self, event: Any) -> None:
        # Whatever goes wrong here, the query is not to hear of it: the next batch makes up for it.
        with contextlib.suppress(Exception):
            tell(json.loads(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None: ...

    def onQueryTerminated(self, event: Any) -> None: ...

    class Java:
        """The interface by which Spark calls Python."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


_listening: set[int] = set()


def listen(spark: SparkSession) -> None:
    """Have this session tell its sources; once per session, and only where Spark runs here."""
    from pyspark import java_gateway

    manager = getattr(spark.streams, "_jsqm", None)
    if manager is None or manager.hashCode() in _listening:
        return
    _listening.add(manager.hashCode())  # Python may hold several objects of one session
    gateway: Any = spark.sparkContext._gateway
    start: Callable[[Any], None] = java_gateway.ensure_callback_server_started
    start(gateway)
    streaming = gateway.jvm.org.apache.spark.sql.streaming
    listener = streaming.PythonStreamingQueryListenerWrapper(_Listener())
    manager.addListener(listener)

    def end() -> None:  # or Spark would call a Python that is gone, and complain
        with contextlib.suppress(Exception):
            manager.removeListener(listener)

    atexit.register(end)
