"""Brokers that do not answer: one sentence, in bounded time, naming the broker."""

from __future__ import annotations

import socket
import time

import pytest
from streamcore import ConnectionFailed
from streamcore_kafka.fetching import Fetcher
from streamcore_kafka.progress import Range

HASTY = {"properties.socket.connection.setup.timeout.ms": "1500"}
LONG = 30
"""Seconds that none of these may take, on however busy a machine."""


@pytest.fixture
def nobody():
    """An address where nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def silent():
    """An address that takes connections and never says a word."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("address", ["nobody", "silent"])
@pytest.mark.parametrize("what", [{}, {"topic-pattern": "a.*", "topic": None}])
def test_a_query_does_not_start_on_a_broker_that_does_not_answer(drive, request, address, what):
    servers = request.getfixturevalue(address)
    began = time.monotonic()
    with pytest.raises(ConnectionFailed, match=f"{servers} .*Check 'properties.bootstrap.servers'"):
        drive("t", {**HASTY, "properties.bootstrap.servers": servers, **what})
    assert time.monotonic() - began < LONG


def test_a_task_does_not_wait_for_ever(table, nobody):
    kafka = table("t", {**HASTY, "properties.bootstrap.servers": nobody})
    began = time.monotonic()
    with pytest.raises(ConnectionFailed) as caught:
        list(Fetcher(kafka, [Range("t", 0, 5, 9)]).chunks())
    assert time.monotonic() - began < LONG
    assert str(caught.value).startswith(f"topic 't' partition 0 offset 5: Kafka broker {nobody} ")
