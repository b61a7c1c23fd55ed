"""What the tests of this package share: reading a topic, and a query that can be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from streamcore.registry import installed
from streamcore.spark.task import Task
from streamcore_kafka import client, consumers, sender
from streamcore_kafka.messages import Messages
from streamcore_kafka.tickets import Ticket
from streamcore_kafka.transactions import Transaction


@pytest.fixture(scope="module", autouse=True)
def _no_client_outlives_the_brokers_of_its_module(kafka):
    yield
    consumers.close_all()
    sender.close_all()
    client._of_group.cache_clear()
    client._ASKING.close()


@pytest.fixture
def records(kafka) -> Callable[..., list[Message]]:
    """Reads a whole topic, by default only what is committed: `records(topic) -> [message]`."""

    def read(
        topic: str, isolation: str = "read_committed", timeout: float = 20, servers: str = ""
    ) -> list[Message]:
        consumer = Consumer(
            {
                "bootstrap.servers": servers or kafka.bootstrap_servers,
                "group.id": "test-reader",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "enable.partition.eof": True,
            }
        )
        try:
            return _all(consumer, topic, timeout)
        finally:
            consumer.close()

    return read


def _all(consumer: Consumer, topic: str, timeout: float) -> list[Message]:
    partitions = sorted(consumer.list_topics(topic, 10).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    ended: set[int] = set()
    found: list[Message] = []
    end = time.monotonic() + timeout
    while len(ended) < len(partitions) and time.monotonic() < end:
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                found.append(message)
            else:
                ended.add(message.partition())
    assert len(ended) == len(partitions), f"topic {topic} did not end in {timeout} s"
    return found


WRITER = """
import json, sys, time
from streamcore.registry import installed
from streamcore.spark.task import Task
from streamcore_kafka.messages import Messages
from streamcore_kafka.tickets import Ticket
from streamcore_kafka.transactions import Transaction

given = json.loads(sys.argv[1])
kafka = installed().build("connector", "kafka", given["options"])

def rows():
    for number in range(given["rows"]):
        text = f"{given['batch']}-{given['task']}-{number}"
        yield Messages([text.encode()], None, kafka.topic[0])
        if number == 2:
            print("half way", flush=True)
            time.sleep(given["pause"])

ticket = Ticket.issue(kafka)
task = Task(given["task"], 0, given["query"], given["batch"], given["run"])
Transaction(kafka.properties, ticket, task).write(rows())
"""


class Job:
    """A query whose tasks are run one by one, here or in a process that can be killed."""

    def __init__(self, servers: str, topic: str, query: str = "query", **options: str) -> None:
        self.topic, self.query = topic, query
        self.options = {
            "properties.bootstrap.servers": servers,
            "topic": topic,
            "format": "json",
            "sink.delivery-guarantee": "exactly-once",
            "sink.transactional-id-prefix": f"prefix-{topic}",
            **options,
        }

    def connector(self):
        return installed().build("connector", "kafka", self.options)

    def ticket(self):
        return Ticket.issue(self.connector())

    def transaction(self, batch=0, task=0, run="first", ticket=None):
        where = Task(task, 0, self.query, batch, run)
        return Transaction(self.connector().properties, ticket or self.ticket(), where)

    def write(self, batch=0, task=0, run="first", rows=5, ticket=None, text="{}-{}-{}"):
        messages = [
            Messages([text.format(batch, task, number).encode()], None, self.topic)
            for number in range(rows)
        ]
        return self.transaction(batch, task, run, ticket).write(messages)

    def start(self, failpoint="", batch=0, task=0, run="first", rows=5, pause=0):
        given = {"options": self.options, "query": self.query, "batch": batch, "task": task}
        given |= {"run": run, "rows": rows, "pause": pause}
        return subprocess.Popen(
            [sys.executable, "-c", WRITER, json.dumps(given)],
            env={**os.environ, "STREAMCORE_FAILPOINT": failpoint},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def a_job():
    """The class of such queries."""
    return Job


@pytest.fixture
def job(kafka, kafka_topic):
    """Such a query with a topic of its own."""
    return Job(kafka.bootstrap_servers, kafka_topic(2))
