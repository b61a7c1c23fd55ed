"""Kafka's own console tools read what we wrote, and we read what they wrote."""

from __future__ import annotations

import json
import subprocess

from streamcore import Column, Table
from streamcore.registry import installed
from streamcore.testing.services.kafka.tools import classpath
from streamcore.testing.services.process import java
from streamcore_kafka.messages import Messages
from streamcore_kafka.sender import Sender
from streamcore_kafka.source import KafkaReader


def test_the_console_consumer_reads_what_we_wrote(kafka, kafka_topic):
    topic = kafka_topic(partitions=2)
    values = [json.dumps({"id": at, "name": "zürich"}, ensure_ascii=False) for at in range(20)]
    keys = [f"key-{at}" for at in range(20)]
    with Sender.borrowed({"bootstrap.servers": kafka.bootstrap_servers}) as sender:
        payloads = [value.encode() for value in values]
        headers = [[("origin", b"ours")]] * 20
        sender.send(Messages(payloads, [key.encode() for key in keys], topic, headers=headers))
    told = kafka.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--topic", topic, "--from-beginning", "--max-messages", "20", "--timeout-ms", "50000"),
        *("--formatter-property", "print.key=true"),
        *("--formatter-property", "print.headers=true"),
    )
    expected = {f"origin:ours\t{key}\t{value}" for key, value in zip(keys, values, strict=True)}
    assert set(told.splitlines()) >= expected


def test_we_read_what_the_console_producer_wrote(kafka, kafka_topic):
    topic = kafka_topic(partitions=2)
    rows = [{"id": at, "name": "zürich"} for at in range(20)]
    lines = [f"k{row['id']}\t{json.dumps(row, ensure_ascii=False)}\n" for row in rows]
    subprocess.run(
        [
            *(java(), "-Xmx256m", "-Dfile.encoding=UTF-8", "-cp", classpath()),
            *("org.apache.kafka.tools.ConsoleProducer", "--topic", topic),
            *("--bootstrap-server", kafka.bootstrap_servers),
            *("--reader-property", "parse.key=true", "--compression-codec", "zstd"),
        ],
        input="".join(lines).encode(),
        check=True,
        capture_output=True,
        timeout=60,
    )
    options = {
        "properties.bootstrap.servers": kafka.bootstrap_servers,
        "topic": topic,
        "scan.startup.mode": "earliest-offset",
        "format": "json",
        "key.format": "raw",
        "key.fields": "k",
        "value.fields-include": "EXCEPT_KEY",
    }
    table = Table((Column("k", "STRING"), Column("id", "BIGINT"), Column("name", "STRING")), "t")
    reader = KafkaReader(installed().build("connector", "kafka", options), table)
    read = [
        row
        for task in reader.partitions()
        for batch in reader.read(task)
        for row in batch.to_pylist()
    ]
    assert sorted(read, key=lambda row: row["id"]) == [{"k": f"k{r['id']}", **r} for r in rows]
