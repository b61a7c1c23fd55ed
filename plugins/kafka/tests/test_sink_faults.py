"""Brokers that die, freeze or crawl, and requests that come late or get lost."""

from __future__ import annotations

import signal
import threading
import time

import pytest
from streamcore import ConnectionFailed
from streamcore.testing.services import KafkaBroker
from streamcore.testing.services.proxy import END_TXN, Way
from streamcore_kafka.messages import Messages
from streamcore_kafka.sender import Sender
from streamcore_kafka.tickets import TransactionRefused


@pytest.fixture(scope="module")
def kafka():
    """A broker of our own behind a proxy, quick to give up transactions nobody ends."""
    quick = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
    with KafkaBroker(quick, proxy=True) as broker:
        yield broker


@pytest.fixture(autouse=True)
def healed(kafka):
    yield
    kafka.proxy.heal()


def values(messages):
    return sorted(message.value().decode() for message in messages)


def expected(*places, rows=5):
    return sorted(f"{batch}-{task}-{n}" for batch, task in places for n in range(rows))


def settings(kafka, **more):
    named = {key.replace("_", "."): value for key, value in more.items()}
    return {"bootstrap.servers": kafka.bootstrap_servers, **named}


# --- at least once -------------------------------------------------------------------------------


def send_two(kafka, topic, between):
    """Send a message, break something, and send another."""
    with Sender.borrowed(settings(kafka, delivery_timeout_ms="3000")) as sender:
        sender.send(Messages([b"arrives"], None, topic))
        sender.flush()
        between()
        sender.send(Messages([b"does not"], None, topic))


def test_a_silent_broker_fails_the_task_when_the_delivery_timeout_is_over(kafka, kafka_topic):
    topic = kafka_topic()
    began = time.monotonic()
    with pytest.raises(ConnectionFailed) as failed:
        send_two(kafka, topic, kafka.proxy.hold)
    assert time.monotonic() - began < 15
    assert str(failed.value).startswith(
        f"topic '{topic}': not delivered within 'properties.delivery.timeout.ms' (3000 ms): "
        f"Kafka broker {kafka.bootstrap_servers} does not answer: "
    )


def test_a_broker_that_is_gone_fails_the_task_with_the_reason(kafka, kafka_topic):
    topic = kafka_topic()

    def vanish():
        kafka.proxy.refuse()
        kafka.proxy.cut()

    with pytest.raises(ConnectionFailed, match="Connection refused") as failed:
        send_two(kafka, topic, vanish)
    assert str(failed.value).startswith(f"topic '{topic}': ")


def test_a_broker_that_freezes_for_a_while_only_delays(kafka, kafka_topic, records):
    topic = kafka_topic()
    with Sender.borrowed(settings(kafka)) as sender:
        sender.send(Messages([b"1"], None, topic))
        kafka.pause()
        threading.Timer(3, kafka.resume).start()
        sender.send(Messages([b"2"], None, topic))
    assert values(records(topic)) == ["1", "2"]


def test_a_slow_broker_slows_the_task_and_memory_stays_bounded(kafka, kafka_topic, records):
    topic, most = kafka_topic(), 256 * 1024
    kafka.proxy.throttle(1_000_000)
    waiting = []
    began = time.monotonic()
    with Sender.borrowed(settings(kafka, buffer_memory=str(most))) as sender:
        for _ in range(20):
            sender.send(Messages([b"x" * 1000] * 100, None, topic))
            waiting.append(len(sender.producer))
    assert time.monotonic() - began > 1.5
    assert max(waiting) * 1000 <= most
    kafka.proxy.heal()
    assert len(records(topic)) == 2000


# --- exactly once ---------------------------------------------------------------------------------


def test_a_commit_that_comes_late_does_not_end_the_next_transaction(kafka, job, records):
    late = kafka.proxy.hold_next(END_TXN)
    killed = job.start(batch=0)
    assert late.wait(60)
    killed.kill()
    assert killed.wait(10) == -signal.SIGKILL
    job.write(batch=0, run="second")
    half_way = job.start(batch=1, run="second", pause=4)
    assert half_way.stdout.readline() == "half way\n"
    late.release()
    assert values(records(job.topic)) == expected((0, 0))
    assert half_way.wait(30) == 0
    assert values(records(job.topic)) == expected((0, 0), (1, 0))


def test_a_commit_whose_answer_is_lost_counts_once(kafka, job, records):
    lost = kafka.proxy.cut_next(END_TXN, Way.REPLIES)
    job.write(batch=0)
    assert lost.wait(1)
    job.write(batch=1)
    assert values(records(job.topic)) == expected((0, 0), (1, 0))


def test_a_commit_that_is_lost_on_its_way_is_sent_again(kafka, job, records):
    lost = kafka.proxy.cut_next(END_TXN)
    job.write(batch=0)
    assert lost.wait(1)
    assert values(records(job.topic)) == expected((0, 0))


def test_a_broker_that_freezes_in_mid_transaction_only_delays(kafka, job, records):
    running = job.start(pause=2)
    assert running.stdout.readline() == "half way\n"
    kafka.pause()
    time.sleep(4)
    kafka.resume()
    assert running.wait(60) == 0
    assert values(shown(records, job.topic)) == expected((0, 0))


def shown(records, topic):
    """What a topic holds, once the broker shows what was committed: it may take its time."""
    deadline = time.monotonic() + 60
    while not (found := records(topic)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def test_a_transaction_open_for_too_long_names_the_option(kafka, kafka_topic, records, a_job):
    short = {"properties.transaction.timeout.ms": "2000"}
    job = a_job(kafka.bootstrap_servers, kafka_topic(), **short)
    slow = job.start(pause=5)
    _, said = slow.communicate(timeout=60)
    assert slow.returncode == 1
    told = said.splitlines()[-1]
    assert f"transaction 'prefix-{job.topic}-0' was open for" in told
    assert "'properties.transaction.timeout.ms' (2000 ms); raise that, or write smaller" in told
    job.write(run="second")
    assert values(records(job.topic)) == expected((0, 0))


def test_a_transaction_left_open_ends_with_its_timeout(kafka, kafka_topic, records, a_job):
    short = {"properties.transaction.timeout.ms": "2000"}
    job = a_job(kafka.bootstrap_servers, kafka_topic(), **short)
    assert job.start("commit:kill").wait(60) == -signal.SIGKILL
    time.sleep(4)
    assert records(job.topic) == []


def test_a_task_that_is_told_to_stop_leaves_no_open_transaction(kafka, job, records):
    ticket = job.ticket()

    def interrupted():
        yield Messages([b"never"], None, job.topic)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job.transaction(ticket=ticket).write(interrupted())
    assert records(job.topic) == []
    with pytest.raises(TransactionRefused, match="no marker of an earlier batch"):
        job.write(batch=3)
