"""A Spark job over a stream that splits and merges all the time, killed and killed again."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from streamcore.testing.ledger import scenario

JOB = """
import json, os, sys
from pathlib import Path
import streamcore
from streamcore import Column, Table
from streamcore.spark.carrier import pack
from streamcore.spark.types import spark_schema

options, home, once = json.loads(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] == ["once"]
table = Table(
    (
        Column("n", "BIGINT"),
        Column("key", "STRING"),
        Column("sequence", "STRING", metadata="sequence-number", virtual=True),
    ),
    "t",
)
quiet = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
}
spark = streamcore.session("kills", "local[2,20]", quiet)

def keep(batch, number):
    rows = [[row.n, row.key, row.sequence] for row in batch.collect()]
    kept = home / f"batch-{number:06}.json"
    if kept.exists() and json.loads(kept.read_text()) != rows:
        (home / f"differs-{number}").touch()
    (home / "new").write_text(json.dumps(rows))
    os.replace(home / "new", kept)

frame = spark.readStream.format("streamcore").options(**pack(options, table))
frame = frame.schema(spark_schema(table.output)).load()
query = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(home / "checkpoint"))
query = query.trigger(availableNow=True) if once else query
query.start().awaitTermination()
"""


class Writer(threading.Thread):
    """Puts numbered records, each key's in order, while shards split and merge under it."""

    def __init__(self, client, stream, count, every, seed):
        super().__init__(daemon=True)
        self.client, self.stream, self.count, self.every = client, stream, count, every
        self.dice, self.reshards = random.Random(seed), 0

    def run(self):
        due = time.monotonic() + self.every
        for first in range(0, self.count, 100):
            numbers = range(first, min(first + 100, self.count))
            self.client.put_records(
                StreamName=self.stream,
                Records=[
                    {
                        "Data": json.dumps({"n": n, "key": f"k{n % 17}"}).encode(),
                        "PartitionKey": f"k{n % 17}",
                    }
                    for n in numbers
                ],
            )
            if time.monotonic() > due or (not self.reshards and 2 * first > self.count):
                self.reshard()
                due = time.monotonic() + self.every

    def reshard(self):
        client, stream = self.client, self.stream
        shards = client.list_shards(StreamName=stream, ShardFilter={"Type": "AT_LATEST"})["Shards"]
        shards.sort(key=lambda shard: int(shard["HashKeyRange"]["StartingHashKey"]))
        if len(shards) < 4:
            chosen = self.dice.choice(shards)
            low, high = (
                int(chosen["HashKeyRange"][k]) for k in ("StartingHashKey", "EndingHashKey")
            )
            client.split_shard(
                StreamName=stream,
                ShardToSplit=chosen["ShardId"],
                NewStartingHashKey=str((low + high) // 2),
            )
        else:
            at = self.dice.randrange(len(shards) - 1)
            client.merge_shards(
                StreamName=stream,
                ShardToMerge=shards[at]["ShardId"],
                AdjacentShardToMerge=shards[at + 1]["ShardId"],
            )
        self.reshards += 1
        summary = client.describe_stream_summary
        while summary(StreamName=stream)["StreamDescriptionSummary"]["StreamStatus"] != "ACTIVE":
            time.sleep(0.05)


def workers(pid):
    """The Python workers below a process: children of children, found by their parents."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = (int(fields[1]), "pyspark" in command)
    found, below = [], {pid}
    while grown := {child for child, (parent, _) in parents.items() if parent in below} - below:
        below |= grown
        found += [child for child in grown if parents[child][1]]
    leaves = {child for child in found if child not in {p for p, _ in parents.values()}}
    return sorted(leaves)


def batches(home):
    return [json.loads(path.read_text()) for path in sorted(home.glob("batch-*.json"))]


@scenario(
    20,
    small={"records": 2_000, "seconds": 2, "workers": 2, "jobs": 1},
    full={"records": 50_000, "seconds": 3, "workers": 12, "jobs": 4},
)
def test_nothing_is_lost_or_read_twice_and_keys_keep_their_order(
    kinesis, kinesis_stream, options, tmp_path, scale
):
    """A reshard every few seconds, while Python workers and whole jobs are killed."""
    count, worker_kills, job_kills = scale.records, scale.workers, scale.jobs
    stream = kinesis_stream(shards=2)
    given = options(
        stream,
        **{
            "connector": "kinesis",
            "source.init.position": "TRIM_HORIZON",
            "source.shard.discovery.interval": "1 s",
        },
    )
    writer = Writer(kinesis.client(direct=True), stream, count, scale.seconds, scale.seed)
    writer.start()
    done = {"worker": 0, "job": 0}
    dice = random.Random(scale.seed)
    deadline = time.monotonic() + 3000
    job, wounded = start(given, tmp_path), False
    try:
        while sum(map(len, batches(tmp_path))) < count or done["job"] < job_kills:
            assert time.monotonic() < deadline, f"{done}, {sum(map(len, batches(tmp_path)))} rows"
            if job.poll() is not None:  # the worker killed was the one that plans batches
                assert wounded, (tmp_path / "log").read_text()[-3000:]
                job, wounded = start(given, tmp_path), False
            seen = sum(map(len, batches(tmp_path)))
            if done["worker"] < worker_kills and seen > count * done["worker"] / worker_kills / 2:
                if leaves := workers(job.pid):
                    os.kill(dice.choice(leaves), signal.SIGKILL)
                    done["worker"] += 1
                    wounded = True
            elif done["job"] < job_kills and seen > count * (done["job"] + 1) / (job_kills + 1):
                stop(job)
                done["job"] += 1
                job, wounded = start(given, tmp_path), False
            time.sleep(0.5)
    finally:
        stop(job)
        writer.join(60)
    read = batches(tmp_path)
    rows = [row for batch in read for row in batch]
    assert sorted(n for n, _, _ in rows) == list(range(count))
    for key in {key for _, key, _ in rows}:
        own = [n for n, k, _ in rows if k == key]
        assert own == sorted(own), f"order within {key}"
    assert list(tmp_path.glob("differs-*")) == []
    assert writer.reshards > 0
    assert done == {"worker": worker_kills, "job": job_kills}


def test_a_killed_job_leaves_its_consumer_to_the_next_which_removes_it(
    kinesis, kinesis_stream, options, tmp_path
):
    stream = kinesis_stream(shards=1)
    client = kinesis.client(direct=True)
    given = options(
        stream,
        **{
            "connector": "kinesis",
            "source.init.position": "TRIM_HORIZON",
            "source.reader.type": "EFO",
            "source.efo.consumer.name": "ours",
        },
    )
    Writer(client, stream, 100, every=1000, seed=0).run()
    job = start(given, tmp_path)
    try:
        while not sum(map(len, batches(tmp_path))):
            assert job.poll() is None, (tmp_path / "log").read_text()[-3000:]
            time.sleep(0.5)
    finally:
        stop(job)
    assert consumers(client, stream) == ["ours"]
    Writer(client, stream, 100, every=1000, seed=0).run()
    assert start(given, tmp_path, "once").wait(300) == 0, (tmp_path / "log").read_text()[-3000:]
    rows = [row for batch in batches(tmp_path) for row in batch]
    assert [n for n, _, _ in rows] == [*range(100), *range(100)]
    assert len({sequence for _, _, sequence in rows}) == 200
    assert consumers(client, stream) == []


def consumers(client, stream):
    arn = client.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]["StreamARN"]
    return [c["ConsumerName"] for c in client.list_stream_consumers(StreamARN=arn)["Consumers"]]


def start(given, home, *how):
    with (home / "log").open("a") as log:
        return subprocess.Popen(
            [sys.executable, "-c", JOB, json.dumps(given), str(home), *how],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def stop(job):
    """All at once, as when a machine loses its power."""
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
