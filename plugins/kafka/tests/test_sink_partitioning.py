"""Keys land in the partitions Java's own producer chooses."""

from __future__ import annotations

import subprocess
import time

from streamcore.testing.services.kafka.tools import classpath
from streamcore.testing.services.process import java
from streamcore_kafka.messages import Messages
from streamcore_kafka.sender import Sender

KEYS = [
    "",
    "a",
    "ab",
    "abc",
    "abcd",
    "zürich",
    "日本",
    *(f"key-{number}" for number in range(300)),
]


def placed(messages):
    return {message.key(): message.partition() for message in messages}


def test_every_key_lands_where_javas_producer_puts_it(kafka, kafka_topic, records):
    javas, ours = kafka_topic(7), kafka_topic(7)
    lines = "".join(f"{key}\t{key}!\n" for key in KEYS)
    subprocess.run(
        [
            *(java(), "-Xmx256m", "-Dfile.encoding=UTF-8", "-cp", classpath()),
            *("org.apache.kafka.tools.ConsoleProducer", "--topic", javas),
            *("--bootstrap-server", kafka.bootstrap_servers),
            *("--reader-property", "parse.key=true"),
        ],
        input=lines.encode(),
        check=True,
        capture_output=True,
        timeout=60,
    )
    with Sender.borrowed({"bootstrap.servers": kafka.bootstrap_servers}) as sender:
        sender.send(
            Messages([f"{key}!".encode() for key in KEYS], [k.encode() for k in KEYS], ours)
        )
    expected = placed(records(javas))
    assert len(expected) == len(KEYS)
    assert len(set(expected.values())) == 7
    assert placed(records(ours)) == expected


def test_messages_without_a_key_go_everywhere(kafka, kafka_topic, records):
    topic = kafka_topic(3)
    with Sender.borrowed({"bootstrap.servers": kafka.bootstrap_servers}) as sender:
        for _ in range(60):  # a partition is kept for 10 ms, and the next one drawn by lot
            sender.send(Messages([b"x" * 1000] * 100, None, topic))
            time.sleep(0.02)
    assert {message.partition() for message in records(topic)} == {0, 1, 2}
