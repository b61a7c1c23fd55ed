"""Records that are no rows arrive in their topic whole, and with the reason."""

from __future__ import annotations

import random

import pytest
from streamcore import ConnectionFailed, RecordError
from streamcore.failures import BadRecord
from streamcore.registry import installed
from streamcore.testing.ledger import scenario
from streamcore_kafka.deadletters import dead_letter_sender


def sender(kafka, topic, **more):
    options = {
        "properties.bootstrap.servers": kafka.bootstrap_servers,
        "topic": "source",
        "format": "json",
        "scan.deser.failure-handler": "dead-letter",
        "scan.deser.failure-topic": topic,
        **more,
    }
    return dead_letter_sender(installed().build("connector", "kafka", options))


PLACE = (("topic", "source"), ("partition", "3"), ("offset", "42"))


def test_a_dead_letter_keeps_the_record_and_tells_where_it_was_and_why(kafka, kafka_topic, records):
    topic = kafka_topic()
    whole = BadRecord("there", "not JSON", b"key", b"{oops", PLACE, (("trace", b"7"),))
    empty = BadRecord("there", "no value", None, None, PLACE)
    sender(kafka, topic)([whole, empty])
    first, second = records(topic)
    assert (first.key(), first.value()) == (b"key", b"{oops")
    assert first.headers() == [
        ("trace", b"7"),
        ("streamcore.topic", b"source"),
        ("streamcore.partition", b"3"),
        ("streamcore.offset", b"42"),
        ("streamcore.key", b"key"),
        ("streamcore.reason", b"not JSON"),
    ]
    assert (second.key(), second.value()) == (None, None)
    assert "streamcore.key" not in dict(second.headers())


def test_a_reason_that_is_no_text_does_not_stop_a_dead_letter(kafka, kafka_topic, records):
    topic = kafka_topic()
    sender(kafka, topic)([BadRecord("there", "found '\udcff'", None, b"\xff", PLACE)])
    [letter] = records(topic)
    assert dict(letter.headers())["streamcore.reason"] == b"found '\\udcff'"


def test_a_dead_letter_that_cannot_be_sent_is_not_dropped(kafka, kafka_topic):
    told = (
        "dead letters cannot be written to topic 'gone': Kafka .* does not know the topic: 'gone'"
    )
    with pytest.raises(ConnectionFailed, match=told):
        sender(kafka, "gone")([BadRecord("there", "why", None, b"x", PLACE)])
    topic = kafka_topic(config={"max.message.bytes": "1000"})
    raised = "; raise 'max.message.bytes' of the topic, or lower 'properties.batch.size'."
    with pytest.raises(ConnectionFailed, match=f"topic '{topic}': .* too large{raised}$"):
        sender(kafka, topic)([BadRecord("there", "why", None, b"x" * 5000, PLACE)])
    large = BadRecord("there", "why", None, b"x" * 2_000_000, PLACE)
    with pytest.raises(RecordError, match="a message of 2000000 bytes is too large; raise"):
        sender(kafka, topic)([large])


@scenario(28, small={"letters": 100}, full={"letters": 1_000})
def test_one_letter_among_many_that_cannot_be_sent_is_told_and_sent_again_with_all(
    kafka, kafka_topic, records, scale
):
    dice = random.Random(scale.seed)
    small, roomy = kafka_topic(config={"max.message.bytes": "10000"}), kafka_topic()
    letters = [
        BadRecord("there", "why", None, f"{n}".encode().ljust(dice.randrange(10, 200)), PLACE)
        for n in range(scale.letters)
    ]
    letters.insert(
        dice.randrange(scale.letters),
        BadRecord("there", "why", None, dice.randbytes(20_000), PLACE),
    )
    with pytest.raises(ConnectionFailed, match=f"topic '{small}': .*[Mm]essage size too large"):
        sender(kafka, small)(letters)
    sender(kafka, roomy)(letters)
    assert [message.value() for message in records(roomy)] == [each.value for each in letters]
