"""The same jobs on a cluster of separate processes, whose executors are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from streamcore.testing.ledger import scenario
from streamcore.testing.services import SparkCluster, spark_classes

SMALL = {
    "spark.executor.extraJavaOptions": spark_classes.options(),  # starts sooner
    "spark.executor.memory": "512m",
    "spark.driver.memory": "700m",
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
}


@pytest.fixture(scope="module")
def workers():
    """A master and two workers of one core each."""
    with SparkCluster(workers=2) as cluster:
        yield cluster


def kill_executor(workers, dice):
    deadline = time.monotonic() + 120
    while not (running := workers.executors()):
        assert time.monotonic() < deadline, "no executor came back"
        time.sleep(0.5)
    os.kill(dice.choice(running), signal.SIGKILL)


@scenario(3, small={"rows": 2_000, "kills": 1}, full={"rows": 1_000_000, "kills": 20})
def test_executors_killed_under_a_copy_leave_each_row_once(broker, workers, bench, scale):
    dice = random.Random(scale.seed)
    bench = bench(broker)
    bench.copy.master = workers.master
    bench.copy.spark |= SMALL
    bench.copy.source["scan.max-rows-per-batch"] = str(max(1000, scale.rows // 100))
    bench.ledger.send(scale.rows // 2)
    bench.copy.start()
    bench.copy.wait_batch(600)
    seconds = []
    for kill in range(scale.kills):
        if kill:
            time.sleep(dice.uniform(0, 3))
        bench.ledger.send(scale.rows // 2 // scale.kills)
        kill_executor(workers, dice)
        seconds.append(bench.recovers(10))
    bench.verdict()
    scale.measured["slowest recovery"] = f"{max(seconds):.0f} s"
    scale.measured["restarts of the job"] = str(bench.restarts)


@scenario(4, small={"rows": 100_000}, full={"rows": 200_000}, always=False)
def test_a_slow_task_and_the_twin_that_spark_gives_it_leave_each_row_once(broker, bench, scale):
    """One worker sleeps before each commit, until Spark has its task done by the other one, too."""
    sleeping = {1: {"STREAMCORE_FAILPOINT": "commit:sleep=30"}}
    with SparkCluster(workers=2, apart=True, environments=sleeping) as workers:
        bench = bench(broker)
        bench.copy.master = workers.master
        events = bench.copy.home / "events"
        events.mkdir(parents=True)
        bench.copy.spark |= SMALL | {
            "spark.speculation": "true",
            "spark.speculation.interval": "100ms",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.quantile": "0.5",
            "spark.speculation.minTaskRuntime": "1s",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": str(events),
        }
        bench.copy.source |= {
            "scan.max-rows-per-batch": "25000",  # worth two tasks, of which one is done in time
            "scan.parallelism": "2",
        }
        bench.ledger.send(scale.rows)
        bench.copy.start()
        bench.wait_for_all(timeout=900)
        while twins_of(tasks_of(events)) < scale.rows // 50_000:  # Spark chooses who gets a task
            assert bench.ledger.rows < 10 * scale.rows, (
                f"too few twins of {len(tasks_of(events))} tasks"
            )
            bench.ledger.send(25_000)
            bench.wait_for_all(timeout=900)
        bench.verdict()
    tasks = tasks_of(events)
    killed = sum(each["Task End Reason"]["Reason"] == "TaskKilled" for each in tasks)
    scale.measured["twins"] = str(twins_of(tasks))
    assert killed >= twins_of(tasks) // 2, "the slow attempts were waited for"


def tasks_of(events):
    """The tasks that have ended, from the event log, whose last line may not be whole yet."""
    logs = [log.read_text(errors="replace") for log in events.rglob("events*") if log.is_file()]
    lines = [line for log in logs for line in log.rpartition("\n")[0].splitlines()]
    return [
        task for line in lines if (task := json.loads(line))["Event"].endswith("ListenerTaskEnd")
    ]


def twins_of(tasks):
    return sum(each["Task Info"]["Speculative"] for each in tasks)


COUNTS = """
CREATE TABLE rows_in (`key` STRING, seq BIGINT) WITH (
  'connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
  'properties.bootstrap.servers' = '{servers}', 'scan.startup.mode' = 'earliest-offset',
  'scan.max-rows-per-batch' = '{rows}');
CREATE TABLE counts (`key` STRING, n BIGINT, PRIMARY KEY (`key`) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{target}', 'key.format' = 'json',
  'value.format' = 'json', 'properties.bootstrap.servers' = '{servers}');
INSERT INTO counts SELECT `key`, COUNT(*) AS n FROM rows_in GROUP BY `key`;
"""


@scenario(3, small={"rows": 4_000, "kills": 1}, full={"rows": 200_000, "kills": 5}, always=False)
def test_counts_kept_in_state_survive_killed_executors(broker, workers, bench, scale, tmp_path):
    dice = random.Random(scale.seed)
    bench = bench(broker)
    script = tmp_path / "counts.sql"
    names = {"source": bench.ledger.topic, "target": bench.target, "rows": scale.rows // 8}
    script.write_text(COUNTS.format(servers=broker.direct_servers, **names))
    bench.live.stop()  # what is written is no ledger
    bench.ledger.send(scale.rows // 2)
    command = [str(Path(sys.executable).parent / "streamcore"), "run", str(script)]
    settings = [word for pair in SMALL.items() for word in ("--set", "=".join(pair))]
    settings += ["--set", "spark.driver.host=127.0.0.1", "--master", workers.master]
    with (tmp_path / "said.log").open("wb") as said:
        job = subprocess.Popen(
            [*command, *settings],
            env={**os.environ, "STREAMCORE_STATE": str(tmp_path / "state")},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until(broker, bench, lambda counts: counts, job, tmp_path)
        for _ in range(scale.kills):
            bench.ledger.send(scale.rows // 2 // scale.kills)
            kill_executor(workers, dice)
            until(broker, bench, lambda counts: counts == bench.ledger.sent, job, tmp_path)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait(30)


def until(broker, bench, condition, job, home, timeout=600):
    deadline = time.monotonic() + timeout
    while not condition(counts := latest(broker, bench.target)):
        assert job.poll() is None, (home / "said.log").read_text(errors="replace")[-3000:]
        assert time.monotonic() < deadline, f"{counts} instead of {bench.ledger.sent}"
        time.sleep(1)


def latest(broker, topic):
    """The last count of every key."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.direct_servers,
            "group.id": "latest",
            "enable.partition.eof": True,
        }
    )
    numbers = list(consumer.list_topics(topic, 30).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
    found, ended = {}, set()
    while len(ended) < len(numbers):
        for message in consumer.consume(1000, 0.1):
            if message.error():
                ended.add(message.partition())
            else:
                row = json.loads(message.value())
                found[row["key"]] = row["n"]
    consumer.close()
    return found
