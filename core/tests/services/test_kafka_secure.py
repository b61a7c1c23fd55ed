"""The guarded broker lets in who it should and nobody else."""

from __future__ import annotations

import contextlib

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from streamcore.testing.services import SecureKafkaBroker
from streamcore.testing.services.certificates import Authority


@pytest.fixture(scope="module")
def broker():
    with SecureKafkaBroker() as broker:
        yield broker


def refusal(config):
    """What the client was told when it was turned away, or None if it got in."""
    said = []
    admin = AdminClient({**config, "error_cb": lambda error: said.append(error.str())})
    for _ in range(100):
        admin.poll(0.05)
        if telling := [text for text in said if "uthentication" in text or "certificate" in text]:
            return telling[0]
        with contextlib.suppress(KafkaException):
            admin.list_topics(timeout=0.1)
            return None
    raise AssertionError(f"neither in nor out after 100 tries: {said}")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_right_password_opens_and_a_wrong_one_does_not(broker, mechanism):
    assert refusal(broker.client_config("alice", mechanism)) is None
    wrong = broker.client_config("alice", mechanism, password="wrong")
    assert "uthentication failed" in refusal(wrong)


def test_a_client_certificate_opens_and_one_of_a_stranger_does_not(broker, tmp_path):
    assert refusal(broker.certificate_config()) is None
    stranger = Authority(tmp_path).issue("admin")
    forged = {
        "ssl.certificate.location": str(stranger.certificate),
        "ssl.key.location": str(stranger.key),
    }
    assert "alert certificate unknown" in refusal({**broker.certificate_config(), **forged})


def test_a_client_that_does_not_know_the_authority_stays_out(broker, tmp_path):
    other = Authority(tmp_path).trust
    blind = {**broker.client_config(), "ssl.ca.location": str(other)}
    assert "certificate verify failed" in refusal(blind)


def test_a_user_may_do_only_what_was_granted(broker, consume, produce):
    topic = broker.create_topic("guarded")
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        produce(broker.client_config("alice"), topic, [b"a"])
    broker.grant("alice", topic=topic)
    produce(broker.client_config("alice"), topic, [b"a"])
    produce(broker.certificate_config("alice"), topic, [b"b"])
    assert consume(broker.client_config("alice"), topic, 2) == [b"a", b"b"]
    broker.deny("alice", "WRITE", topic=topic)
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        produce(broker.client_config("alice"), topic, [b"c"])


def test_a_changed_password_replaces_the_old_one(broker):
    old = broker.client_config("alice")
    broker.set_password("alice", "fresh-secret")
    assert refusal(broker.client_config("alice")) is None
    assert "uthentication failed" in refusal(old)
