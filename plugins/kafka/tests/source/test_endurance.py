"""Large records, and brokers that go away for a while."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from streamcore.testing.services import KafkaBroker
from streamcore_kafka import consumers
from streamcore_kafka.fetching import Fetcher
from streamcore_kafka.progress import Range

READ = str(Path(__file__).parent / "reading_memory.py")


def test_memory_stays_bounded_by_bytes_and_not_by_the_number_of_records(
    kafka, produce, kafka_topic
):
    topic = kafka_topic(config={"max.message.bytes": "12000000"})
    record, count = os.urandom(10_000_000), 40
    produce(topic, [record] * count, settings={"message.max.bytes": 12_000_000})
    arguments = [kafka.bootstrap_servers, topic, str(count)]
    done = subprocess.run(
        [sys.executable, READ, *arguments], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    size, grown = (int(word) for word in done.stdout.split())
    assert size >= count * len(record)
    assert grown <= 300


def test_a_broker_that_restarts_is_waited_for(table, produce, people):
    little = {
        "properties.queued.min.messages": "1000",
        "properties.queued.max.messages.kbytes": "64",
    }
    with KafkaBroker() as broker:
        topic = broker.create_topic("restarted")
        servers = {"properties.bootstrap.servers": broker.bootstrap_servers}
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        produce(topic, people(60_000), settings=settings)
        chunks = Fetcher(table(topic, {**little, **servers}), [Range(topic, 0, 0, 60_000)]).chunks()
        offsets = [message.offset() for message in next(chunks)]
        restart = threading.Thread(target=lambda: (broker.kill(), broker.restart()))
        restart.start()
        offsets += [message.offset() for chunk in chunks for message in chunk]
        restart.join()
        consumers.close_all()
    assert offsets == list(range(60_000))


def test_a_forked_process_opens_consumers_of_its_own(table, produce, kafka_topic, people):
    topic = kafka_topic()
    produce(topic, people(10))
    kafka, whole = table(topic), [Range(topic, 0, 0, 10)]

    def count():
        return sum(len(chunk) for chunk in Fetcher(kafka, whole).chunks())

    assert count() == 10
    child = os.fork()
    if child == 0:
        os._exit(count())
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 10
    assert count() == 10
