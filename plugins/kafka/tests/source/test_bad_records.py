"""What becomes of records that cannot be decoded."""

from __future__ import annotations

import dataclasses
import json
import time

import pytest
from streamcore import Column, RecordError, Table
from streamcore.reports import Collector
from streamcore_kafka.source import KafkaReader

BAD = b"{no json"
HANDLER, TOPIC = "scan.deser.failure-handler", "scan.deser.failure-topic"


def test_a_bad_record_fails_the_task_and_is_named(scan, produce, kafka_topic, people):
    topic = kafka_topic(partitions=2)
    produce(topic, [*people(2), BAD, BAD], 1)
    with pytest.raises(RecordError) as caught:
        scan(topic)
    assert str(caught.value).startswith(f"topic '{topic}' partition 1 offset 2: ")
    assert str(caught.value).endswith(
        "(1 more in this batch). Set 'scan.deser.failure-handler' to 'skip' or 'dead-letter' "
        "to go on without it."
    )


def test_bad_records_can_be_skipped_and_are_counted(table, produce, kafka_topic, people, rows_of):
    topic = kafka_topic()
    good = [json.dumps(person).encode() for person in people(3)]
    values = [BAD, *good[:2], BAD, good[2]]
    produce(topic, values)
    columns = (Column("id", "BIGINT"), Column("name", "STRING"))
    collector = Collector()
    try:
        told = dataclasses.replace(Table(columns, "orders"), reports=collector.address)
        reader = KafkaReader(table(topic, {HANDLER: "skip"}), told)
        (task,) = reader.partitions()
        rows = [tuple(row.values()) for batch in reader.read(task) for row in batch.to_pylist()]
        assert rows == rows_of(3)
        for _ in range(100):
            if counts := collector.totals("orders", "source"):
                break
            time.sleep(0.05)
        assert counts == {
            "records": 5,
            "bytes": sum(len(value) for value in values),
            "rows": 3,
            "ignored": 0,
            "skipped": 2,
            "dead-lettered": 0,
            "lost": 0,
            "retries": 0,
        }
    finally:
        collector.close()


def test_bad_records_go_to_their_topic_with_where_they_were_and_why(
    scan, produce, kafka_topic, records, people, rows_of
):
    topic, letters = kafka_topic(), kafka_topic()
    produce(topic, people(1))
    produce(topic, [BAD], key=b"k", headers=[("mine", b"1")])
    produce(topic, people(1, 1))
    assert scan(topic, {HANDLER: "dead-letter", TOPIC: letters}) == rows_of(2)
    (letter,) = records(letters)
    assert (letter.key(), letter.value()) == (b"k", BAD)
    said = " ".join(f"{key}={value.decode()}" for key, value in letter.headers())
    assert "mine=1" in said
    assert f"={topic} " in said
    assert "offset=1" in said


def test_a_key_that_cannot_be_decoded_costs_the_record(scan, produce, kafka_topic, people):
    topic = kafka_topic()
    given = {"key.format": "json", "key.fields": "id", "value.fields-include": "EXCEPT_KEY"}
    produce(topic, [{"name": "x"}], key=BAD)
    with pytest.raises(RecordError, match="offset 0: key: "):
        scan(topic, given)
    assert scan(topic, {**given, HANDLER: "skip"}) == []


def test_a_format_may_ignore_what_it_cannot_parse(scan, produce, kafka_topic, people, rows_of):
    topic = kafka_topic()
    produce(topic, [*people(1), BAD])
    assert scan(topic, {"json.ignore-parse-errors": "true"}) == rows_of(1)
