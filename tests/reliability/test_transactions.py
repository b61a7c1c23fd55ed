"""Transactions that end late, hang, time out or lose their markers tear no batch."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from streamcore.testing.ledger import scenario
from streamcore.testing.services import KafkaBroker
from streamcore.testing.services.kafka.transactions import FENCED, Ending, ending_refused
from streamcore.testing.services.proxy import END_TXN
from streamcore_kafka.tickets import TransactionRefused


def wait_for(condition, timeout=30, pause=0.02):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"nothing in {timeout} s"
        time.sleep(pause)


class GivenUp(Exception):
    """Makes a task abort."""


@scenario(12, small={"commits": 3, "aborts": 3}, full={"commits": 200, "aborts": 200})
def test_a_late_end_of_one_transaction_never_ends_the_next(broker, a_writer, scale):
    """The client asked twice; the first request comes when the next transaction is half way."""
    quick = {"properties.socket.timeout.ms": "500", "properties.reconnect.backoff.max.ms": "200"}
    writer, proxy = a_writer(broker, **quick), broker.proxy
    name = f"{writer.prefix}-0"
    refused = Counter()

    def half_way(late, commit):
        wait_for(lambda: broker.transactions().get(name) == "Ongoing")
        if late is not None:
            late.release()
            assert late.wait_answered(30)
            ((request, reply),) = late.answers
            assert ending_refused(request, reply) in FENCED.values()
            assert broker.transactions()[name] == "Ongoing", "the late end was for another one"
            refused[Ending.of(request)] += 1
        if not commit:
            raise GivenUp

    commits = [True] * scale.commits + [False] * scale.aborts
    random.Random(scale.seed).shuffle(commits)
    batch, late = 0, None
    for commit in commits:
        before, held = proxy.requests[END_TXN], proxy.hold_next(END_TXN)
        between = partial(half_way, late, commit)
        if commit:
            writer.write(batch, 4, between=between)
            batch += 1
        else:
            with pytest.raises(GivenUp):
                writer.write(batch, 4, between=between, aborted=True)
        assert [Ending.of(each) for each in held.met] == [(name, commit)]
        assert proxy.requests[END_TXN] - before > 1, "the client did not ask again"
        late = held
    writer.write(batch, 4, between=partial(half_way, late, True))
    counted = [refused[Ending(name, commit)] for commit in (True, False)]
    scale.measured["came into the next transaction"] = "{} commits, {} aborts".format(*counted)
    assert counted == [scale.commits, scale.aborts]
    assert len(writer.sent) == scale.commits + 1
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


WRITER = """
import json, sys
from streamcore.registry import installed
from streamcore.spark.task import Task
from streamcore_kafka.messages import Messages
from streamcore_kafka.tickets import Ticket
from streamcore_kafka.transactions import Transaction

options, batch, values = json.loads(sys.argv[1])
kafka = installed().build("connector", "kafka", options)
keys = [f"b{batch}".encode()] * len(values)
messages = Messages([each.encode() for each in values], keys, kafka.topic[0])
task = Task(0, 0, "query", batch, "run")
Transaction(kafka.properties, Ticket.issue(kafka), task).write([messages])
"""


def killed_after_its_commit(writer, batch, rows):
    """Write a batch in a process that dies as soon as the broker has acknowledged its end."""
    values = [f'{{"key":"b{batch}","seq":{number}}}' for number in range(rows)]
    given = json.dumps([writer.options, batch, values])
    killed = subprocess.run(
        [sys.executable, "-c", WRITER, given],
        env={**os.environ, "STREAMCORE_FAILPOINT": "committed:kill"},
        timeout=120,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    writer.sent[f"b{batch}"] = rows


def markers_left(admin, writer):
    """The groups of a writer that still have a marker."""
    stem = f"{writer.prefix}-marker"
    asked = [ConsumerGroupTopicPartitions(group) for group in (stem, f"{stem}-0")]
    answers = [admin.list_consumer_group_offsets([each])[each.group_id].result() for each in asked]
    return [
        answer.group_id
        for answer in answers
        if any(place.offset >= 0 for place in answer.topic_partitions)
    ]


@scenario(15, small={"runs": 2, "minutes": 1}, full={"runs": 10, "minutes": 1}, always=False)
def test_a_marker_that_the_broker_forgot_after_the_commit_is_an_error_and_not_a_repetition(
    a_writer, scale
):
    """Its retention is over while the query is down, killed between its commit and Spark's."""
    short = {
        "offsets.retention.minutes": str(scale.minutes),
        "offsets.retention.check.interval.ms": "500",
    }
    with KafkaBroker(short) as forgetful:
        admin = forgetful.admin()
        writers = [a_writer(forgetful) for _ in range(scale.runs)]
        for writer in writers:
            writer.write(0, 5)
            killed_after_its_commit(writer, 1, 5)
            assert len(markers_left(admin, writer)) == 2
        killed = time.monotonic()
        for writer in writers:
            gone = partial(lambda each: not markers_left(admin, each), writer)
            wait_for(gone, 60 * scale.minutes + 60, pause=1)
        scale.measured["forgotten after"] = f"{time.monotonic() - killed:.0f} s"
        for writer in writers:
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
