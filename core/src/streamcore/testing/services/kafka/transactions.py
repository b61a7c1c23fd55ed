"""What a broker knows of transactions, and how one is told to end: clients say neither."""

from __future__ import annotations

import struct
from typing import NamedTuple

from .wire import Fields, ask

LIST_TRANSACTIONS = 66
FENCED = {47: "INVALID_PRODUCER_EPOCH", 90: "PRODUCER_FENCED"}
"""What a producer is told that has a successor."""


def states(port: int) -> dict[str, str]:
    """The state of each transaction that the broker coordinates, by transactional id.

    `Ongoing` is open; `CompleteCommit` and `CompleteAbort` tell how it ended, until the next one.
    """
    header = struct.pack(">hhihb", LIST_TRANSACTIONS, 0, 1, -1, 0)  # no client id, no tags
    reply = ask(port, header + b"\1\1\0")  # of any state, of any producer, no tags
    reply.number(4)  # correlation
    reply.skip_tags()
    reply.number(4)  # throttle time
    if error := reply.number(2):
        raise ConnectionError(f"the broker does not list transactions: error {error}")
    for _ in range(reply.compact_size()):
        reply.compact_text()  # a state it does not know
    found = {}
    for _ in range(reply.compact_size()):
        name = reply.compact_text()
        reply.number(8)  # producer id
        found[name] = reply.compact_text()
        reply.skip_tags()
    return found


class Ending(NamedTuple):
    """What an EndTxn request asks for."""

    transaction: str
    commit: bool

    @classmethod
    def of(cls, frame: bytes) -> Ending:
        """From the frame as it was sent, its size before it."""
        fields, tagged = _after_client(frame)
        transaction = fields.compact_text() if tagged else fields.text()
        fields.number(8)  # producer id
        fields.number(2)  # its epoch
        return cls(transaction, bool(fields.number(1)))


def ending_refused(frame: bytes, reply: bytes) -> str:
    """Why the broker did not end what an EndTxn request asked it to; empty if it did."""
    _, tagged = _after_client(frame)
    fields = Fields(reply, 8)  # after size and correlation
    if tagged:
        fields.skip_tags()
    fields.number(4)  # throttle time
    error = fields.number(2)
    return FENCED.get(error, f"error {error}") if error else ""


def _after_client(frame: bytes) -> tuple[Fields, bool]:
    """The fields behind a request's header, and whether its version has tags."""
    (version,) = struct.unpack_from(">h", frame, 6)
    fields, tagged = Fields(frame, 12), version >= 3
    fields.text()
    if tagged:
        fields.skip_tags()
    return fields, tagged
