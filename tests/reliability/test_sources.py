"""Topics that are recreated, truncated, grown or full of holes are read exactly or not at all."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewPartitions, OffsetSpec
from streamcore import DataLossError
from streamcore.registry import installed
from streamcore.testing.ledger import Ledger, read_to_end, scenario
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


def ends(broker, topic):
    """How far each partition reaches."""
    admin = broker.admin()
    numbers = admin.list_topics(topic, 30).topics[topic].partitions
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in numbers}
    answers = admin.list_offsets(asked)
    return {place.partition: answer.result().offset for place, answer in answers.items()}


def told(copy, topic):
    """How far each partition was read before it was gone, by what the job says of each."""
    words = rf"topic '{topic}' partition (\d+) was read up to offset (\d+) and was deleted"
    found = {(int(number), int(offset)) for number, offset in re.findall(words, copy.said())}
    assert len(found) == len(dict(found)), f"two stories of one partition: {found}"
    return dict(found)


@scenario(16, small={"rows": 200, "cases": 2}, full={"rows": 10_000, "cases": 8})
def test_a_topic_created_again_is_noticed_by_its_id(broker, bench, spark, scale):
    """Longer or shorter than before, while the query runs or is stopped.

    In a soak, what may go on is a process that says how far it had come. If it was stopped, there
    were more rows: those that it says it has not read are lost, and no others.
    """
    cases = [(longer, running) for longer in (True, False) for running in (False, True)]
    gone = 0
    for number in range(scale.cases):
        longer, running = cases[number % len(cases)]
        tolerant = number % 2 == 1 if scale.cases < 8 else number >= 4
        heard = scale.soak and tolerant
        each = bench(broker, spark=None if heard else spark)
        topic, unread = each.ledger.topic, set()
        each.copy.source["scan.topic-partition-discovery.interval"] = "1 s"
        each.copy.source["scan.fail-on-data-loss"] = "false" if tolerant else "true"
        each.ledger.send(scale.rows)
        each.copy.start()
        each.wait_for_all()
        if not running:
            if tolerant:
                settle(each.copy)
            each.copy.kill()
            if heard:
                unread = only_sent(each.ledger, scale.rows // 4)
        reached = ends(broker, topic)
        rewritten(each, broker, scale.rows * 2 if longer else scale.rows // 2)
        if not running:
            each.copy.start()
        if tolerant:
            each.live.wait_for(each.ledger.rows - len(unread), 300, each.copy.check)
            each.verdict(unread=unread)
        else:
            assert each.copy.wait(scale.bound(60)) == 1
            said = each.copy.said()
            assert f"topic '{topic}' partition" in said, said[:3000]
            assert "'scan.fail-on-data-loss'" in said, said[:3000]
        if heard:
            read = told(each.copy, topic)
            assert read.keys() == reached.keys()
            assert sum(reached.values()) - sum(read.values()) == len(unread)
            gone += len(unread)
            scale.measured["gone and told"] = str(gone)


def only_sent(ledger, count):
    """Send rows that are gone before anybody reads them."""
    before = Counter(ledger.sent)
    ledger.send(count)
    return {
        (key, number) for key, sent in ledger.sent.items() for number in range(before[key], sent)
    }


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


COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.001",
    "max.compaction.lag.ms": "1000",
}


def compacted(broker, scale, partitions=2):
    """A ledger of which a compacted topic keeps the last row of each key, and those rows.

    A transaction makes the ends of the log: a row and a marker, which nobody is given.
    """
    topic = broker.create_topic(unique_name("compacted"), partitions, COMPACTED)
    ledger = Ledger(broker.direct_servers, topic, seed=scale.seed)
    ledger.send(scale.rows)
    left = {(key, count - 1) for key, count in ledger.sent.items()}
    time.sleep(1.5)  # what comes now opens another segment: the newest one is never compacted
    last = Producer({"bootstrap.servers": broker.direct_servers, "transactional.id": topic})
    last.init_transactions(30)
    last.begin_transaction()
    for number in range(partitions):
        last.produce(topic, f'{{"key":"last{number}","seq":0}}'.encode(), b"last", number)
        left.add((f"last{number}", 0))
    last.commit_transaction(30)
    deadline = time.monotonic() + 180
    while len(rows := read_to_end(broker.direct_servers, topic)) > len(left):
        assert time.monotonic() < deadline, f"{len(rows)} of {scale.rows} rows are still there"
        time.sleep(1)
    assert {row[:2] for row in rows} == left
    return topic, left


@scenario(19, small={"rows": 2_000}, full={"rows": 100_000}, always=False)
def test_a_compacted_log_is_read_to_its_end_and_no_batch_waits_for_what_is_gone(
    broker, bench, spark, scale
):
    """As a stream in batches full of holes, as one for what is there, and bounded."""
    topic, left = compacted(broker, scale)
    once, on = bench(broker, spark=spark), bench(broker, spark=spark)
    for each in (once, on):
        each.copy.source |= {"topic": topic, "properties.isolation.level": "read_committed"}
    on.copy.source["scan.max-rows-per-batch"] = str(scale.rows // 20)
    on.copy.start()
    on.live.wait_for(len(left), 300, on.copy.check)
    wait_for_position(on.copy, topic, ends(broker, topic))
    on.copy.kill()
    once.copy.start(once=True)
    assert once.copy.wait(300) == 0
    batches = [each.batchDuration / 1000 for each in on.copy.query.recentProgress]
    assert len(batches) > 20
    seconds = {"a stream, in batches": max(batches[1:])}  # the first one starts its processes
    for each in (once, on):
        final = read_to_end(broker.direct_servers, each.target)
        assert sorted(row[:2] for row in final) == sorted(left)
        assert sorted(row[:2] for row in each.live.stop()) == sorted(left)
    for level in ("read_uncommitted", "read_committed"):
        options = {**once.copy.source, "properties.isolation.level": level}
        frame = spark.read.format("streamcore").options(**options).schema("key STRING, seq BIGINT")
        began = time.monotonic()
        assert sorted(map(tuple, frame.load().collect())) == sorted(left)
        seconds[f"bounded, {level}"] = time.monotonic() - began
    scale.measured["slowest batch"] = f"{max(seconds.values()):.1f} s"
    assert max(seconds.values()) <= scale.bound(5), seconds


def wait_for_position(copy, topic, reach, timeout=120):
    """Wait until a query has come to the ends of its topic."""
    deadline = time.monotonic() + timeout
    while True:
        copy.check()
        last = copy.query.lastProgress
        at = json.loads(last.sources[0].endOffset)["offsets"][topic] if last else {}
        if {int(number): offset for number, offset in at.items()} == reach:
            return
        assert time.monotonic() < deadline, f"at {at}, not {reach}, after {timeout} s"
        time.sleep(0.1)
