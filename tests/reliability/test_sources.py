"""Topics that are recreated, truncated, grown or full of holes are read exactly or not at all."""

from __future__ import annotations

import random
import time

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewPartitions
from streamcore import DataLossError
from streamcore.registry import installed
from streamcore.testing.ledger import Ledger, scenario
from streamcore.testing.services.kafka import unique_name
from streamcore_kafka.fetching import Fetcher
from streamcore_kafka.progress import Range


def rewritten(bench, broker, rows):
    """Delete the source topic, create it again, and fill it with rows of the same ledger."""
    topic = bench.ledger.topic
    broker.delete_topic(topic)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            broker.create_topic(topic, 2)
            break
        except Exception as error:
            if "exists" not in str(error) and "marked for deletion" not in str(error):
                raise
            time.sleep(0.2)
    bench.ledger.send(rows)


def settle(copy, timeout=60):
    """Wait until the last batch planned is done: a repeated one would be the sink's to judge."""
    deadline = time.monotonic() + timeout
    while len(numbers(copy, "commits")) < len(numbers(copy, "offsets")):
        assert time.monotonic() < deadline, "the last batch was not committed"
        time.sleep(0.1)


def numbers(copy, log):
    return [path.name for path in (copy.checkpoint / log).iterdir() if path.name.isdigit()]


@scenario(16, small={"rows": 200, "cases": 2}, full={"rows": 10_000, "cases": 8})
def test_a_topic_created_again_is_noticed_by_its_id(broker, bench, spark, scale):
    """Longer or shorter than before, while the query runs or is stopped."""
    cases = [(longer, running) for longer in (True, False) for running in (False, True)]
    for number in range(scale.cases):
        longer, running = cases[number % len(cases)]
        tolerant = number % 2 == 1 if scale.cases < 8 else number >= 4
        each = bench(broker, spark=spark)
        each.copy.source["scan.topic-partition-discovery.interval"] = "1 s"
        each.copy.source["scan.fail-on-data-loss"] = "false" if tolerant else "true"
        each.ledger.send(scale.rows)
        each.copy.start()
        each.wait_for_all()
        if not running:
            if tolerant:
                settle(each.copy)
            each.copy.kill()
        rewritten(each, broker, scale.rows * 2 if longer else scale.rows // 2)
        if not running:
            each.copy.start()
        if tolerant:
            each.wait_for_all()
            each.verdict()
        else:
            assert each.copy.wait(scale.bound(60)) == 1
            said = each.copy.said()
            assert f"topic '{each.ledger.topic}' partition" in said, said[:3000]
            assert "'scan.fail-on-data-loss'" in said, said[:3000]


@scenario(17, small={"rows": 500}, full={"rows": 100_000})
def test_records_deleted_before_they_were_read_are_told_with_the_gap(broker, bench, spark, scale):
    strict, loose = bench(broker, 1, spark=spark), bench(broker, 1, spark=spark)
    loose.copy.source["scan.fail-on-data-loss"] = "false"
    for each in (strict, loose):
        each.ledger.send(scale.rows)
        each.copy.start(once=True)
        assert each.copy.wait() == 0
        each.ledger.send(scale.rows)
        gone = TopicPartition(each.ledger.topic, 0, scale.rows + scale.rows // 2)
        admin = broker.admin()
        for future in admin.delete_records([gone]).values():
            future.result()
        each.copy.start(once=True)
        status = each.copy.wait(scale.bound(60) if each is strict else 600)
        if each is strict:
            assert status == 1
            assert f"topic '{each.ledger.topic}' partition 0" in each.copy.said()
            assert str(scale.rows) in each.copy.said()
            assert str(gone.offset) in each.copy.said()
        else:
            assert status == 0
            each.live.wait_for(gone.offset, 60)
            assert each.live.distinct == 2 * scale.rows - scale.rows // 2


@scenario(17, small={"rows": 5_000}, full={"rows": 100_000})
def test_records_deleted_in_the_middle_of_a_batch_are_told_as_many_as_are_gone(broker, scale):
    """The client fetches less ahead than is deleted: some of that was read, the rest is gone."""
    rows, gone, admin = scale.rows, scale.rows - 100, broker.admin()
    for strict in ("true", "false"):
        topic = broker.create_topic(unique_name("truncated"), 1, {"segment.bytes": "1048576"})
        Ledger(broker.direct_servers, topic, seed=scale.seed).send(rows, pad=1000)
        options = {
            "topic": topic,
            "format": "json",
            "properties.bootstrap.servers": broker.bootstrap_servers,
            "properties.max.partition.fetch.bytes": "100000",
            "properties.queued.max.messages.kbytes": "200",
            "scan.startup.mode": "earliest-offset",
            "scan.fail-on-data-loss": strict,
        }
        kafka = installed().build("connector", "kafka", options)
        fetcher = Fetcher(kafka, [Range(topic, 0, 0, rows)], rows=500)
        chunks = fetcher.chunks()
        read = [message.offset() for message in next(chunks)]
        (deleted,) = admin.delete_records([TopicPartition(topic, 0, gone)]).values()
        deleted.result()
        if strict == "false":
            read += [message.offset() for chunk in chunks for message in chunk]
            assert fetcher.lost == rows - len(read) > 0
            assert read == [*range(rows - 100 - fetcher.lost), *range(gone, rows)]
            scale.measured["gone and told"] = str(fetcher.lost)
        else:
            with pytest.raises(DataLossError, match=rf"offsets \d+ to {gone - 1} are gone"):
                read += [message.offset() for chunk in chunks for message in chunk]
            assert read == list(range(len(read)))


@scenario(18, small={"rows": 3_000}, full={"rows": 500_000})
def test_partitions_added_under_load_are_read_from_their_first_record(broker, bench, spark, scale):
    """Keys stay in their partitions, and new ones come with new partitions: order is kept."""
    dice = random.Random(scale.seed)
    bench = bench(broker, partitions=4, spark=spark)
    bench.copy.source["scan.topic-partition-discovery.interval"] = "1 s"
    bench.copy.source["scan.startup.mode"] = "latest-offset"
    bench.ledger.pin(4)
    bench.copy.start()
    time.sleep(5)
    deadline = time.monotonic() + 120
    while not (bench.copy.checkpoint / "offsets" / "0").exists() and time.monotonic() < deadline:
        time.sleep(0.5)
    bench.ledger.keep_sending(scale.rows, pieces=30, pause=0.1)
    admin, topic = broker.admin(), bench.ledger.topic
    for count in (5, 8, 12):
        time.sleep(dice.uniform(0.2, 1))
        (grown,) = admin.create_partitions([NewPartitions(topic, count)]).values()
        grown.result()
        while len(admin.list_topics(topic).topics[topic].partitions) < count:
            time.sleep(0.1)
        bench.ledger.pin(count)
    bench.ledger.send(500)  # also to the newest
    bench.ledger.finish()
    bench.wait_for_all(1200)
    bench.verdict()


@scenario(19, small={"rows": 500, "aborted": 5_000}, full={"rows": 10_000, "aborted": 100_000})
def test_an_aborted_tail_ends_a_batch_and_is_never_seen(broker, bench, spark, scale):
    bench = bench(broker, partitions=1, spark=spark)
    bench.copy.source["properties.isolation.level"] = "read_committed"
    for _ in range(2):
        bench.ledger.send(scale.rows)
        bench.ledger.send_and_abort(scale.aborted)
        bench.copy.start(once=True)
        assert bench.copy.wait(300) == 0
    bench.ledger.send_and_abort(scale.aborted)
    bench.copy.start(once=True)
    assert bench.copy.wait(300) == 0
    seconds = sum(each.batchDuration for each in bench.copy.query.recentProgress) / 1000
    assert 0 < seconds <= scale.bound(5), "no batch waits for rows that nobody may see"
    scale.measured["a tail of nothing else ended in"] = f"{seconds:.1f} s"
    bench.live.wait_for(bench.ledger.rows, 60)
    bench.verdict()
