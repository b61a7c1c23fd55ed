"""Brokers that die or freeze and networks that fail only delay a copy."""

from __future__ import annotations

import random
import time

import pytest
from streamcore.testing.ledger import scenario
from streamcore.testing.services import KafkaCluster, Way


@pytest.fixture(scope="module")
def cluster():
    """Three brokers: three copies of each row, two of which must be written."""
    with KafkaCluster(3) as cluster:
        yield cluster


def report(bench, scale, seconds):
    scale.measured["slowest recovery"] = f"{max(seconds):.0f} s"
    scale.measured["restarts of the job"] = str(bench.restarts)


def wait_until_others_lead(cluster, topic, number):
    admin, deadline = cluster.admin(), time.monotonic() + 60
    while True:
        partitions = admin.list_topics(topic, 10).topics[topic].partitions.values()
        if {each.leader for each in partitions}.isdisjoint({number, -1}):
            return
        assert time.monotonic() < deadline, f"broker {number} is gone, and still leads"
        time.sleep(0.2)


@scenario(9, small={"rows": 4_000, "kills": 1}, full={"rows": 1_000_000, "kills": 20}, always=False)
def test_leaders_and_coordinators_killed_one_by_one_lose_nothing(cluster, bench, spark, scale):
    """Each broker leads some partitions and coordinates some transactions.

    One comes back at once, the next when others lead what it led.
    """
    dice = random.Random(scale.seed)
    bench = bench(cluster, partitions=3, spark=spark)
    bench.copy.source["scan.max-rows-per-batch"] = str(max(1000, scale.rows // 100))
    bench.copy.start()
    bench.ledger.send(scale.rows // 4)
    bench.copy.wait_batch()
    share, seconds = scale.rows // 2 // scale.kills, []
    for number in range(scale.kills):
        node = dice.choice(cluster.nodes)
        bench.ledger.send(share)
        node.kill()
        if number % 2:
            time.sleep(dice.uniform(1, 3))
        else:
            wait_until_others_lead(cluster, bench.target, node.number)
        bench.revive()
        node.start()
        seconds.append(bench.recovers(100))
    bench.recovers(scale.rows - bench.ledger.rows)
    bench.verdict()
    report(bench, scale, seconds)


@scenario(
    10, small={"rows": 2_000, "seconds": 3}, full={"rows": 300_000, "seconds": 90}, always=False
)
def test_a_broker_that_freezes_only_delays(cluster, bench, spark, scale):
    """Each freeze has its own rows, which are sent while it lasts."""
    dice = random.Random(scale.seed)
    bench = bench(cluster, partitions=3, spark=spark)
    bench.copy.source["scan.max-rows-per-batch"] = str(max(500, scale.rows // 50))
    bench.copy.start()
    bench.ledger.send(100)
    bench.copy.wait_batch()
    seconds = []
    for freeze in (5, 45, scale.seconds) if scale.seconds > 45 else (scale.seconds,):
        node = dice.choice(cluster.nodes)
        bench.ledger.keep_sending(scale.rows, pieces=20, pause=freeze / 20)
        node.pause()
        try:
            time.sleep(freeze)
        finally:
            node.resume()
        bench.ledger.finish()
        seconds.append(bench.recovers(100))
    bench.verdict()
    report(bench, scale, seconds)


def hold(proxy):
    proxy.hold()


def deaf(proxy):
    proxy.hold(Way.REQUESTS)


def mute(proxy):
    proxy.hold(Way.REPLIES)


def reset(proxy):
    proxy.cut(reset=True)


def crawl(proxy):
    proxy.delay(0.1)
    proxy.throttle(3_000_000 / 8)


def away(proxy):
    proxy.refuse()
    proxy.cut()


@scenario(11, small={"rows": 400, "seconds": 1}, full={"rows": 300_000, "seconds": 60})
def test_a_network_that_holds_loses_resets_or_crawls_only_delays(broker, bench, spark, scale):
    """Each fault has its own rows."""
    bench = bench(broker, spark=spark)
    bench.copy.source["scan.max-rows-per-batch"] = str(max(500, scale.rows // 50))
    bench.copy.start()
    bench.ledger.send(scale.rows)
    bench.copy.wait_batch()
    faults = [hold, deaf, mute, reset, crawl, away]
    random.Random(scale.seed).shuffle(faults)
    seconds = []
    for fault in faults:
        bench.ledger.send(scale.rows)
        fault(broker.proxy)
        time.sleep(scale.seconds)
        broker.proxy.heal()
        seconds.append(bench.recovers(50))
    bench.verdict()
    report(bench, scale, seconds)
