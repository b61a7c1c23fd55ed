"""A count of words that is killed in the middle ends as if nothing had happened."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import functions as F
from streamcore import Column, Table
from streamcore.registry import installed
from streamcore.spark.carrier import pack
from streamcore.spark.types import spark_schema
from streamcore.testing.ledger import scenario
from streamcore.testing.services.listening import session_of

KIND = Column("_row_kind", "STRING", metadata="row-kind", virtual=True)
COLUMNS = (Column("id", "BIGINT", nullable=False), Column("word", "STRING"))
STATE = Table(COLUMNS, "state", ("id",))
CHANGES = Table((*COLUMNS, KIND), "state", ("id",))
JOB = """
import sys
import streamcore
from streamcore_sql import Session

quiet = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
spark = streamcore.session("words", "local[2]", quiet)
Session(spark, name="words", checkpoint=sys.argv[2]).execute(sys.argv[1]).wait()
"""
SCRIPT = """
CREATE TABLE words (word STRING, gone BOOLEAN) WITH (
  'connector' = 'kafka', 'topic' = '{source}', 'properties.bootstrap.servers' = '{servers}',
  'scan.startup.mode' = 'earliest-offset', 'scan.max-rows-per-batch' = '{batch}',
  'format' = 'json');
CREATE TABLE counts (word STRING, n BIGINT, PRIMARY KEY (word) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{target}',
  'properties.bootstrap.servers' = '{servers}', {guarantee}
  'key.format' = 'json', 'value.format' = 'json');
INSERT INTO counts SELECT word, COUNT(*) FROM words GROUP BY word;
"""
EXACTLY = "'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{target}',"


def latest(servers, topic):
    """The table as another client sees it: the last value of every key."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "check",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            "isolation.level": "read_committed",
        }
    )
    partitions = list(consumer.list_topics(topic).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found, ended = {}, 0
    while ended < len(partitions):
        message = consumer.poll(60)
        assert message is not None, "the topic gives no end"
        if message.error():
            ended += 1
            continue
        value = message.value()
        found[json.loads(message.key())["word"]] = value and json.loads(value)["n"]
    consumer.close()
    return found


def test_words_are_counted_right_although_the_job_is_killed(kafka, kafka_topic, tmp_path):
    count_words(kafka, kafka_topic, tmp_path, "", random.Random(3), 3_000)


@scenario(1, small={"rows": 3_000}, full={"rows": 30_000}, always=False)
def test_words_are_counted_right_in_transactions_although_the_job_is_killed(
    kafka, kafka_topic, tmp_path, scale
):
    count_words(kafka, kafka_topic, tmp_path, EXACTLY, random.Random(scale.seed), scale.rows)


def count_words(kafka, kafka_topic, tmp_path, guarantee, dice, rows):
    servers = kafka.bootstrap_servers
    source, target = kafka_topic(2), kafka_topic(4, {"cleanup.policy": "compact"})
    script = SCRIPT.format(
        source=source,
        target=target,
        servers=servers,
        batch=max(1000, rows // 20),
        guarantee=guarantee.format(target=target),
    )
    words = [f"word-{dice.randrange(50)}" for _ in range(rows)]
    expected = dict(Counter(words))

    produce(servers, source, words[:1000])
    job = start(script, tmp_path)
    try:
        wait_until(lambda: len(latest(servers, target)) == 50, job, tmp_path)
        produce(servers, source, words[1000:])  # so that there is something to be killed in
        time.sleep(dice.random())
        stop(job)
        job = start(script, tmp_path)
        wait_until(lambda: latest(servers, target) == expected, job, tmp_path)
    finally:
        stop(job)
    assert latest(servers, target) == expected


def produce(servers, topic, words):
    producer = Producer({"bootstrap.servers": servers})
    for word in words:
        producer.produce(topic, json.dumps({"word": word}).encode(), word.encode())
    producer.flush()


def wait_until(done, job, home):
    deadline = time.monotonic() + 400  # machines are shared
    while not done():
        assert time.monotonic() < deadline, f"not done in time:\n{said(home)}"
        assert job.poll() is None, f"ended with status {job.returncode}:\n{said(home)}"
        time.sleep(0.3)


def said(home):
    """The log of the jobs, but for the frames of Java's stack traces."""
    lines = (home / "log").read_text(errors="replace").splitlines()
    return "\n".join([line for line in lines if not line.startswith("\tat ")][-200:])


def start(script, home):
    with (home / "log").open("a") as log:
        return subprocess.Popen(
            [sys.executable, "-c", JOB, script, str(home / "checkpoint")],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def stop(job):
    """All at once, as when a machine loses its power; workers notice a little later."""
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    deadline = time.monotonic() + 60
    while any(map(runs, session_of(job.pid))):
        assert time.monotonic() < deadline, "workers outlive their job"
        time.sleep(0.1)


def runs(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""  # empty: dead, but not buried
    return False


@scenario(3, small={"keys": 10_000}, full={"keys": 1_000_000}, always=False)
def test_a_million_keys_of_state_are_taken_up_again_within_a_minute(
    spark, kafka, kafka_topic, tmp_path, scale
):
    topic, keys = kafka_topic(4), scale.keys
    options = {
        "topic": topic,
        "properties.bootstrap.servers": kafka.bootstrap_servers,
        "key.format": "json",
        "value.format": "json",
        "changelog.normalize": "true",
    }
    connector = installed().build("connector", "upsert-kafka", options)
    named = {"connector": "upsert-kafka", **options}

    def write(rows, word):
        frame = spark.range(0, rows, 1, 2).select("id", F.lit(word).alias("word"))
        frame.write.format("streamcore").options(**pack(named, STATE)).mode("append").save()

    def load(table):
        reader = spark.readStream.format("streamcore").options(**pack(named, table))
        return reader.schema(spark_schema(table.output)).load()

    def run():
        told = []
        frame = connector.stream_frame(load, CHANGES)
        writer = frame.writeStream.outputMode("update")
        writer = writer.foreachBatch(lambda batch, _: told.append(kinds(batch)))
        writer = writer.option("checkpointLocation", str(tmp_path / "state"))
        began = time.monotonic()
        writer.trigger(availableNow=True).start().awaitTermination()
        return sum(told, Counter()), time.monotonic() - began

    write(keys, "first")
    assert run()[0] == {"+I": keys}
    write(1_000, "second")
    found, seconds = run()
    assert found == {"-U": 1_000, "+U": 1_000}
    assert seconds <= scale.bound(60)
    scale.measured["taken up again in"] = f"{seconds:.0f} s"


def kinds(batch):
    return Counter(
        {row["_row_kind"]: row["count"] for row in batch.groupBy("_row_kind").count().collect()}
    )
