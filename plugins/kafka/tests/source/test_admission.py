"""How much a batch takes: by rows, by bytes, and no more than was there."""

from __future__ import annotations

import os
import time

from confluent_kafka import Producer
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from streamcore import Column, Table
from streamcore_kafka.progress import Range
from streamcore_kafka.source import KafkaReader


def test_rows_per_batch_are_limited_and_shared_by_what_waits(
    drive, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic(partitions=2)
    produce(topic, people(90), 0)
    produce(topic, people(10, 90), 1)
    query = drive(topic, {"scan.max-rows-per-batch": "50"})
    assert isinstance(query.reader.getDefaultReadLimit(), ReadMaxRows)
    assert sorted(query.batch()) == [*rows_of(45), *rows_of(5, 90)]
    assert len(query.batch()) == 50
    assert query.batch() == []


def test_bytes_per_batch_are_limited_by_the_size_of_recent_records(drive, produce, kafka_topic):
    topic = kafka_topic()
    produce(topic, [{"id": at, "name": "x" * 1000} for at in range(100)])
    query = drive(topic, {"scan.max-bytes-per-batch": "10 kb"})
    assert isinstance(query.reader.getDefaultReadLimit(), ReadMaxBytes)
    assert [len(query.batch()) for _ in range(3)] == [10, 10, 10]
    both = drive(topic, {"scan.max-bytes-per-batch": "10 kb", "scan.max-rows-per-batch": "3"})
    assert [len(both.batch()) for _ in range(2)] == [3, 3]
    large = drive(topic, {"scan.max-bytes-per-batch": "100"})
    assert [len(large.batch()) for _ in range(2)] == [1, 1]  # never stuck on a large record


def test_bytes_per_batch_are_limited_behind_records_that_nobody_sees(
    drive, produce, kafka, kafka_topic
):
    topic = kafka_topic(partitions=2)
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic}
    aborting = Producer(settings)
    aborting.init_transactions(20)
    for partition, count in ((0, 150), (1, 400)):
        aborting.begin_transaction()
        for _ in range(count):
            aborting.produce(topic, b"{}", partition=partition)
        aborting.abort_transaction(20)
    large = [{"id": at, "name": "x" * 1000} for at in range(40)]
    produce(topic, large)
    query = drive(
        topic, {"scan.max-bytes-per-batch": "10 kb", "properties.isolation.level": "read_committed"}
    )
    sizes, deadline = [], time.monotonic() + 60
    while sum(sizes) < 40 and time.monotonic() < deadline:
        before = query.at
        sizes.append(len(query.batch()))
        moved = [
            offset - int(before["offsets"][topic][number])
            for number, offset in query.at["offsets"][topic].items()
        ]
        assert sum(moved) <= 10
    assert (sum(sizes), max(sizes)) == (40, 10)


def test_spark_may_ask_for_everything_all_the_same(drive, produce, kafka_topic, people):
    topic = kafka_topic()
    produce(topic, people(20))
    query = drive(topic, {"scan.max-rows-per-batch": "5"})
    assert len(query.batch(ReadAllAvailable())) == 20


def test_available_now_reads_what_was_there_at_its_start(
    drive, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic(partitions=2)
    produce(topic, people(5))
    query = drive(topic, {"scan.max-rows-per-batch": "3"})
    query.reader.prepareForTriggerAvailableNow()
    produce(topic, people(5, 5))
    produce(topic, people(5, 10), 1)
    assert [query.batch(), query.batch(), query.batch()] == [rows_of(3), rows_of(2, 3), []]
    reported = query.reader.reportLatestOffset()
    assert reported["offsets"][topic] == {"0": 10, "1": 5}  # the lag is seen all the same


def test_tasks_are_few_for_little_data_and_as_many_as_asked_for_much(
    drive, table, produce, kafka_topic, people
):
    topic = kafka_topic(partitions=2)
    produce(topic, people(30_000), 0)
    produce(topic, people(30_000), 1)
    query = drive(topic, {"scan.parallelism": "3", "scan.max-rows-per-batch": "60000"})
    start = query.at
    rows = query.batch()
    tasks = query.reader.partitions(start, query.at)
    assert (len(tasks), len(rows)) == (3, 60_000)
    assert sorted(row[0] for row in rows) == sorted([*range(30_000)] * 2)
    small = drive(topic, {"scan.parallelism": "3", "scan.max-rows-per-batch": "50"})
    start = small.at
    small.batch()
    assert len(small.reader.partitions(start, small.at)) == 1
    assert (query.at["tasks"], query.at["split"]) == (3, True)


def test_partitions_keep_their_order_unless_more_tasks_are_asked_for_than_there_are_of_them(
    drive, produce, kafka_topic, people
):
    topic = kafka_topic(partitions=2)
    produce(topic, people(21_000), 0)
    produce(topic, people(1_000), 1)
    whole = [(Range(topic, 0, 0, 21_000),), (Range(topic, 1, 0, 1_000),)]
    for parallelism, split in (("2", False), ("3", True)):
        query = drive(topic, {"scan.parallelism": parallelism})
        end = query.reader.latestOffset(query.at, ReadAllAvailable())
        tasks = [each.value for each in query.reader.partitions(query.at, end)]
        assert len(tasks) == 2
        assert (end["split"], tasks != whole) == (split, split)


def test_a_partition_of_changes_is_never_split(table, produce, kafka_topic, people):
    topic = kafka_topic()
    produce(topic, people(50_000))
    kafka = table(topic, {"scan.parallelism": "3"})
    columns = (Column("id", "BIGINT"), Column("name", "STRING"))
    assert len(KafkaReader(kafka, Table(columns)).partitions()) == 3
    assert len(KafkaReader(kafka, Table(columns), upsert=True).partitions()) == 1


def test_a_batch_is_planned_alike_on_any_machine(drive, produce, kafka_topic, people, monkeypatch):
    topic = kafka_topic(partitions=3)
    for partition in range(3):
        produce(topic, people(25_000), partition)
    plans = []
    for cores in (2, 64):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        query = drive(topic)
        start = query.at
        end = query.reader.latestOffset(start, ReadAllAvailable())
        plans.append((end["tasks"], query.reader.partitions(start, end)))
        monkeypatch.setattr(os, "cpu_count", lambda: 1)
        again = [task.value for task in drive(topic, start=start).reader.partitions(start, end)]
        assert again == [task.value for task in plans[-1][1]]
    assert [tasks for tasks, _ in plans] == [2, 3]
