"""Logs with holes: a batch ends by position, so nothing hangs and nothing is miscounted."""

from __future__ import annotations

import json
import logging
import time

import pytest
from confluent_kafka import Producer
from streamcore import DataLossError
from streamcore_kafka import fetching, hanging
from streamcore_kafka.fetching import Fetcher
from streamcore_kafka.progress import Range

COMMITTED = {"properties.isolation.level": "read_committed"}


@pytest.fixture
def transaction(kafka):
    """Writes in a transaction of its own: `transaction(topic, values, "commit")`."""
    open_ones = []

    def write(topic, values, end, partition=0):
        name = f"{topic}-{len(open_ones)}"
        settings = {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name}
        producer = Producer(settings)
        open_ones.append(producer)
        producer.init_transactions(20)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, json.dumps(value).encode(), partition=partition)
        assert producer.flush(20) == 0
        if end == "commit":
            producer.commit_transaction(20)
        if end == "abort":
            producer.abort_transaction(20)
        return producer

    return write


def test_transaction_markers_at_the_end_do_not_hang_a_batch(
    drive, transaction, kafka_topic, people, rows_of
):
    topic = kafka_topic()
    transaction(topic, people(3), "commit")
    query = drive(topic, COMMITTED)
    assert query.until(3) == rows_of(3)
    assert query.at["offsets"][topic] == {"0": 4}
    began = time.monotonic()
    assert query.batch() == []
    assert time.monotonic() - began < 5
    transaction(topic, people(2, 3), "commit")
    assert query.until(2) == rows_of(2, 3)


def test_aborted_records_are_read_unless_only_committed_ones_are_wanted(
    scan, transaction, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic()
    transaction(topic, people(3), "abort")
    produce(topic, people(1, 9))
    transaction(topic, people(2, 20), "abort")
    assert scan(topic, COMMITTED) == rows_of(1, 9)
    everything = [*rows_of(3), *rows_of(1, 9), *rows_of(2, 20)]
    assert scan(topic) == scan(topic, {"properties.isolation.level": "READ_UNCOMMITTED"})
    assert scan(topic) == everything


def test_nothing_but_aborted_records_is_an_empty_batch(scan, transaction, kafka_topic, people):
    topic = kafka_topic()
    transaction(topic, people(50), "abort")
    assert scan(topic, COMMITTED) == []


def test_an_open_transaction_ends_a_batch_before_it(
    drive, transaction, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic()
    produce(topic, people(2))
    pending = transaction(topic, people(2, 2), "open")
    produce(topic, people(1, 4))
    query = drive(topic, COMMITTED)
    assert query.batch() == rows_of(2)
    assert query.at["offsets"][topic] == {"0": 2}
    assert query.batch() == []
    pending.commit_transaction(20)
    assert query.until(3) == rows_of(3, 2)


def test_a_transaction_that_stays_open_is_named_once(
    drive, transaction, produce, kafka_topic, people, monkeypatch, caplog
):
    monkeypatch.setattr(hanging, "PATIENCE", 0.0)
    topic = kafka_topic()
    pending = transaction(topic, people(2), "open")
    produce(topic, people(3, 2))
    query = drive(topic, COMMITTED)
    for _ in range(4):
        assert query.batch() == []
    (warning,) = [each.getMessage() for each in caplog.records if "still open" in each.getMessage()]
    assert warning.startswith(f"topic '{topic}' partition 0: a transaction that is still open at")
    assert "keeps 5 offsets from being read" in warning
    pending.abort_transaction(20)
    query.until(3)


def test_reading_only_committed_records_from_now_on_is_no_data_loss(
    drive, transaction, produce, kafka_topic, people, rows_of
):
    topic = kafka_topic()
    pending = transaction(topic, people(2), "open")
    query = drive(topic)
    assert query.batch() == rows_of(2)
    strict = drive(topic, COMMITTED, start=query.at)
    assert strict.batch() == []
    pending.abort_transaction(20)
    produce(topic, people(1, 2))
    assert strict.until(1) == rows_of(1, 2)


def test_a_compacted_log_is_read_to_its_end_also_in_batches_of_few_bytes(
    scan, drive, produce, kafka_topic, people
):
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "200",
    }
    topic = kafka_topic(config=config)
    for at in range(40):
        produce(topic, people(1, at), key=b"a" if at < 39 else b"b")
        if at % 10 == 0:
            time.sleep(0.15)
    deadline = time.monotonic() + 60
    while len(rows := scan(topic)) > 30 and time.monotonic() < deadline:
        time.sleep(0.5)
        produce(topic, people(1, 39), key=b"b")
    assert len(rows) <= 30
    assert rows[-1] == (39, "n39")

    query = drive(topic, {"scan.max-bytes-per-batch": "100"})
    batches = [query.batch()]
    end = query.reader.reportLatestOffset()["offsets"][topic]["0"]
    while int(query.at["offsets"][topic]["0"]) < end and time.monotonic() < deadline:
        batches.append(query.batch())
    found = [row for batch in batches for row in batch]
    assert found[-1] == (39, "n39")
    assert set(found) <= set(rows)  # compaction goes on
    assert max(map(len, batches)) <= 4, "a record has 26 bytes"


def test_the_log_of_a_tombstoned_topic_ends_too(scan, produce, kafka_topic, people, rows_of):
    topic = kafka_topic()
    produce(topic, [*people(2), None, None])
    assert scan(topic) == rows_of(2)


# --- records that are gone -----------------------------------------------------------------


def test_records_deleted_before_they_were_read_fail_or_warn(
    drive, produce, kafka_topic, people, rows_of, forget, caplog
):
    topic = kafka_topic()
    produce(topic, people(10))
    query = drive(topic)
    start = query.at
    end = json.loads(json.dumps(query.reader.latestOffset(start, None)))
    forget(topic, 0, 4)
    with pytest.raises(DataLossError) as caught:
        query.replay(start, end)
    assert str(caught.value) == (
        f"topic '{topic}' partition 0: offsets 0 to 3 are gone, the log begins at offset 4. "
        "Set 'scan.fail-on-data-loss' to 'false' to go on without them."
    )
    with caplog.at_level(logging.WARNING):
        careless = drive(topic, {"scan.fail-on-data-loss": "false"}, start=start)
        assert careless.replay(start, end) == rows_of(6, 4)
    assert "offsets 0 to 3 are gone" in caplog.text


def test_a_range_that_is_gone_as_a_whole_is_empty_when_that_is_tolerated(
    table, produce, kafka_topic, people, forget
):
    topic = kafka_topic()
    produce(topic, people(10))
    forget(topic, 0, 8)
    fetcher = Fetcher(table(topic, {"scan.fail-on-data-loss": "false"}), [Range(topic, 0, 2, 5)])
    assert list(fetcher.chunks()) == []
    assert fetcher.lost == 3


def test_a_log_that_got_shorter_fails_or_warns(table, produce, kafka_topic, people, monkeypatch):
    monkeypatch.setattr(fetching, "TRUNCATED_AFTER", 0.2)
    topic = kafka_topic()
    produce(topic, people(3))
    with pytest.raises(DataLossError, match="offsets 3 to 6 are gone, the log ends at offset 3"):
        list(Fetcher(table(topic), [Range(topic, 0, 1, 7)]).chunks())
    with pytest.raises(DataLossError, match="offsets 5 to 6 are gone, the log ends at offset 3"):
        list(Fetcher(table(topic), [Range(topic, 0, 5, 7)]).chunks())
    tolerant = Fetcher(table(topic, {"scan.fail-on-data-loss": "false"}), [Range(topic, 0, 1, 7)])
    assert sum(len(chunk) for chunk in tolerant.chunks()) == 2
    assert tolerant.lost == 4


def test_a_topic_deleted_under_a_task_fails_with_its_name(
    table, kafka, produce, kafka_topic, people
):
    topic = kafka_topic()
    produce(topic, people(3))
    kafka.delete_topic(topic)
    hasty = {"properties.socket.connection.setup.timeout.ms": "4000"}
    with pytest.raises(Exception, match=f"topic '{topic}'"):
        list(Fetcher(table(topic, hasty), [Range(topic, 0, 0, 3)]).chunks())


# --- many ranges at once ---------------------------------------------------------------------


def test_tasks_read_their_ranges_exactly_and_in_order_however_consumers_are_reused(
    table, produce, kafka_topic, people
):
    first, second = kafka_topic(partitions=3), kafka_topic(partitions=1)
    for partition in range(3):
        produce(first, people(2000, partition * 10_000), partition)
    produce(second, people(2000, 90_000))
    kafka = table(f"{first};{second}")
    for step in range(6):
        ranges = [Range(first, at, step * 100 + at, 1900 - step * 100) for at in range(3)]
        ranges = [*ranges, Range(second, 0, step, step + 3)][step % 3 :]
        found: dict[tuple[str, int], list[int]] = {}
        for chunk in Fetcher(kafka, ranges).chunks():
            for message in chunk:
                place = (message.topic(), message.partition())
                found.setdefault(place, []).append(message.offset())
        assert found == {(r.topic, r.number): list(range(r.start, r.end)) for r in ranges}


def test_a_task_may_have_several_ranges_of_one_partition(table, produce, kafka_topic, people):
    topic = kafka_topic(partitions=2)
    produce(topic, people(50), 0)
    produce(topic, people(50), 1)
    ranges = [Range(topic, 0, 30, 35), Range(topic, 1, 1, 3), Range(topic, 0, 2, 5)]
    fetcher = Fetcher(table(topic), ranges)
    found = [(m.partition(), m.offset()) for chunk in fetcher.chunks() for m in chunk]
    assert [offset for number, offset in found if number == 0] == [2, 3, 4, 30, 31, 32, 33, 34]
    assert [offset for number, offset in found if number == 1] == [1, 2]
    assert fetcher.bytes > 0


def test_a_reader_that_stops_early_leaves_its_consumer_usable(table, produce, kafka_topic, people):
    topic = kafka_topic()
    produce(topic, people(30_000))
    kafka = table(topic)
    chunks = Fetcher(kafka, [Range(topic, 0, 0, 30_000)]).chunks()
    next(chunks)
    chunks.close()
    again = Fetcher(kafka, [Range(topic, 0, 5, 10)])
    assert [m.offset() for chunk in again.chunks() for m in chunk] == [5, 6, 7, 8, 9]
