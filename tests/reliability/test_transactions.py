"""Transactions that end late, hang, time out or lose their markers tear no batch."""

from __future__ import annotations

import random
import time

import pytest
from confluent_kafka import Producer
from streamcore.testing.ledger import scenario
from streamcore.testing.services.proxy import END_TXN, PRODUCE
from streamcore_kafka.tickets import TransactionRefused


def wait_for(condition, timeout=30):
    """An abort of what was never sent asks nothing of the broker."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"nothing in {timeout} s"
        time.sleep(0.02)


class GivenUp(Exception):
    """Makes a task abort."""


@scenario(12, small={"transactions": 6}, full={"transactions": 200})
def test_a_late_end_of_one_transaction_never_ends_the_next(broker, a_writer, scale):
    """The client asked twice; the first request comes when the next transaction is half way."""
    dice = random.Random(scale.seed)
    quick = {"properties.socket.timeout.ms": "500", "properties.reconnect.backoff.max.ms": "200"}
    writer = a_writer(broker, **quick)
    writer.write(0, 3)
    late = None
    for batch in range(1, scale.transactions + 1):
        abort, held = dice.random() < 0.5, late

        def between(held=held, abort=abort, sent=broker.proxy.requests[PRODUCE]):
            if held is not None:
                held.release()
                time.sleep(0.1)
            if abort:
                wait_for(lambda: broker.proxy.requests[PRODUCE] > sent)
                raise GivenUp

        if abort:
            late = broker.proxy.hold_next(END_TXN)
            with pytest.raises(GivenUp):
                writer.write(batch, 4, between=between, aborted=True)
            assert late.wait(30)
            held, late = late, None
            writer.write(batch, 4, between=held.release)
        else:
            if held is None:
                late = broker.proxy.hold_next(END_TXN)
            writer.write(batch, 4, between=between)
            late = late if held is None else None
            assert late is None or late.wait(30)
    broker.proxy.heal()
    assert len(writer.sent) == scale.transactions + 1
    writer.verify(scale.seed)


@scenario(
    14,
    small={"batches": 1, "timeout": 2, "encode": 4},
    full={"batches": 20, "timeout": 10, "encode": 30},
)
def test_a_transaction_that_took_too_long_names_the_option_and_is_repeated(broker, a_writer, scale):
    """It may be open for `timeout` seconds, and encoding its rows takes `encode`."""
    limit = scale.timeout * 1000
    writer = a_writer(broker, **{"properties.transaction.timeout.ms": str(limit)})
    for batch in range(scale.batches):
        with pytest.raises(TransactionRefused) as refused:
            writer.write(batch, 10, run=f"slow-{batch}", between=lambda: time.sleep(scale.encode))
        assert f"'properties.transaction.timeout.ms' ({limit} ms)" in str(refused.value)
        writer.write(batch, 10, run=f"quick-{batch}")
    writer.verify(scale.seed)


@scenario(15, small={"runs": 2}, full={"runs": 10})
def test_a_marker_that_expired_after_the_commit_is_an_error_and_not_a_repetition(
    broker, a_writer, scale
):
    """Deleting the groups is what the broker does to them when their retention is over."""
    for _ in range(scale.runs):
        writer = a_writer(broker)
        writer.write(0, 5)
        writer.write(1, 5)
        admin = broker.admin()
        groups = [f"{writer.prefix}-marker", f"{writer.prefix}-marker-0"]
        for future in admin.delete_consumer_groups(groups).values():
            future.result()
        with pytest.raises(TransactionRefused, match="offsets.retention.minutes"):
            writer.write(1, 5, run="after")
        writer.verify(scale.seed)


@scenario(13, small={"rows": 500, "seconds": 3}, full={"rows": 50_000, "seconds": 300})
def test_a_transaction_that_hangs_on_the_source_is_named_and_waited_for(
    broker, bench, spark, scale
):
    """Rows behind it are not read until it ends; what runs for what is there ends before it.

    A soak runs the job as a process, and has the time to wait for its warning.
    """
    held = bench(broker, partitions=1, spark=None if scale.soak else spark)
    held.copy.source["properties.isolation.level"] = "read_committed"
    bounded = bench(broker, partitions=1, spark=spark)
    bounded.copy.source = held.copy.source
    held.ledger.send(scale.rows)
    held.copy.start()
    held.wait_for_all()
    foreign = Producer(
        {
            "bootstrap.servers": broker.direct_servers,
            "transactional.id": f"foreign-{held.target}",
            "transaction.timeout.ms": 900_000,
        }
    )
    foreign.init_transactions(30)
    foreign.begin_transaction()
    foreign.produce(held.ledger.topic, b'{"key":"foreign","seq":-1}')
    foreign.flush(30)
    before, began = held.ledger.rows, time.monotonic()
    held.ledger.send(scale.rows)
    if scale.soak:
        place = f"topic '{held.ledger.topic}' partition 0: a transaction that is still open at"
        wait_for(lambda: place in held.copy.said(), scale.bound(60))
        scale.measured["named after"] = f"{time.monotonic() - began:.1f} s"
    bounded.copy.start(once=True)
    assert bounded.copy.wait() == 0
    bounded.live.wait_for(before, 60)
    time.sleep(max(0, scale.seconds - (time.monotonic() - began)))
    assert held.live.distinct == bounded.live.distinct == before
    foreign.abort_transaction(30)
    scale.measured["went on after"] = f"{held.wait_for_all(scale.bound(60)):.1f} s"
    held.verdict()
