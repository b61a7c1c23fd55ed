"""Every way to start and to end, on a real broker."""

from __future__ import annotations

import logging
import time

import pytest
from streamcore import DataLossError, StreamcoreError

START = "scan.startup.mode"
END = "scan.bounded.mode"


def specific(side, text):
    return {f"scan.{side}.mode": "specific-offsets", f"scan.{side}.specific-offsets": text}


def at(side, millis):
    return {f"scan.{side}.mode": "timestamp", f"scan.{side}.timestamp-millis": str(millis)}


# --- starting --------------------------------------------------------------------------


def test_earliest_reads_all_and_latest_only_what_comes_later(
    drive, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic(partitions=2)
    produce(topic, people(3), 1)
    everything, news = drive(topic), drive(topic, {START: "latest-offset"})
    assert everything.batch() == rows_of(3)
    assert news.batch() == []
    produce(topic, people(2, 3), 0)
    assert everything.batch() == news.batch() == rows_of(2, 3)


def test_a_group_says_where_to_start(drive, produce, kafka_topic, people, rows_of, group):
    topic = kafka_topic(partitions=2)
    produce(topic, people(4), 0)
    produce(topic, people(4, 4), 1)
    name = group(topic, {0: 3, 1: 1})
    query = drive(topic, {START: None, "properties.group.id": name})
    assert sorted(query.batch()) == [(3, "n3"), *rows_of(3, 5)]


def test_a_group_without_commits_fails_unless_told_where_to_go(
    drive, produce, kafka_topic, people, rows_of, group
):
    topic = kafka_topic(partitions=2)
    produce(topic, people(2), 0)
    produce(topic, people(2, 2), 1)
    given = {START: "group-offsets", "properties.group.id": group(topic, {0: 1})}
    with pytest.raises(StreamcoreError) as caught:
        drive(topic, given)
    assert str(caught.value) == (
        f"topic '{topic}' partition 1: group 'group-of-{topic}' has committed no offset to start "
        "at; set 'properties.auto.offset.reset' to 'earliest' or 'latest', or choose another "
        "'scan.startup.mode'."
    )
    reset = "properties.auto.offset.reset"
    assert sorted(drive(topic, {**given, reset: "EARLIEST"}).batch()) == rows_of(3, 1)
    assert drive(topic, {**given, reset: "latest"}).batch() == rows_of(1, 1)


def test_a_group_whose_offset_is_gone_follows_the_reset_policy(
    drive, produce, kafka_topic, people, rows_of, group, forget
):
    topic = kafka_topic()
    produce(topic, people(5))
    given = {START: "group-offsets", "properties.group.id": group(topic, {0: 1})}
    forget(topic, 0, 3)
    with pytest.raises(DataLossError, match="stands at offset 1, but the log has 3 to 5; set"):
        drive(topic, given)
    query = drive(topic, {**given, "properties.auto.offset.reset": "earliest"})
    assert query.batch() == rows_of(2, 3)


def test_a_timestamp_starts_at_the_first_record_not_older(
    drive, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic(partitions=3)
    for offset, millis in enumerate((1000, 2000, 3000)):
        produce(topic, people(1, offset), 0, timestamp=millis)
    produce(topic, people(1, 9), 1, timestamp=1500)
    assert drive(topic, at("startup", 2000)).batch() == rows_of(2, 1)
    late = drive(topic, at("startup", 10_000))
    assert late.batch() == []
    produce(topic, people(1, 20), 2, timestamp=1)
    assert late.batch() == rows_of(1, 20)


def test_specific_offsets_with_everything_they_can_say(drive, produce, kafka_topic, people, group):
    topic = kafka_topic(partitions=5)
    for partition in range(5):
        produce(topic, people(3, partition * 10), partition)
    name = group(topic, {2: 1, 3: 2})
    text = "partition:0,offset:2;partition:1,offset:-2;partition:2,offset:-3;partition:77,offset:1"
    given = {**specific("startup", text), "properties.group.id": name}
    read = sorted(row[0] for row in drive(topic, given).batch())
    assert read == [2, 10, 11, 12, 21, 22, 32, 40, 41, 42]
    newest = drive(topic, specific("startup", "partition:0,offset:-1"))
    assert sorted(row[0] for row in newest.batch())[:1] == [10]


def test_an_offset_that_aged_out_starts_at_the_first_there_is_and_says_so(
    drive, produce, kafka_topic, people, rows_of, forget, caplog
):
    topic = kafka_topic()
    produce(topic, people(5))
    forget(topic, 0, 3)
    with caplog.at_level(logging.WARNING):
        query = drive(topic, specific("startup", "partition:0,offset:1"))
    assert f"topic '{topic}' partition 0: offset 1 is gone, reading starts at 3" in caplog.text
    assert query.batch() == rows_of(2, 3)


@pytest.mark.parametrize("side", ["startup", "bounded"])
def test_a_listed_partition_that_no_topic_has_is_told(drive, kafka_topic, caplog, side):
    given = specific(side, "partition:0,offset:0;partition:9,offset:4;partition:7,offset:1")
    with caplog.at_level(logging.WARNING):
        drive(kafka_topic(), given)
    assert f"'scan.{side}.specific-offsets' lists what no topic has: partition 7, 9" in caplog.text


def test_an_offset_past_the_end_is_an_error_or_starts_over(
    drive, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic()
    produce(topic, people(2))
    given = specific("startup", "partition:0,offset:100")
    with pytest.raises(DataLossError) as caught:
        drive(topic, given)
    assert str(caught.value) == (
        f"topic '{topic}' partition 0: 'scan.startup.specific-offsets' starts at 100, but the log "
        "ends at 2. Set 'scan.fail-on-data-loss' to 'false' to start at 0."
    )
    assert drive(topic, {**given, "scan.fail-on-data-loss": "false"}).batch() == rows_of(2)


# --- ending ----------------------------------------------------------------------------


def test_a_batch_without_an_end_reads_up_to_the_latest_offset(
    scan, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic(partitions=2)
    assert scan(topic) == []
    produce(topic, people(2), 1)
    assert scan(topic) == scan(topic, {END: "latest-offset"}) == rows_of(2)


def test_specific_ends_are_exclusive_and_unlisted_partitions_are_empty(
    scan, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic(partitions=2)
    produce(topic, people(4), 0)
    produce(topic, people(4, 4), 1)
    assert scan(topic, specific("bounded", "partition:0,offset:2")) == rows_of(2)


def test_an_unlisted_partition_ends_at_its_groups_offset(scan, produce, kafka_topic, people, group):
    topic = kafka_topic(partitions=3)
    for partition in range(3):
        produce(topic, people(4, partition * 10), partition)
    text = "partition:0,offset:-1;partition:1,offset:-3"
    given = {**specific("bounded", text), "properties.group.id": group(topic, {1: 1, 2: 2})}
    assert sorted(row[0] for row in scan(topic, given)) == [0, 1, 2, 3, 10, 20, 21]


def test_a_timestamp_ends_before_the_first_record_not_older(
    scan, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic()
    for offset, millis in enumerate((1, 3, 7)):
        produce(topic, people(1, offset), timestamp=millis)
    assert scan(topic, at("bounded", 5)) == rows_of(2)
    assert scan(topic, at("bounded", 50)) == rows_of(3)


def test_a_group_says_where_to_end_and_must_know(
    scan, produce, kafka_topic, people, rows_of, group
):
    topic = kafka_topic(partitions=2)
    produce(topic, people(4), 0)
    produce(topic, people(4, 4), 1)
    given = {END: "group-offsets", "properties.group.id": group(topic, {0: 2})}
    with pytest.raises(StreamcoreError, match="has committed no offset to end at; commit one, or"):
        scan(topic, given)
    group(topic, {0: 2, 1: 0})
    assert scan(topic, given) == rows_of(2)


def test_a_start_behind_the_end_is_empty(scan, produce, kafka_topic, people):
    topic = kafka_topic()
    produce(topic, people(4))
    both = {
        **specific("startup", "partition:0,offset:3"),
        **specific("bounded", "partition:0,offset:3"),
    }
    assert scan(topic, both) == []
    beyond = {
        **specific("startup", "partition:0,offset:30"),
        **specific("bounded", "partition:0,offset:20"),
    }
    assert scan(topic, beyond) == []


def test_deleted_records_between_start_and_end_leave_an_empty_table(
    scan, produce, kafka_topic, people, forget
):
    topic = kafka_topic()
    produce(topic, people(5))
    forget(topic, 0, 3)
    both = {
        **specific("startup", "partition:0,offset:1"),
        **specific("bounded", "partition:0,offset:3"),
    }
    assert scan(topic, both) == []


def test_a_bounded_stream_stops_advancing_and_keeps_its_end_over_a_restart(
    drive, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic()
    produce(topic, people(3))
    query = drive(topic, {END: "latest-offset", "scan.max-rows-per-batch": "2"})
    assert query.batch() == rows_of(2)
    produce(topic, people(3, 3))
    again = drive(topic, {END: "latest-offset"}, start=query.at)
    assert again.batch() == rows_of(1, 2)
    assert again.batch() == []
    assert again.at["offsets"] == again.at["until"] == {topic: {"0": 3}}


def test_an_end_past_the_log_is_reached_as_records_come(
    drive, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic()
    produce(topic, people(2))
    query = drive(topic, specific("bounded", "partition:0,offset:3"))
    assert query.batch() == rows_of(2)
    produce(topic, people(5, 2))
    time.sleep(0.1)
    assert query.batch() == rows_of(1, 2)
    assert query.batch() == []


# --- after a restart -------------------------------------------------------------------------


def test_a_partition_silent_before_a_restart_loses_nothing_after_it(
    drive, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic(partitions=2)
    produce(topic, people(1), 1)
    latest = {START: "latest-offset"}
    query = drive(topic, latest)
    produce(topic, people(1, 1), 0)
    assert query.batch() == rows_of(1, 1)
    produce(topic, people(2, 2), 1)  # while the query is down
    assert drive(topic, latest, start=query.at).batch() == rows_of(2, 2)


def test_a_checkpoint_wins_over_the_options(drive, produce, kafka_topic, people, rows_of):
    topic = kafka_topic()
    produce(topic, people(3))
    query = drive(topic)
    query.batch()
    produce(topic, people(1, 3))
    elsewhere = drive(topic, specific("startup", "partition:0,offset:1"), start=query.at)
    assert elsewhere.batch() == rows_of(1, 3)
