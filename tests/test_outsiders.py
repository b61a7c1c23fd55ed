"""A connector of a stranger, in a real Spark, by nothing but being installed."""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

EXAMPLES = Path(__file__).parent.parent / "examples"
JOB = """
import json, sys
import streamcore
from pyspark.sql.types import StructType

spark = streamcore.session(master="local[2]", config={"spark.ui.enabled": "false"})
schema = StructType().add("symbol", "string").add("price", "double")
options = {"connector": "ticker", "ticks": "30", "ticks-per-batch": "7", "symbols": "A;B;C"}
batch = spark.read.format("streamcore").options(**options).schema(schema).load()
rows = sorted(tuple(row) for row in batch.collect())
stream = spark.readStream.format("streamcore").options(**options).schema(schema).load()
seen = []
query = stream.writeStream.foreachBatch(
    lambda frame, number: seen.append([tuple(row) for row in frame.collect()])
).option("checkpointLocation", sys.argv[1]).start()
while sum(map(len, seen)) < len(rows) and query.isActive:
    query.processAllAvailable()
query.stop()
streamed = sorted(row for part in seen for row in part)
print(json.dumps({"rows": len(rows), "equal": rows == streamed, "batches": len(seen)}))
spark.stop()
"""


@pytest.fixture
def site(tmp_path):
    """What an installer leaves: metadata with the entry point, and the package itself."""
    info = tmp_path / "site" / "streamcore_ticker-1.0.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: streamcore-ticker\nVersion: 1.0.0\n"
    )
    (info / "entry_points.txt").write_text("[streamcore]\nticker = streamcore_ticker\n")
    return os.pathsep.join([str(info.parent), str(EXAMPLES / "streamcore-ticker")])


def test_a_strangers_connector_reads_the_same_rows_in_batches_and_as_a_stream(site, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(tmp_path / "checkpoint")],
        env={**os.environ, "PYTHONPATH": site},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said == {"rows": 90, "equal": True, "batches": 5}


def test_a_strangers_connector_is_the_source_of_a_yaml_job(site, tmp_path, kafka):
    prefix = f"prices-{uuid.uuid4().hex[:8]}"
    topics = [f"{prefix}.ACME", f"{prefix}.INIT"]
    for topic in topics:
        kafka.create_topic(topic, 1, {})
    job = EXAMPLES / "streamcore-ticker" / "prices.yaml"
    given = {"brokers": kafka.bootstrap_servers, "prefix": prefix}
    command = [sys.executable, "-m", "streamcore.cli", "run", str(job), "--once"]
    for name, value in given.items():
        command += ["--var", f"{name}={value}"]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": site, "STREAMCORE_STATE": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])
    try:
        messages = consumer.consume(20, 30)
    finally:
        consumer.close()
    assert len(messages) == 20
    assert {tuple(message.headers()[0]) for message in messages} == {("origin", b"ticker")}
    told = {(m.topic(), json.loads(m.value())["after"]["symbol"]) for m in messages}
    assert told == {(topics[0], "ACME"), (topics[1], "INIT")}
