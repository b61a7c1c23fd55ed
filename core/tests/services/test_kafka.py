"""Brokers are real: what is produced is consumed, also after a restart or a lost member."""

from __future__ import annotations

import itertools
import socket
import time

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import ConfigResource, ResourceType
from streamcore.testing.services import KafkaBroker, KafkaCluster, ServiceError
from streamcore.testing.services.kafka import cluster
from streamcore.testing.services.process import free_port


def plain(broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


def test_what_is_produced_is_consumed(kafka, kafka_topic, consume, produce):
    topic = kafka_topic()
    produce(plain(kafka), topic, [b"a", b"b"])
    assert consume(plain(kafka), topic, 2) == [b"a", b"b"]


def test_topics_have_names_of_their_own_and_the_asked_settings(kafka, kafka_topic):
    first, second = kafka_topic(3, {"cleanup.policy": "compact"}), kafka_topic()
    assert first != second
    described = kafka.tool("org.apache.kafka.tools.TopicCommand", "--describe", "--topic", first)
    assert "PartitionCount: 3" in described
    assert "cleanup.policy=compact" in described


def test_a_broker_keeps_records_of_any_date(kafka, kafka_topic):
    """Tests write what happened years ago; by Kafka's default it would be gone within a minute."""
    topic = ConfigResource(ResourceType.TOPIC, kafka_topic())
    admin = kafka.admin()
    settings = admin.describe_configs([topic])[topic].result(10)
    assert settings["retention.ms"].value == "-1"


def test_a_tool_that_fails_says_why(kafka):
    with pytest.raises(ServiceError, match="nowhere"):
        kafka.tool("org.apache.kafka.tools.TopicCommand", "--describe", "--topic", "nowhere")


def test_a_broker_keeps_its_messages_and_its_address_over_a_restart_and_a_kill(consume, produce):
    with KafkaBroker({"num.partitions": "2"}) as broker:
        topic, address = broker.create_topic("kept"), broker.bootstrap_servers
        produce(plain(broker), topic, [b"a"])
        broker.restart()
        produce(plain(broker), topic, [b"b"])
        broker.kill()
        with pytest.raises(KafkaException):
            produce({**plain(broker), "message.timeout.ms": "500"}, topic, [b"lost"])
        broker.restart()
        assert broker.bootstrap_servers == address
        assert consume(plain(broker), topic, 2) == [b"a", b"b"]


def test_a_broker_that_cannot_start_shows_its_log():
    with pytest.raises(ServiceError) as caught, KafkaBroker({"num.partitions": "many"}):
        pass
    assert "ended: status 1" in str(caught.value)
    assert "num.partitions" in str(caught.value)


def test_a_port_taken_in_the_meantime_is_replaced_by_another(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        ports = itertools.chain([squatter.getsockname()[1]], iter(free_port, None))
        monkeypatch.setattr(cluster, "free_port", lambda preferred=None: next(ports))
        with KafkaBroker() as broker:
            assert broker.admin().list_topics(timeout=10).brokers


def test_a_paused_broker_answers_again_when_resumed(kafka, kafka_topic, produce):
    topic = kafka_topic()
    kafka.pause()
    try:
        with pytest.raises(KafkaException):
            produce({**plain(kafka), "message.timeout.ms": "500"}, topic, [b"unsent"])
    finally:
        kafka.resume()
    produce(plain(kafka), topic, [b"sent"])


def test_a_cluster_serves_on_when_a_member_is_killed(consume, produce):
    with KafkaCluster() as three:
        topic = three.create_topic("replicated", 3)
        produce(plain(three), topic, [b"%d" % i for i in range(30)])
        three.nodes[0].kill()
        produce(plain(three), topic, [b"%d" % i for i in range(30, 60)])
        began = time.monotonic()
        values = consume(plain(three), topic, 60)
        assert sorted(map(int, values)) == list(range(60))
        assert time.monotonic() - began < 30
