"""Topics and partitions that come, go, and come back."""

from __future__ import annotations

import logging
import time

import pytest
from confluent_kafka.admin import NewPartitions
from streamcore import ConnectionFailed, DataLossError
from streamcore_kafka import tracking
from streamcore_kafka.discovery import Cluster

ALWAYS = {"scan.topic-partition-discovery.interval": "1 ms"}
NEVER = {"scan.topic-partition-discovery.interval": "0"}
TOLERANT = {"scan.fail-on-data-loss": "false"}


@pytest.fixture
def grow(kafka):
    """Gives a topic more partitions, and waits until they are there: `grow(topic, total)`."""

    def add(topic, total):
        admin = kafka.admin()
        admin.create_partitions([NewPartitions(topic, total)])[topic].result()
        _wait(lambda: len(admin.list_topics(topic).topics[topic].partitions) == total)

    return add


@pytest.fixture
def delete(kafka):
    def gone(topic):
        kafka.delete_topic(topic)
        admin = kafka.admin()
        _wait(lambda: topic not in admin.list_topics().topics)

    return gone


def _wait(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_list_of_topics_is_read_as_one_table_even_with_duplicates(
    scan, produce, kafka_topic, people, rows_of
):
    topics = [kafka_topic() for _ in range(4)]
    for at, topic in enumerate(topics):
        produce(topic, people(2, at * 2))
    assert sorted(scan("; ".join([*topics, topics[0]]))) == rows_of(8)


def test_a_pattern_reads_every_topic_whose_whole_name_matches(
    scan, produce, kafka, kafka_topic, people, rows_of
):
    topic = kafka_topic()
    other, longer = kafka.create_topic(f"{topic}.b"), kafka.create_topic(f"{topic}.bc")
    produce(topic, people(1))
    produce(other, people(1, 1))
    produce(longer, people(1, 2))
    assert scan(None, {"topic-pattern": rf"\Q{topic}\E"}) == rows_of(1)
    assert sorted(scan(None, {"topic-pattern": rf"{topic}(\.b)?"})) == rows_of(2)
    assert sorted(scan(None, {"topic-pattern": f"{topic}.*"})) == rows_of(3)


def test_a_pattern_never_reads_internal_topics_and_may_match_nothing(
    table, scan, group, kafka_topic
):
    group(kafka_topic(), {0: 0})  # makes the broker create its own topic of offsets

    assert "__consumer_offsets" not in Cluster(table(None, {"topic-pattern": ".*"})).topics()
    assert scan(None, {"topic-pattern": "no-such-topic-[0-9]"}) == []


def test_a_listed_topic_must_exist(scan, kafka):
    with pytest.raises(ConnectionFailed) as caught:
        scan("no-such-topic")
    assert str(caught.value) == (
        f"topic 'no-such-topic' does not exist at {kafka.bootstrap_servers}; "
        "create it or correct 'topic'."
    )
    assert "no-such-topic" not in kafka.admin().list_topics().topics


def test_partitions_that_come_later_are_read_from_their_first_record(
    drive, produce, kafka_topic, people, rows_of, grow
):
    topic = kafka_topic()
    query = drive(topic, {**ALWAYS, "scan.startup.mode": "latest-offset"})
    produce(topic, people(1))
    assert query.batch() == rows_of(1)
    grow(topic, 3)
    produce(topic, people(2, 1), 2)
    assert query.batch() == rows_of(2, 1)
    assert query.at["offsets"][topic] == {"0": 1, "2": 2}
    assert query.batch() == []


def test_partitions_created_while_the_query_was_down_are_read_from_their_first_record(
    drive, produce, kafka_topic, people, rows_of, grow
):
    topic = kafka_topic()
    latest = {"scan.startup.mode": "latest-offset"}
    query = drive(topic, latest)
    assert query.batch() == []
    grow(topic, 2)
    produce(topic, people(2), 1)
    assert drive(topic, latest, start=query.at).batch() == rows_of(2)


def test_topics_that_come_later_are_read_from_their_first_record(
    drive, produce, kafka, kafka_topic, people, rows_of
):
    topic = kafka_topic()
    query = drive(
        None, {**ALWAYS, "topic-pattern": f"{topic}.*", "scan.startup.mode": "latest-offset"}
    )
    assert query.batch() == []
    produce(kafka.create_topic(f"{topic}-2"), people(2))
    assert query.batch() == rows_of(2)


def test_without_an_interval_partitions_are_found_when_a_query_starts(
    drive, produce, kafka_topic, people, rows_of, grow
):
    topic = kafka_topic()
    query = drive(topic, NEVER)
    assert query.batch() == []
    grow(topic, 2)
    produce(topic, people(1), 1)
    assert query.batch() == []
    assert drive(topic, NEVER, start=query.at).batch() == rows_of(1)


def test_a_batch_that_found_a_new_partition_can_be_repeated(
    drive, produce, kafka_topic, people, rows_of, grow
):
    topic = kafka_topic()
    query = drive(topic, ALWAYS)
    query.batch()
    start = query.at
    grow(topic, 2)
    produce(topic, people(3), 1)
    assert query.batch() == rows_of(3)
    produce(topic, people(3, 3), 1)
    assert drive(topic, start=start).replay(start, query.at) == rows_of(3)


# --- what goes -------------------------------------------------------------------------------


@pytest.mark.parametrize("listed", [True, False])
def test_a_deleted_topic_fails_the_query(drive, produce, kafka_topic, people, delete, listed):
    topic = kafka_topic()
    produce(topic, people(2))
    query = drive(topic) if listed else drive(None, {"topic-pattern": f"{topic}.*"})
    query.batch()
    delete(topic)
    with pytest.raises(DataLossError) as caught:
        query.batch()
    assert str(caught.value) == (
        f"topic '{topic}' partition 0 was read up to offset 2 and was deleted. "
        "Set 'scan.fail-on-data-loss' to 'false' to go on with what is left."
    )


@pytest.mark.parametrize("listed", [True, False])
def test_a_deleted_topic_is_reported_and_the_others_go_on_when_that_is_tolerated(
    drive, produce, kafka, kafka_topic, people, rows_of, delete, caplog, listed
):
    topic = kafka_topic()
    other = kafka.create_topic(f"{topic}-other")
    produce(topic, people(2))
    more = {} if listed else {"topic-pattern": f"{topic}.*"}
    query = drive(f"{topic};{other}" if listed else None, {**more, **TOLERANT})
    assert query.batch() == rows_of(2)
    delete(topic)
    produce(other, people(2, 2))
    with caplog.at_level(logging.WARNING):
        assert query.batch() == rows_of(2, 2)
    assert f"topic '{topic}' partition 0 was read up to offset 2 and was deleted" in caplog.text
    assert list(query.at["offsets"]) == [other]


def test_a_topic_created_again_is_noticed_even_when_it_is_longer_than_before(
    drive, produce, kafka, kafka_topic, people, rows_of, delete
):
    topic = kafka_topic()
    produce(topic, people(2))
    query = drive(topic)
    query.batch()
    delete(topic)
    kafka.create_topic(topic)
    produce(topic, people(5, 10))
    with pytest.raises(DataLossError, match="was deleted and created again"):
        drive(topic, start=query.at).batch()
    assert drive(topic, TOLERANT, start=query.at).batch() == rows_of(5, 10)


def test_a_batch_planned_before_its_topic_was_created_again_is_not_read_from_the_new_one(
    drive, produce, kafka, kafka_topic, people, delete, caplog
):
    topic = kafka_topic()
    produce(topic, people(2))
    query = drive(topic)
    start = query.at
    query.batch()
    delete(topic)
    kafka.create_topic(topic)
    produce(topic, people(5, 10))
    with pytest.raises(DataLossError, match="was deleted and created again"):
        drive(topic, start=start).replay(start, query.at)
    assert drive(topic, TOLERANT, start=start).replay(start, query.at) == []
    assert "was deleted and created again; going on with what is left" in caplog.text


def test_a_topic_created_again_between_discoveries_is_read_from_its_first_record(
    drive, produce, kafka, kafka_topic, people, rows_of, delete, monkeypatch
):
    monkeypatch.setattr(tracking, "_SECOND_LOOK", 0.1)
    topic = kafka_topic()
    produce(topic, people(5))
    query = drive(topic, {**NEVER, **TOLERANT})
    query.batch()
    delete(topic)
    kafka.create_topic(topic)
    produce(topic, people(2, 10))
    assert query.until(2) == rows_of(2, 10)


def test_a_topic_created_again_is_never_read_from_the_middle(
    drive, produce, kafka, kafka_topic, people, rows_of, delete, monkeypatch
):
    """Beyond the offsets of the old one, nothing but its id tells them apart."""
    monkeypatch.setattr(tracking, "_SAME_FOR", 0)
    topic = kafka_topic()
    produce(topic, people(2))
    strict, tolerant = drive(topic, NEVER), drive(topic, {**NEVER, **TOLERANT})
    strict.batch(), tolerant.batch()
    delete(topic)
    kafka.create_topic(topic)
    produce(topic, people(5, 10))
    with pytest.raises(DataLossError, match="was deleted and created again"):
        strict.batch()
    assert tolerant.batch() == rows_of(5, 10)
    assert tolerant.batch() == []


def test_an_id_is_not_asked_for_with_every_batch_and_noticed_when_it_is(
    drive, produce, kafka, kafka_topic, people, delete, monkeypatch
):
    topic = kafka_topic()
    produce(topic, people(2))
    query = drive(topic, NEVER)
    asked = []
    ids = Cluster.ids
    monkeypatch.setattr(Cluster, "ids", lambda *given: asked.append(given) or ids(*given))
    monkeypatch.setattr(tracking, "_SAME_FOR", 3600)
    for _ in range(3):
        query.batch()
        produce(topic, people(1))
    delete(topic)
    kafka.create_topic(topic)
    produce(topic, people(9, 10))
    query.batch()
    assert not asked
    monkeypatch.setattr(tracking, "_SAME_FOR", 0)
    produce(topic, people(1, 20))
    with pytest.raises(DataLossError, match="was deleted and created again"):
        query.batch()
    assert len(asked) == 1


def test_a_topic_created_again_that_ends_at_the_same_offset_is_read_whole(
    drive, produce, kafka, kafka_topic, people, rows_of, delete, caplog
):
    topic = kafka_topic()
    produce(topic, people(3))
    query = drive(topic, {**ALWAYS, **TOLERANT})
    query.batch()
    delete(topic)
    kafka.create_topic(topic)
    produce(topic, people(3, 10))
    assert query.batch() == rows_of(3, 10)
    assert query.batch() == []
    assert caplog.text.count("was deleted and created again") == 1


def test_a_log_that_ends_before_where_we_are_fails_or_goes_on_from_its_end(
    drive, produce, kafka_topic, people, rows_of, monkeypatch
):
    monkeypatch.setattr(tracking, "_SECOND_LOOK", 0.1)
    topic = kafka_topic()
    produce(topic, people(2))
    query = drive(topic)
    query.batch()
    ahead = {**query.at, "offsets": {topic: {"0": 7}}}
    with pytest.raises(DataLossError, match="was read up to offset 7 and ends at offset 2 now"):
        drive(topic, start=ahead).batch()
    tolerant = drive(topic, TOLERANT, start=ahead)
    assert tolerant.batch() == []
    produce(topic, people(1, 2))
    assert tolerant.batch() == rows_of(1, 2)


def test_only_some_partitions_can_be_read_and_lanes_cover_them_all(
    scan, table, options, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic(partitions=3)
    for partition in range(3):
        produce(topic, people(1, partition), partition)
    assert sorted(scan(topic, {"scan.partitions": "0;2"})) == [(0, "n0"), (2, "n2")]
    given = {"topic-pattern": topic, "scan.watermark.per-partition": "true"}
    lanes = table(None, given).lanes(options(None, given))
    assert [lane["scan.partitions"] for lane in lanes] == ["0/3", "1/3", "2/3"]
    found = [scan(None, lane) for lane in lanes]
    assert found == [rows_of(1), rows_of(1, 1), rows_of(1, 2)]
    assert table(topic).lanes({"topic": topic}) == ({"topic": topic},)
    some = {**given, "scan.partitions": "0;2", "scan.max-bytes-per-batch": "1 kb"}
    apart = table(None, some).lanes(options(None, some))
    told = [(lane["scan.partitions"], lane["scan.max-bytes-per-batch"]) for lane in apart]
    assert told == [("0", "512"), ("2", "512")]
    two = {"scan.watermark.per-partition": "true", "scan.watermark.lanes": "2"}
    shared = table(topic, two).lanes(options(topic, two))
    assert [sorted(scan(None, lane)) for lane in shared] == [
        [*rows_of(1), *rows_of(1, 2)],
        rows_of(1, 1),
    ]
