"""The proxy before a broker breaks connections as told, and heals."""

from __future__ import annotations

import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from streamcore.testing.services import KafkaBroker, Way
from streamcore.testing.services.kafka import unique_name
from streamcore.testing.services.proxy import END_TXN, PRODUCE


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


def test_a_held_commit_reaches_the_broker_after_its_client_has_gone(broker, proxy, config, topic):
    producer = Producer({**config, "transactional.id": topic, "socket.timeout.ms": 1000})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, b"committed late")
    producer.flush(20)
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
    held.release()
    assert read_committed(broker, topic, timeout=20) == [b"committed late"]


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
