"""An HTTP proxy before the Kinesis emulator: closes its gaps, and fails on purpose as AWS does."""

from __future__ import annotations

import contextlib
import http.client
import json
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from ..process import HOST, Service, free_port
from .eventstream import frame, frames, payload
from .faults import Fate, Refusal


class FaultProxy(Service):
    """The address that clients of the emulator use."""

    def __init__(self, upstream_port: int, port: int = 0, *, seed: int | None = None) -> None:
        self.upstream_port, self.port = upstream_port, port
        self.fate = Fate(seed)

    def start(self) -> Self:
        self.port = self.port or free_port()
        self._server = ThreadingHTTPServer((HOST, self.port), _Handler)
        self._server.daemon_threads = True
        self._server.proxy = self  # type: ignore[attr-defined]  # how handlers reach us
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"


class _Handler(BaseHTTPRequestHandler):
    """One client connection and its own connection to the emulator."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def setup(self) -> None:
        super().setup()
        proxy: FaultProxy = self.server.proxy  # type: ignore[attr-defined]
        self.fate, self.upstream_port = proxy.fate, proxy.upstream_port
        self.upstream = self._connect()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(HOST, self.upstream_port, timeout=330)

    def finish(self) -> None:
        self.upstream.close()
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, *arguments: object) -> None:
        """Keep quiet: tests look at the ledger."""

    def do_POST(self) -> None:
        fate, faults = self.fate, self.fate.faults
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        operation = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        request = json.loads(body or b"{}")
        fate.note(operation, request)
        time.sleep(faults.latency)
        try:
            if fate.happens(faults.disconnect, "disconnect"):
                raise ConnectionAbortedError
            fate.check(operation, request)
            if operation == "SubscribeToShard":
                self._subscribe(request, body)
            elif operation == "PutRecords" and faults.partial:
                self._put_partially(request)
            elif empty := fate.behind(operation, request):
                self._answer(200, empty)
            else:
                status, reply = self._forward(_asked(request, body, faults.shift_arrivals))
                if status == 200:
                    reply = _told(operation, reply, faults.shift_arrivals)
                    fate.learn(operation, request, reply)
                    self._maybe_lose(operation, len(request.get("Records", "1")))
                self._answer(status, reply)
        except Refusal as refusal:
            self._answer(refusal.status, refusal.body)
        except (OSError, http.client.HTTPException):
            self.close_connection = True

    def _maybe_lose(self, operation: str, records: int) -> None:
        writes = operation in {"PutRecord", "PutRecords"}
        if writes and self.fate.happens(self.fate.faults.lose_reply, "lose_reply"):
            self.fate.ledger.ambiguous_records += records
            raise ConnectionAbortedError

    def _put_partially(self, request: dict[str, Any]) -> None:
        outcome = self.fate.split_off_failures(request["Records"])
        accepted = [r for r, failed in zip(request["Records"], outcome, strict=True) if not failed]
        reply: dict[str, Any] = {"Records": [], "EncryptionType": "NONE"}
        if accepted:
            status, body = self._forward(json.dumps({**request, "Records": accepted}).encode())
            if status != 200:
                return self._answer(status, body)
            reply = json.loads(body)
            self._maybe_lose("PutRecords", len(accepted))
        written = iter(reply["Records"])
        reply["Records"] = [failed or next(written) for failed in outcome]
        reply["FailedRecordCount"] = sum(bool(r.get("ErrorCode")) for r in reply["Records"])
        return self._answer(200, json.dumps(reply).encode())

    def _forward(self, body: bytes, operation: str | None = None) -> tuple[int, bytes]:
        response = self._send(self.upstream, body, operation)
        return response.status, response.read()

    def _send(
        self, upstream: http.client.HTTPConnection, body: bytes, operation: str | None = None
    ) -> http.client.HTTPResponse:
        unwanted = {"host", "content-length", "connection", "accept-encoding"}
        headers = {k: v for k, v in self.headers.items() if k.lower() not in unwanted}
        if operation:
            headers["X-Amz-Target"] = f"Kinesis_20131202.{operation}"
        upstream.request("POST", "/", body, headers)
        return upstream.getresponse()

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("x-amzn-RequestId", f"{time.time_ns():032x}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _subscribe(self, request: dict[str, Any], body: bytes) -> None:
        with contextlib.closing(self._connect()) as subscription:
            response = self._send(subscription, body)
            if response.status != 200:
                return self._answer(response.status, response.read())
            self.send_response(200)
            self.send_header("Content-Type", "application/vnd.amazon.eventstream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for data in self._events(request, response):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        return None

    def _events(
        self, request: dict[str, Any], response: http.client.HTTPResponse
    ) -> Iterator[bytes]:
        """The emulator's events with what it leaves out: the first frame and a shard's end."""
        yield frame("initial-response", {})
        for count, data in enumerate(frames(lambda: response.read1(1 << 16)), 1):
            event = payload(data)
            idle = not event.get("Records", [True]) and event.get("MillisBehindLatest") == 0
            children = self._children(request) if idle else None
            if children is not None:
                end = {"Records": [], "MillisBehindLatest": 0, "ChildShards": children}
                yield frame("SubscribeToShardEvent", end)
                return
            yield data
            if count == self.fate.faults.cut_subscription_after:
                self.fate.ledger.injected["cut_subscription"] += 1
                raise ConnectionAbortedError

    def _children(self, request: dict[str, Any]) -> list[dict[str, Any]] | None:
        """The shards that follow the subscribed one, or None while it is open."""
        stream = request["ConsumerARN"].rpartition("/consumer/")[0]
        _, reply = self._forward(json.dumps({"StreamARN": stream}).encode(), "ListShards")
        shards = {shard["ShardId"]: shard for shard in json.loads(reply).get("Shards", ())}
        mine = shards.get(request["ShardId"])
        if mine is None or "EndingSequenceNumber" not in mine["SequenceNumberRange"]:
            return None
        children = []
        for shard in shards.values():
            parents = [shard.get("ParentShardId"), shard.get("AdjacentParentShardId")]
            if request["ShardId"] in parents:
                known = [parent for parent in parents if parent]
                about = {"ShardId": shard["ShardId"], "ParentShards": known}
                children.append({**about, "HashKeyRange": shard["HashKeyRange"]})
        return children


def _asked(request: dict[str, Any], body: bytes, shift: float) -> bytes:
    """A request by shifted time in the emulator's own; it knows no moment to come."""
    if not shift or request.get("ShardIteratorType") != "AT_TIMESTAMP":
        return body
    moment = min(request["Timestamp"] - shift, time.time() - 0.001)
    return json.dumps({**request, "Timestamp": moment}).encode()


def _told(operation: str, reply: bytes, shift: float) -> bytes:
    if not shift or operation != "GetRecords":
        return reply
    plain = json.loads(reply)
    for record in plain["Records"]:
        record["ApproximateArrivalTimestamp"] += shift
    return json.dumps(plain).encode()


if __name__ == "__main__":
    FaultProxy(upstream_port=int(sys.argv[1]), port=int(sys.argv[2])).start()
    threading.Event().wait()
