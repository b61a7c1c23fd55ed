"""What fault tests share: a broker behind a proxy, a job that can be killed, and the verdict."""

from __future__ import annotations

import os
import time

import pytest
from streamcore.registry import installed
from streamcore.spark.task import Task
from streamcore.testing.ledger import Copy, CopyEnded, Ledger, LiveReader, compare, read_to_end
from streamcore.testing.ledger import job as copying
from streamcore.testing.services import KafkaBroker
from streamcore.testing.services.kafka import unique_name
from streamcore_kafka.messages import Messages
from streamcore_kafka.tickets import Ticket
from streamcore_kafka.transactions import Transaction


def pytest_configure(config):
    """One line for each test, also without `make soak`."""
    name = "streamcore.testing.ledger.report"
    if not config.pluginmanager.has_plugin(name):
        config.pluginmanager.import_plugin(name)


@pytest.fixture(scope="session")
def broker():
    """A broker behind a proxy, quick to give up transactions and offsets nobody wants."""
    quick = {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        "offsets.retention.check.interval.ms": "500",
        "log.retention.check.interval.ms": "500",
    }
    with KafkaBroker(quick, proxy=True) as broker:
        yield broker


@pytest.fixture(autouse=True)
def healed(request):
    """Faults of one test do not reach the next."""
    yield
    if "broker" in request.fixturenames:
        request.getfixturevalue("broker").proxy.heal()


class Here(Copy):
    """The same copy inside this process and its Spark: cheaper to start, gentler to end."""

    def __init__(self, spark, *arguments):
        super().__init__(*arguments)
        self._spark, self.query = spark, None

    def start(self, failpoint="", *, once=False):
        assert not failpoint, "failpoints are for processes"
        self.query = copying.start(self._spark, self.plan(once=once))

    @property
    def leader(self):
        return os.getpid()

    def said(self):
        return str(self.query.exception() or "")

    def check(self):
        if not self.query.isActive:
            raise CopyEnded(self.said() or "ended")

    def wait(self, timeout=300):
        """Wait for its end; 1 if it failed."""
        deadline = time.monotonic() + timeout
        while self.query.isActive and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not self.query.isActive, f"still running after {timeout} s"
        return int(self.query.exception() is not None)

    def wait_batch(self, timeout=300):
        deadline = time.monotonic() + timeout
        while not any(each.numInputRows for each in self.query.recentProgress):
            self.check()
            assert time.monotonic() < deadline, f"no batch in {timeout} s"
            time.sleep(0.1)

    def kill(self):
        if self.query is not None:
            self.query.stop()


class Bench:
    """A ledger, a job that copies it, a live reader of the copy, and the verdict."""

    def __init__(self, broker, scale, home, name, partitions=2, spark=None):
        self.broker, self.scale = broker, scale
        source, target = unique_name(f"{name}-in"), unique_name(f"{name}-out")
        for topic in (source, target):
            broker.create_topic(topic, partitions)
        self.ledger = Ledger(broker.direct_servers, source, seed=scale.seed)
        given = (broker.bootstrap_servers, source, target, home)
        self.copy = Copy(*given) if spark is None else Here(spark, *given)
        self.live = LiveReader(broker.direct_servers, target)
        self.restarts = 0

    @property
    def target(self):
        return self.copy.target

    def wait_for_all(self, timeout=300):
        """Wait until the copy is complete while the job runs; the seconds that took."""
        return self.live.wait_for(self.ledger.rows, timeout, self.copy.check)

    def revive(self):
        """Start the job again if it has failed, as whoever runs it would; count that."""
        try:
            self.copy.check()
        except CopyEnded:
            self.restarts += 1
            assert self.restarts < 20, self.copy.said()
            self.copy.start()

    def recovers(self, more, timeout=1200):
        """Send more rows after a fault has healed; the seconds until the copy went on.

        That is bounded, from the heal on; how long it takes to catch up depends on how much waits.
        """
        seen, healed = self.live.distinct, time.monotonic()
        self.ledger.send(more)
        left = self.scale.bound(60) - (time.monotonic() - healed)
        self.live.wait_for(seen + 1, left, self.revive)
        seconds = time.monotonic() - healed
        self.live.wait_for(self.ledger.rows, timeout, self.revive)
        return seconds

    def verdict(self, ordered=True, unread=()):
        """End the job and compare what was sent with what readers saw: all but what is `unread`."""
        self.copy.kill()
        final = read_to_end(self.broker.direct_servers, self.target)
        live = self.live
        live.wait_for(len({row[:2] for row in final}), 30)
        findings = compare(self.ledger.sent, final, live.stop(), ordered=ordered)
        findings.lost = [row for row in findings.lost if row[:2] not in unread]
        assert not findings, f"seed {self.scale.seed}: {findings}"
        assert len(final) == self.ledger.rows - len(unread) > 0

    def close(self):
        self.copy.kill()
        self.live.stop()


@pytest.fixture
def bench(scale, tmp_path, request):
    """Makes such a bench: `bench(broker)`; with a Spark session, the job runs in that."""
    made = []

    def make(broker, partitions=2, spark=None):
        name, home = request.node.originalname[5:35], tmp_path / f"job-{len(made)}"
        made.append(Bench(broker, scale, home, name, partitions, spark))
        return made[-1]

    yield make
    for each in made:
        each.close()


class Writer:
    """One task of a query, batch by batch, without Spark around it."""

    def __init__(self, broker, partitions=2, **options):
        self.topic = broker.create_topic(unique_name("transactions"), partitions)
        self.prefix = f"prefix-{self.topic}"
        self.options = {
            "properties.bootstrap.servers": broker.bootstrap_servers,
            "topic": self.topic,
            "format": "json",
            "sink.delivery-guarantee": "exactly-once",
            "sink.transactional-id-prefix": self.prefix,
            **options,
        }
        self.sent = {}
        self._servers = broker.direct_servers
        self.live = LiveReader(self._servers, self.topic)

    def write(self, batch, rows, run="run", between=lambda: None, aborted=False):
        """Write a batch; `between` is called in mid-transaction."""
        kafka = installed().build("connector", "kafka", self.options)
        task = Task(0, 0, "query", batch, run)

        def messages():
            for number in range(rows):
                if number == rows // 2:
                    between()
                sequence = -1 - number if aborted else number
                text = f'{{"key":"b{batch}","seq":{sequence}}}'
                yield Messages([text.encode()], [f"b{batch}".encode()], self.topic)

        Transaction(kafka.properties, Ticket.issue(kafka), task).write(messages())
        if not aborted:
            self.sent[f"b{batch}"] = rows

    def verify(self, seed):
        """Compare what was written with what readers saw."""
        final = read_to_end(self._servers, self.topic)
        self.live.wait_for(len(final), 30)
        findings = compare(self.sent, final, self.live.stop())
        assert not findings, f"seed {seed}: {findings}"


@pytest.fixture
def a_writer():
    """Makes such writers: `a_writer(broker, **options)`."""
    made = []

    def make(broker, **options):
        made.append(Writer(broker, **options))
        return made[-1]

    yield make
    for each in made:
        each.live.stop()
