"""Brokers that do not answer: one sentence, in bounded time, naming the broker."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest
from streamcore import ConnectionFailed
from streamcore.testing.services import KafkaBroker, KafkaCluster
from streamcore_kafka import client, consumers, fetching
from streamcore_kafka.client import PATIENCE
from streamcore_kafka.discovery import Cluster
from streamcore_kafka.fetching import Fetcher
from streamcore_kafka.progress import Partition, Range

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


class Muted:
    """A consumer that hands nothing over until a time has come, or for ever."""

    def __init__(self, consumer, seconds):
        self._consumer, self._until = consumer, time.monotonic() + seconds

    def __getattr__(self, name):
        return getattr(self._consumer, name)

    def consume(self, count, timeout):
        if time.monotonic() < self._until:
            time.sleep(timeout)
            return []
        return self._consumer.consume(count, timeout)


@pytest.fixture
def muted(monkeypatch):
    """Has tasks read with a muted consumer: `muted(seconds)`."""
    borrowed = consumers.borrowed

    def mute(seconds):
        @contextlib.contextmanager
        def borrow(properties):
            with borrowed(properties) as consumer:
                yield Muted(consumer, seconds)

        monkeypatch.setattr(consumers, "borrowed", borrow)

    return mute


def test_silence_is_borne_while_the_broker_answers(table, kafka_topic, produce, people, muted):
    topic = kafka_topic()
    produce(topic, people(5))
    muted(seconds=5)
    hasty = table(topic, {"properties.socket.connection.setup.timeout.ms": "4000"})
    (chunk,) = Fetcher(hasty, [Range(topic, 0, 0, 5)]).chunks()
    assert len(chunk) == 5


def test_silence_has_an_end_although_the_broker_answers(
    table, kafka_topic, produce, people, muted, monkeypatch
):
    topic = kafka_topic()
    produce(topic, people(5))
    muted(seconds=LONG)
    monkeypatch.setattr(client, "PATIENCE", 4.0)
    monkeypatch.setattr(fetching, "NOTHING_FOR", 1.0)
    with pytest.raises(ConnectionFailed) as caught:
        list(Fetcher(table(topic), [Range(topic, 0, 0, 5)]).chunks())
    assert str(caught.value) == (
        f"topic '{topic}' partition 0 offset 0: no record came for 1 s, although the broker "
        "answers. Check the quota of this client, and whether nothing but aborted records follows."
    )


def test_a_broker_that_comes_back_is_asked_for_offsets_as_before(table):
    """The library would go on with the leaders it knew, and be told that they are not."""
    with KafkaBroker() as broker:
        topic = broker.create_topic("restarted", 2)
        kafka = table(topic, {"properties.bootstrap.servers": broker.bootstrap_servers})
        nothing = {Partition(topic, 0): 0, Partition(topic, 1): 0}
        asked, asking = Cluster(kafka), Cluster(kafka)
        assert asked.latest(nothing) == asking.latest(nothing) == nothing
        broker.kill()
        coming_back = threading.Timer(1, broker.node.start)
        coming_back.start()
        assert asking.latest(nothing) == nothing, "while it starts"
        coming_back.join()
        began = time.monotonic()
        assert asked.latest(nothing) == nothing
        assert time.monotonic() - began < PATIENCE / 2


def test_a_leader_that_does_not_answer_is_no_offset(table):
    """The library answers for its partitions, too: no error, and an offset below zero."""
    with KafkaCluster(2) as brokers:
        topic = brokers.create_topic("led-by-both", 2)
        cluster = Cluster(table(topic, {"properties.bootstrap.servers": brokers.bootstrap_servers}))
        nothing = {Partition(topic, 0): 0, Partition(topic, 1): 0}
        assert cluster.latest(nothing) == nothing
        brokers.nodes[0].pause()
        waking_up = threading.Timer(2, brokers.nodes[0].resume)
        waking_up.start()
        assert cluster.earliest(nothing) == nothing
        waking_up.join()
