"""Offsets committed for lag tools: after each batch, the last one too, and never in the way."""

from __future__ import annotations

import logging
import time

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from streamcore.spark.finished import tell
from streamcore_kafka import client
from streamcore_kafka.group import GroupOffsets
from streamcore_kafka.progress import Partition, Progress


def settled(query):
    query.reader._driver.group.settle(10)


def test_a_batch_is_committed_when_the_next_one_is_asked_for(
    drive, produce, kafka_topic, people, committed
):
    topic = kafka_topic(partitions=2)
    produce(topic, people(3), 0)
    query = drive(topic, {"properties.group.id": topic})
    query.batch()
    assert committed(topic, topic) == {}  # it may still fail
    query.batch()
    assert committed(topic, topic) == {0: 3, 1: 0}
    produce(topic, people(2), 1)
    query.batch()
    query.reader.commit(query.at)
    settled(query)
    assert committed(topic, topic) == {0: 3, 1: 2}
    told = query.reader.reportLatestOffset()["group"]
    assert (told["commits"], told["failed-commits"], told["id"]) == (2, 0, topic)


def test_a_batch_is_committed_as_soon_as_the_session_tells_of_it(
    drive, produce, kafka_topic, people, committed
):
    topic = kafka_topic()
    produce(topic, people(3))
    query = drive(topic, {"properties.group.id": topic})
    query.batch()
    latest = query.reader.reportLatestOffset()
    other = {"offsets": {topic: {"0": 2}}}
    tell({"sources": [{"endOffset": other, "latestOffset": latest}]})
    forged = {**latest, "group": {"tell": latest["group"]["tell"].split("/")[0] + "/forged"}}
    tell({"sources": [{"endOffset": query.at, "latestOffset": forged}]})
    time.sleep(0.5)
    assert committed(topic, topic) == {}
    tell({"sources": [{"endOffset": query.at, "latestOffset": latest}]})
    deadline = time.monotonic() + 30
    while committed(topic, topic) != {0: 3}:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_group_goes_on_where_its_last_query_stopped(drive, produce, kafka_topic, people, rows_of):
    topic = kafka_topic()
    produce(topic, people(3))
    first = drive(topic, {"properties.group.id": topic})
    first.batch()
    first.batch()
    produce(topic, people(2, 3))
    again = drive(topic, {"properties.group.id": topic, "scan.startup.mode": "group-offsets"})
    assert again.batch() == rows_of(2, 3)


@pytest.mark.parametrize(
    "given", [{}, {"properties.group.id": "g", "properties.commit.offsets.on.checkpoint": "false"}]
)
def test_nothing_is_committed_without_a_group_or_when_told_not_to(table, given, kafka_topic):
    offsets = GroupOffsets(table(kafka_topic(), given), cluster=None)
    offsets.commit(Progress({Partition("t", 0): 1}))
    assert offsets.report() == {}


class Refusing:
    """A cluster that takes no commits."""

    def __init__(self):
        self.asked, self.told = [], []

    def commit(self, positions):
        self.asked.append(positions)
        if len(self.asked) == 1:
            raise RuntimeError("not today")
        self.told.append(KafkaError(KafkaError.REBALANCE_IN_PROGRESS))

    def poll(self, seconds):
        for error in self.told:
            self.on_commit(error, [])
        self.told = []


class Mute(Refusing):
    """A cluster that takes commits and never says what became of them."""

    def commit(self, positions):
        self.asked.append(positions)


def test_a_commit_that_is_never_answered_is_waited_for_once(table, kafka_topic, caplog):
    offsets = GroupOffsets(table(kafka_topic(), {"properties.group.id": "g"}), Mute())
    offsets.commit(Progress({Partition("t", 0): 1}))
    offsets.settle(0)
    assert offsets.failed == 0
    offsets.settle(0.1)
    began = time.monotonic()
    offsets.settle(60)
    assert time.monotonic() - began < 5
    assert "offsets of group 'g' were not committed: no answer in 0.1 s" in caplog.text


def test_failed_commits_warn_and_count_and_are_made_up_for_by_the_next(table, kafka_topic, caplog):
    topic = kafka_topic()
    cluster = Refusing()
    offsets = GroupOffsets(table(topic, {"properties.group.id": "g"}), cluster)
    with caplog.at_level(logging.WARNING):
        for at in (1, 1, 2):
            offsets.commit(Progress({Partition(topic, 0): at}))
            offsets.settle(1)
    assert offsets.report() == {"commits": 0, "failed-commits": 2, "id": "g"}
    assert cluster.asked == [{Partition(topic, 0): 1}, {Partition(topic, 0): 2}]
    assert "offsets of group 'g' were not committed: not today" in caplog.text
    assert "offsets of group 'g' were not committed: Broker: Group rebalance" in caplog.text


def test_a_group_with_members_of_its_own_refuses_our_commits_and_the_query_goes_on(
    drive, produce, kafka, kafka_topic, people, rows_of, caplog
):
    topic = kafka_topic()
    produce(topic, people(1))
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": topic}
    member = Consumer({**settings, "enable.auto.commit": False})
    try:
        member.subscribe([topic])
        deadline = time.monotonic() + 20
        while not member.assignment() and time.monotonic() < deadline:
            member.poll(0.1)
        assert member.assignment()
        query = drive(topic, {"properties.group.id": topic})
        assert query.batch() == rows_of(1)
        with caplog.at_level(logging.WARNING):
            assert query.batch() == []
        assert query.reader.reportLatestOffset()["group"]["failed-commits"] == 1
        assert f"offsets of group '{topic}' were not committed" in caplog.text
    finally:
        member.close()


def test_lag_shows_in_kafkas_own_tool(drive, produce, kafka, kafka_topic, people):
    topic = kafka_topic()
    produce(topic, people(3))
    query = drive(topic, {"properties.group.id": topic})
    query.batch()
    query.batch()
    produce(topic, people(4))
    told = kafka.tool(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        *("--describe", "--group", topic),
    )
    (line,) = [line.split() for line in told.splitlines() if line.startswith(topic)]
    assert line[:6] == [topic, topic, "0", "3", "7", "4"]  # group topic partition current end lag


def test_auto_commit_changes_nothing_because_batches_are_committed_anyway(
    drive, produce, kafka_topic, people, rows_of, committed
):
    topic = kafka_topic()
    produce(topic, people(2))
    given = {"properties.group.id": topic, "properties.enable.auto.commit": "true"}
    reset = {"scan.startup.mode": None, "properties.auto.offset.reset": "earliest"}
    query = drive(topic, {**given, **reset})
    assert query.batch() == rows_of(2)
    assert query.batch() == []
    assert committed(topic, topic) == {0: 2}


def test_what_a_client_for_offsets_has_to_say_is_heard_and_does_not_pile_up(
    kafka, kafka_topic, caplog
):
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "debug": "protocol"}
    place = TopicPartition(kafka_topic(), 0)
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "streamcore.kafka"):
            client.committed(settings, "talkative", [place])
        assert any("OffsetFetch" in line for line in caplog.messages)
        client._of_group.cache_clear()
