"""Topics that are recreated, truncated, grown or full of holes are read exactly or not at all."""

from __future__ import annotations

import random
import time

from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewPartitions
from streamcore.testing.ledger import scenario


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
            assert each.copy.wait(120) == 1
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
        status = each.copy.wait()
        if each is strict:
            assert status == 1
            assert f"topic '{each.ledger.topic}' partition 0" in each.copy.said()
            assert str(scale.rows) in each.copy.said()
            assert str(gone.offset) in each.copy.said()
        else:
            assert status == 0
            each.live.wait_for(gone.offset, 60)
            assert each.live.distinct == 2 * scale.rows - scale.rows // 2


@scenario(18, small={"rows": 3_000}, full={"rows": 500_000})
def test_partitions_added_under_load_are_read_from_their_first_record(broker, bench, spark, scale):
    """Keys move to other partitions when there are more, so their order is not asked for."""
    dice = random.Random(scale.seed)
    bench = bench(broker, partitions=4, spark=spark)
    bench.copy.source["scan.topic-partition-discovery.interval"] = "1 s"
    bench.copy.source["scan.startup.mode"] = "latest-offset"
    bench.copy.start()
    time.sleep(5)
    deadline = time.monotonic() + 120
    while not (bench.copy.checkpoint / "offsets" / "0").exists() and time.monotonic() < deadline:
        time.sleep(0.5)
    bench.ledger.keep_sending(scale.rows, pieces=30, pause=0.1)
    admin = broker.admin()
    for count in (5, 8, 12):
        time.sleep(dice.uniform(0.2, 1))
        (grown,) = admin.create_partitions([NewPartitions(bench.ledger.topic, count)]).values()
        grown.result()
    bench.ledger.finish()
    bench.wait_for_all()
    bench.verdict(ordered=False)


@scenario(19, small={"rows": 500, "aborted": 5_000}, full={"rows": 10_000, "aborted": 100_000})
def test_an_aborted_tail_ends_a_batch_and_is_never_seen(broker, bench, spark, scale):
    bench = bench(broker, partitions=1, spark=spark)
    bench.copy.source["properties.isolation.level"] = "read_committed"
    for _ in range(2):
        bench.ledger.send(scale.rows)
        bench.ledger.send_and_abort(scale.aborted)
        bench.copy.start(once=True)
        assert bench.copy.wait(300) == 0
    began = time.monotonic()
    bench.ledger.send_and_abort(scale.aborted)
    bench.copy.start(once=True)
    assert bench.copy.wait(300) == 0
    scale.measured["a tail of nothing else ended in"] = f"{time.monotonic() - began:.1f} s"
    bench.live.wait_for(bench.ledger.rows, 60)
    bench.verdict()
