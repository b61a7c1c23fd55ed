"""TCP proxies that break connections on purpose; one of them knows Kafka's requests."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import Self

from .process import HOST, Service, free_port

PRODUCE, FETCH, METADATA, INIT_PRODUCER_ID, END_TXN = 0, 1, 3, 22, 26
SLICE = 16_384


class Way(Enum):
    """The direction data flows: to the service, or back to its client."""

    REQUESTS = "requests"
    REPLIES = "replies"


class Rule:
    """What happens to a few frames of one kind: held back, or the connection cut."""

    def __init__(self, api_key: int, way: Way, times: int, *, cut: bool, after: int = 0) -> None:
        self.api_key, self.way, self.cut = api_key, way, cut
        self.met: list[bytes] = []
        """The frames it was applied to."""
        self.answers: list[tuple[bytes, bytes]] = []
        """Requests that were held and came late, and what the service replied."""
        self._spared, self._left = after, times
        self._lock = threading.Condition()
        self._released = False

    def matches(self, api_key: int | None, way: Way, frame: bytes) -> bool:
        """Whether this frame is one of them; counts it."""
        with self._lock:
            if self._released or not self._left or (api_key, way) != (self.api_key, self.way):
                return False
            if self._spared:
                self._spared -= 1
                return False
            self._left -= 1
            self.met.append(frame)
            self._lock.notify_all()
            return True

    def wait(self, timeout: float = 30, count: int = 1) -> bool:
        """Whether so many frames were met within the timeout."""
        with self._lock:
            return self._lock.wait_for(lambda: len(self.met) >= count, timeout)

    def wait_answered(self, timeout: float = 30, count: int = 1) -> bool:
        """Whether so many of the requests that were held have a reply within the timeout."""
        with self._lock:
            return self._lock.wait_for(lambda: len(self.answers) >= count, timeout)

    def answer(self, request: bytes, reply: bytes) -> None:
        with self._lock:
            self.answers.append((request, reply))
            self._lock.notify_all()

    def release(self) -> None:
        """Let go of what is held, and hold nothing more."""
        with self._lock:
            self._released = True
            self._lock.notify_all()

    def block(self) -> None:
        with self._lock:
            self._lock.wait_for(lambda: self._released)


class _Connection:
    """A client, the service, and the requests between them that still lack a reply."""

    def __init__(self, client: socket.socket, service: socket.socket) -> None:
        self.client, self.service = client, service
        self.awaiting: dict[int, int] = {}
        self.late: dict[int, tuple[Rule, bytes]] = {}
        self.ended = False
        self._reset = False
        self._lock = threading.Lock()
        self._pumps = 2

    def end(self, *, reset: bool = False) -> None:
        """Have both pumps leave; shutting down reading wakes them without a word to the peers."""
        self.ended, self._reset = True, reset
        for side in (self.client, self.service):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RD if reset else socket.SHUT_RDWR)

    def leave(self) -> None:
        """Called by each pump as its last act; the second one closes the sockets."""
        with self._lock:
            self._pumps -= 1
            if self._pumps:
                return
        for side in (self.client, self.service):
            if self._reset:
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            side.close()


class TcpProxy(Service):
    """Passes bytes between clients and a service until told to do worse."""

    def __init__(self, port: int, host: str = HOST) -> None:
        self._upstream = (host, port)
        self.port = 0
        self._server: socket.socket | None = None
        self._connections: set[_Connection] = set()
        self._changed = threading.Condition()
        self._held: set[Way] = set()
        self._rate: float | None = None
        self._delay = 0.0
        self._line_free = dict.fromkeys(Way, 0.0)

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def start(self) -> Self:
        self.port = self.port or free_port()
        self.welcome()
        return self

    def stop(self) -> None:
        self.refuse()
        self.heal(welcome=False)
        self.cut()

    def hold(self, *ways: Way) -> None:
        """Keep connections open but let nothing through, in both directions or the given one."""
        with self._changed:
            self._held.update(ways or Way)

    def release(self) -> None:
        """Let everything flow again, what was held first."""
        with self._changed:
            self._held.clear()
            self._changed.notify_all()

    def cut(self, *, reset: bool = False) -> None:
        """End the open connections, in order or with a reset; new ones are welcome."""
        with self._changed:
            for connection in self._connections:
                connection.end(reset=reset)
            self._changed.notify_all()

    def throttle(self, bytes_per_second: float | None) -> None:
        """Limit each direction, over all connections together."""
        self._rate = bytes_per_second

    def delay(self, seconds: float) -> None:
        """Add a latency to each piece that passes."""
        self._delay = seconds

    def refuse(self) -> None:
        """Stop listening, as a host without the service would."""
        if self._server is not None:
            with contextlib.suppress(OSError):
                self._server.shutdown(socket.SHUT_RDWR)
            self._server.close()
            self._server = None

    def welcome(self) -> None:
        """Listen again, on the same port."""
        if self._server is None:
            self._server = socket.create_server((HOST, self.port))
            threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def heal(self, *, welcome: bool = True) -> None:
        """Undo every fault."""
        self._rate, self._delay = None, 0.0
        self.release()
        if welcome:
            self.welcome()

    def _accept(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                try:
                    service = socket.create_connection(self._upstream, timeout=5)
                except OSError:
                    client.close()
                    continue
                service.settimeout(None)
                connection = _Connection(client, service)
                with self._changed:
                    self._connections.add(connection)
                for way in Way:
                    threading.Thread(target=self._pump, args=(connection, way), daemon=True).start()

    def _pump(self, connection: _Connection, way: Way) -> None:
        source, sink = connection.client, connection.service
        if way is Way.REPLIES:
            source, sink = sink, source
        deaf = False
        try:
            for piece in self._pieces(source):
                if self._pass_on(connection, way, piece) and not deaf:
                    try:
                        self._send(connection, sink, way, piece)
                    except OSError:
                        # A client that left must not keep the service from finishing its work.
                        deaf = True
                if connection.ended or (deaf and way is Way.REQUESTS):
                    break
        except OSError:
            connection.end()
        finally:
            self._finish(connection, way, sink)

    def _finish(self, connection: _Connection, way: Way, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if not connection.ended:
                sink.shutdown(socket.SHUT_WR)
        with self._changed:
            if way is Way.REPLIES:
                connection.ended = True
                self._connections.discard(connection)
            self._changed.notify_all()
        if way is Way.REPLIES:
            with contextlib.suppress(OSError):
                connection.client.shutdown(socket.SHUT_RD)
        connection.leave()

    def _send(
        self, connection: _Connection, sink: socket.socket, way: Way, piece: bytes | memoryview
    ) -> None:
        if self._delay:
            time.sleep(self._delay)
        for start in range(0, len(piece), SLICE if self._rate else max(len(piece), 1)):
            part = piece[start : start + SLICE] if self._rate else piece
            if self._rate:
                self._wait_for_line(way, len(part) / self._rate)
            with self._changed:
                self._changed.wait_for(lambda: way not in self._held or connection.ended)
            if connection.ended:
                return
            sink.sendall(part)

    def _wait_for_line(self, way: Way, seconds: float) -> None:
        with self._changed:
            free = max(self._line_free[way], time.monotonic()) + seconds
            self._line_free[way] = free
        time.sleep(max(0.0, free - time.monotonic()))

    def _pieces(self, source: socket.socket) -> Iterator[bytes]:
        while data := source.recv(65_536):
            yield data

    def _pass_on(self, connection: _Connection, way: Way, piece: bytes) -> bool:
        """Look at a piece before it is sent; False keeps it from being sent at all."""
        return True


class KafkaProxy(TcpProxy):
    """A proxy before one broker that can hold back or lose single requests of a chosen kind."""

    def __init__(self, port: int, host: str = HOST) -> None:
        super().__init__(port, host)
        self.requests: Counter[int] = Counter()
        self._rules: list[Rule] = []

    def hold_next(
        self, api_key: int, way: Way = Way.REQUESTS, times: int = 1, after: int = 0
    ) -> Rule:
        """Hold back the next requests of this kind, or the replies to them, until released.

        As many as `after` says come through before. A held request still reaches the broker after
        its client has given up and reconnected.
        """
        return self._add(Rule(api_key, way, times, cut=False, after=after))

    def cut_next(self, api_key: int, way: Way = Way.REQUESTS, times: int = 1) -> Rule:
        """Cut the connection instead of delivering the next such requests, or the replies."""
        return self._add(Rule(api_key, way, times, cut=True))

    def _add(self, rule: Rule) -> Rule:
        with self._changed:
            self._rules.append(rule)
        return rule

    def heal(self, *, welcome: bool = True) -> None:
        with self._changed:
            rules, self._rules = self._rules, []
        for rule in rules:
            rule.release()
        super().heal(welcome=welcome)

    def _pieces(self, source: socket.socket) -> Iterator[bytes]:
        with source.makefile("rb") as stream:
            while len(head := stream.read(4)) == 4:
                (size,) = struct.unpack(">i", head)
                if len(body := stream.read(size)) < size:
                    return
                yield head + body

    def _pass_on(self, connection: _Connection, way: Way, piece: bytes) -> bool:
        if way is Way.REQUESTS:
            api_key, _, correlation = struct.unpack_from(">hhi", piece, 4)
            self.requests[api_key] += 1
            connection.awaiting[correlation] = api_key
        else:
            (correlation,) = struct.unpack_from(">i", piece, 4)
            if late := connection.late.pop(correlation, None):
                held, request = late
                held.answer(request, piece)
            api_key = connection.awaiting.pop(correlation, None)
        with self._changed:
            rule = next((rule for rule in self._rules if rule.matches(api_key, way, piece)), None)
        if rule is None:
            return True
        if rule.cut:
            connection.end()
            return False
        if way is Way.REQUESTS:
            connection.late[correlation] = rule, piece
        rule.block()
        if way is Way.REQUESTS:
            self._deliver_late(connection, piece)
        return way is Way.REPLIES

    def _deliver_late(self, connection: _Connection, request: bytes) -> None:
        """Send a held request and wait for its reply: its client may be gone, and need not care.

        Closing our side behind it could make the broker drop what it has not read yet.
        """
        (correlation,) = struct.unpack_from(">i", request, 8)
        connection.service.sendall(request)
        deadline = time.monotonic() + 10
        while correlation in connection.awaiting and time.monotonic() < deadline:
            time.sleep(0.01)
