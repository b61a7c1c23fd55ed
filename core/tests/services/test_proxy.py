"""The proxy before a broker breaks connections as told, and heals."""

from __future__ import annotations

import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from streamcore.testing.services import KafkaBroker, Way
from streamcore.testing.services.kafka import unique_name
from streamcore.testing.services.kafka.transactions import FENCED, Ending, ending_refused
from streamcore.testing.services.proxy import END_TXN, FETCH, PRODUCE, Rule


@pytest.fixture(scope="module")
def broker():
    with KafkaBroker(proxy=True) as broker:
        yield broker


@pytest.fixture
def proxy(broker):
    yield broker.proxy
    broker.proxy.heal()


@pytest.fixture
def topic(broker, request):
    return broker.create_topic(unique_name(request.node.name))


@pytest.fixture
def config(broker):
    return {"bootstrap.servers": broker.bootstrap_servers, "reconnect.backoff.max.ms": "200"}


def test_clients_are_sent_through_the_proxy(broker, config):
    (told,) = AdminClient(config).list_topics(timeout=10).brokers.values()
    assert f"{told.host}:{told.port}" == broker.bootstrap_servers != broker.direct_servers


@pytest.mark.parametrize("reset", [False, True])
def test_a_cut_connection_is_opened_anew(proxy, config, topic, produce, consume, reset):
    producer = Producer(config)
    for value in (b"before", b"after"):
        producer.produce(topic, value)
        assert producer.flush(20) == 0
        proxy.cut(reset=reset)
    assert consume(config, topic, 2) == [b"before", b"after"]


@pytest.mark.parametrize("ways", [(), (Way.REQUESTS,), (Way.REPLIES,)])
def test_nothing_comes_through_while_held(proxy, config, topic, consume, ways):
    producer = Producer({**config, "enable.idempotence": True})
    producer.list_topics(topic, timeout=20)
    proxy.hold(*ways)
    producer.produce(topic, b"late")
    assert producer.flush(1) == 1
    proxy.release()
    assert producer.flush(20) == 0
    assert consume(config, topic, 1) == [b"late"]


def test_a_refusing_proxy_is_a_host_without_a_broker(proxy, config, topic, produce):
    proxy.refuse()
    proxy.cut()
    with pytest.raises(KafkaException):
        produce({**config, "message.timeout.ms": "1000"}, topic, [b"lost"])
    proxy.welcome()
    produce(config, topic, [b"found"])


def test_throttling_limits_bytes_per_second(proxy, config, topic, produce):
    proxy.throttle(100_000)
    began = time.monotonic()
    produce(config, topic, [bytes(50_000)] * 3)
    assert time.monotonic() - began > 1


def test_one_request_is_lost_with_its_connection_and_the_client_recovers(
    proxy, config, topic, produce, consume
):
    lost = proxy.cut_next(PRODUCE)
    produce(config, topic, [b"a"])
    assert lost.wait(0)
    assert consume(config, topic, 1) == [b"a"]


def test_a_rule_is_for_some_requests_of_a_kind_and_spares_those_before():
    rule = Rule(PRODUCE, Way.REQUESTS, 2, cut=False, after=1)
    frames = [b"spared", b"first", b"second", b"later"]
    assert not rule.matches(FETCH, Way.REQUESTS, b"another kind")
    assert not rule.matches(PRODUCE, Way.REPLIES, b"another way")
    assert [rule.matches(PRODUCE, Way.REQUESTS, each) for each in frames] == [0, 1, 1, 0]
    assert rule.met == [b"first", b"second"]
    assert rule.wait(0, count=2)
    assert not rule.wait(0, count=3)
    assert not rule.wait_answered(0)


def half_written(config, topic, value):
    """A producer whose transaction is open, and whose patience is short."""
    producer = Producer({**config, "transactional.id": topic, "socket.timeout.ms": 1000})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, value)
    producer.flush(20)
    return producer


def test_a_held_commit_reaches_the_broker_after_its_client_has_gone(broker, proxy, config, topic):
    producer = half_written(config, topic, b"committed late")
    held = proxy.hold_next(END_TXN, times=1000)

    def commit():
        with pytest.raises(KafkaException):
            producer.commit_transaction(2)

    committing = threading.Thread(target=commit)
    committing.start()
    assert held.wait(20)
    committing.join(30)
    proxy.cut()
    assert read_committed(broker, topic, timeout=1) == []
    assert broker.transactions()[topic] == "Ongoing"
    assert Ending.of(held.met[0]) == (topic, True)
    held.release()
    assert read_committed(broker, topic, timeout=20) == [b"committed late"]
    assert broker.transactions()[topic] == "CompleteCommit"


def test_a_commit_that_comes_late_tears_the_next_transaction_of_a_producer_that_goes_on(
    broker, proxy, config, topic
):
    """The broker cannot tell the two apart: what writes exactly once needs a new producer."""
    producer = half_written(config, topic, b"first")
    held = proxy.hold_next(END_TXN)
    producer.commit_transaction(20)  # asks again, and is heard
    assert not held.answers
    producer.begin_transaction()
    producer.produce(topic, b"half of the second")
    producer.flush(20)
    assert broker.transactions()[topic] == "Ongoing"
    held.release()
    assert held.wait_answered(20)
    assert ending_refused(*held.answers[0]) == ""
    assert broker.transactions()[topic] in ("PrepareCommit", "CompleteCommit")


def test_an_abort_that_comes_late_from_a_producer_with_a_successor_is_refused(
    broker, proxy, config, topic
):
    producer = half_written(config, topic, b"aborted")
    held = proxy.hold_next(END_TXN)
    producer.abort_transaction(20)
    successor = half_written(config, topic, b"open")
    held.release()
    assert held.wait_answered(20)
    assert Ending.of(held.met[0]) == (topic, False)
    assert ending_refused(*held.answers[0]) in FENCED.values()
    assert broker.transactions()[topic] == "Ongoing"
    successor.abort_transaction(20)


def read_committed(broker, topic, timeout):
    reader = Consumer(
        {
            "bootstrap.servers": broker.direct_servers,
            "group.id": "checker",
            "isolation.level": "read_committed",
        }
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    message = reader.poll(timeout)
    reader.close()
    return [message.value()] if message else []
