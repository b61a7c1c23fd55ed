"""Slices of time are complete, disjoint and equal on replay, also while shards split and merge."""

import base64
import hashlib
import json
import random
import threading
import time
from types import SimpleNamespace

import pytest
from streamcore import Column, RecordError, Table
from streamcore_kinesis import probing
from streamcore_kinesis.aggregation import pack


class Producer(threading.Thread):
    """Puts numbered records with a few keys until it is stopped."""

    def __init__(self, client, stream, seed):
        super().__init__(daemon=True)
        self.client, self.stream, self.dice = client, stream, random.Random(seed)
        self.sent, self.running = 0, True

    def run(self):
        while self.running:
            count = self.dice.randint(1, 20)
            records = []
            for n in range(self.sent, self.sent + count):
                key = f"k{n % 7}"
                data = json.dumps({"n": n, "key": key}).encode()
                records.append({"Data": data, "PartitionKey": key})
            self.client.put_records(StreamName=self.stream, Records=records)
            self.sent += count
            time.sleep(self.dice.random() * 0.05)

    def stop(self):
        self.running = False
        self.join()
        return self.sent


def settle(job, rows, expected, seconds=40):
    deadline = time.monotonic() + seconds
    while len(rows) < expected and time.monotonic() < deadline:
        rows += job.step() or []
        time.sleep(0.1)
    return rows


def check(rows, expected):
    numbers = [row["n"] for row in rows]
    assert sorted(numbers) == list(range(expected))
    for key in {row["key"] for row in rows}:
        own = [row["n"] for row in rows if row["key"] == key]
        assert own == sorted(own), f"order within {key}"


def test_a_live_stream_is_read_once_and_replays_are_equal(kinesis, kinesis_stream, options, job):
    stream = kinesis_stream(shards=2)
    run = job(options(stream, **{"source.init.position": "TRIM_HORIZON"}))
    producer = Producer(kinesis.client(), stream, seed=1)
    producer.start()
    rows, batches = [], 0
    deadline = time.monotonic() + 60
    while batches < 4 and time.monotonic() < deadline:
        start, end = run.offset, run.end()
        if end != start:
            found = run.read(start, end)
            assert run.read(start, end) == found
            rows += found
            run.offset = end
            batches += 1
        time.sleep(0.1)
    check(settle(run, rows, producer.stop()), producer.sent)
    assert batches == 4


def test_splits_and_merges_lose_nothing_and_keep_the_order_of_keys(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=2)
    client = kinesis.client()
    run = job(
        options(
            stream,
            **{"source.init.position": "TRIM_HORIZON", "source.shard.discovery.interval": "500 ms"},
        )
    )
    producer = Producer(client, stream, seed=2)
    producer.start()
    rows = []
    for turn in range(4):
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            rows += run.step() or []
            time.sleep(0.1)
        reshard(client, stream, split=turn % 2 == 0)
        # A restart in the middle: nothing but the offset is kept.
        run = job(
            options(stream, **{"source.shard.discovery.interval": "500 ms"}), offset=run.offset
        )
    check(settle(run, rows, producer.stop()), producer.sent)
    assert len(client.list_shards(StreamName=stream)["Shards"]) > 2


def test_a_split_of_a_split_and_their_merge_are_read_in_order_in_one_go(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=1)
    client, sent = kinesis.client(), 0
    for split in (True, True, False, None):
        keys = [f"k{n % 7}" for n in range(sent, sent + 35)]
        lines = [json.dumps({"n": sent + n, "key": key}).encode() for n, key in enumerate(keys)]
        client.put_records(
            StreamName=stream,
            Records=[
                {"Data": data, "PartitionKey": key} for data, key in zip(lines, keys, strict=True)
            ],
        )
        sent += 35
        if split is not None:
            reshard(client, stream, split)
    run = job(options(stream, **{"source.init.position": "TRIM_HORIZON"}))
    run.reader.prepareForTriggerAvailableNow()
    rows = []
    while (found := run.step()) is not None:
        rows += found
    check(rows, sent)
    named = {shard["ShardId"] for shard in client.list_shards(StreamName=stream)["Shards"]}
    assert len(named) == 6
    assert len(run.offset["shards"]) == 2  # those that ended have left


def reshard(client, stream, split):
    shards = client.list_shards(StreamName=stream, ShardFilter={"Type": "AT_LATEST"})["Shards"]
    shards.sort(key=lambda s: int(s["HashKeyRange"]["StartingHashKey"]))
    if split:
        low, high = (
            int(shards[0]["HashKeyRange"][k]) for k in ("StartingHashKey", "EndingHashKey")
        )
        client.split_shard(
            StreamName=stream,
            ShardToSplit=shards[0]["ShardId"],
            NewStartingHashKey=str((low + high) // 2),
        )
    else:
        client.merge_shards(
            StreamName=stream,
            ShardToMerge=shards[0]["ShardId"],
            AdjacentShardToMerge=shards[1]["ShardId"],
        )
    while (
        client.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"][
            "StreamStatus"
        ]
        != "ACTIVE"
    ):
        time.sleep(0.05)


def test_latest_starts_at_a_moment_so_that_a_restart_loses_nothing(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=1)
    client = kinesis.client()
    client.put_record(StreamName=stream, Data=b'{"n": -1}', PartitionKey="a")
    time.sleep(2.2)
    run = job(options(stream))
    client.put_record(StreamName=stream, Data=b'{"n": 0, "key": "a"}', PartitionKey="a")
    again = job(options(stream), offset=run.offset)
    assert settle(again, [], 1) == [{"n": 0, "key": "a"}]


def test_an_idle_stream_makes_no_batches(kinesis, kinesis_stream, options, job):
    stream = kinesis_stream(shards=2)
    run = job(options(stream, **{"source.init.position": "TRIM_HORIZON"}))
    # Spark always runs a first batch; it is empty, and nothing follows it.
    assert [run.step() for _ in range(3)] == [[], None, None]


def test_an_idle_shard_moves_on_beside_a_busy_one(kinesis, kinesis_stream, options, job):
    stream = kinesis_stream(shards=2)
    run = job(options(stream))
    client, found, idle = kinesis.client(), [], []
    for n in range(2):
        data = json.dumps({"n": n, "key": "a"}).encode()
        client.put_record(StreamName=stream, Data=data, PartitionKey="a", ExplicitHashKey="0")
        settle(run, found, n + 1)
        idle.append(run.offset["shards"]["shardId-000000000001"])
    assert [row["n"] for row in found] == [0, 1]
    assert idle[0]["ts"] < idle[1]["ts"]


def test_records_packed_for_another_shard_are_left_to_it(kinesis, kinesis_stream, options, job):
    stream = kinesis_stream(shards=2)
    keys = [f"k{n}" for n in range(20)]
    packed = pack([(key, json.dumps({"n": n, "key": key}).encode()) for n, key in enumerate(keys)])
    kinesis.client().put_record(
        StreamName=stream, Data=packed, PartitionKey="any", ExplicitHashKey="0"
    )
    run = job(options(stream, **{"source.init.position": "TRIM_HORIZON"}))
    low = [n for n, key in enumerate(keys) if hashlib.md5(key.encode()).digest()[0] < 128]
    assert [row["n"] for row in settle(run, [], len(low))] == low
    whole = {"source.init.position": "TRIM_HORIZON", "source.deaggregation": "false"}
    with pytest.raises(RecordError, match=f"stream '{stream}' shard 'shardId-000000000000' sequ"):
        settle(job(options(stream, **whole)), [], 1)


TOLD = Table(
    (
        Column("n", "BIGINT"),
        Column("arrived", "TIMESTAMP_LTZ(3)", metadata="timestamp", virtual=True),
        Column("shard", "STRING", metadata="shard-id", virtual=True),
        Column("sequence", "STRING", metadata="sequence-number", virtual=True),
        Column("place", "BIGINT", metadata="sub-sequence-number", virtual=True),
        Column("written_as", "STRING", metadata="partition-key", virtual=True),
    ),
    "t",
)


@pytest.mark.parametrize("reader", ["POLLING", "EFO"])
@pytest.mark.parametrize("connector", ["kinesis", "kinesis-legacy"])
def test_packs_and_what_is_told_of_records_are_read_by_both_connectors_either_way(
    kinesis, kinesis_stream, options, job, connector, reader
):
    stream = kinesis_stream(shards=1)
    packed = pack([(f"k{n}", json.dumps({"n": n}).encode()) for n in range(3)])
    client = kinesis.client()
    sequences = [
        client.put_record(StreamName=stream, Data=data, PartitionKey=key)["SequenceNumber"]
        for data, key in ((packed, "any"), (b'{"n": 3}', "k3"))
    ]
    given = options(stream, **{"source.init.position": "TRIM_HORIZON"})
    given |= {"source.reader.type": reader, "source.efo.consumer.name": "ours"}
    if connector == "kinesis-legacy":
        given = {key: v for key, v in given.items() if not key.startswith(("stream", "source"))}
        given |= {"stream": stream, "scan.stream.initpos": "TRIM_HORIZON"}
        given |= {
            "scan.stream.recordpublisher": reader,
            "scan.stream.efo.consumername": "ours",
        }
    rows = job(given, TOLD, connector=connector).everything()
    for row in rows:
        assert abs(row.pop("arrived").timestamp() - time.time()) < 60
    assert rows == [
        {
            "n": n,
            "shard": "shardId-000000000000",
            "sequence": sequences[n == 3],
            "place": n % 3,
            "written_as": f"k{n}",
        }
        for n in range(4)
    ]


@pytest.mark.parametrize("handler", ["skip", "dead-letter"])
def test_a_record_that_is_no_row_is_passed_or_sent_on_and_reading_goes_on_behind_it(
    kinesis, kinesis_stream, options, job, handler
):
    stream, letters = kinesis_stream(shards=1), kinesis_stream(shards=1)
    client = kinesis.client()
    sequences = [
        client.put_record(StreamName=stream, Data=data, PartitionKey="k")["SequenceNumber"]
        for data in (b'{"n": 0}', b"no row", b'{"n": 2}', b"nor this")
    ]
    given = options(stream, **{"source.init.position": "TRIM_HORIZON"})
    given |= {"scan.deser.failure-handler": handler, "scan.deser.failure-stream": letters}
    run = job(given)
    assert [row["n"] for row in run.everything()] == [0, 2]
    client.put_record(StreamName=stream, Data=b'{"n": 4}', PartitionKey="k")
    again = job(given, offset=run.offset)
    assert [row["n"] for row in again.everything()] == [4]

    iterator = client.get_shard_iterator(
        StreamName=letters, ShardId="shardId-000000000000", ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    sent = client.get_records(ShardIterator=iterator)["Records"]
    told = [json.loads(record["Data"]) for record in sent]
    assert all(letter.pop("reason") for letter in told)
    origin = {"stream": stream, "shard-id": "shardId-000000000000", "partition-key": "k"}
    assert told == [
        origin | {"sequence-number": sequences[at], "data": base64.b64encode(data).decode()}
        for at, data in ((1, b"no row"), (3, b"nor this"))
        if handler == "dead-letter"
    ]


def test_a_shard_that_is_new_and_empty_when_planned_is_not_read_in_that_batch(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=1)
    run = job(options(stream, **{"source.init.position": "TRIM_HORIZON"}))
    before = {"version": 1, "shards": {"its parent": {"end": 1}}}
    planned = {"version": 1, "shards": run.offset["shards"], "tasks": 1}
    kinesis.client().put_record(StreamName=stream, Data=b'{"n": 0}', PartitionKey="a")
    assert run.read(before, planned) == []
    assert [row["n"] for row in settle(run, [], 1)] == [0]


def test_a_clock_that_is_set_while_a_query_runs_changes_nothing(
    kinesis, kinesis_stream, options, job, monkeypatch
):
    stream = kinesis_stream(shards=1)
    run = job(options(stream, **{"source.init.position": "TRIM_HORIZON"}))
    rows = []
    for hours in (1, -1):
        set_clock = SimpleNamespace(
            time=lambda hours=hours: time.time() + 3600 * hours,
            monotonic=time.monotonic,
            sleep=time.sleep,
        )
        monkeypatch.setattr(probing, "time", set_clock)
        data = json.dumps({"n": len(rows), "key": "a"}).encode()
        kinesis.client().put_record(StreamName=stream, Data=data, PartitionKey="a")
        settle(run, rows, len(rows) + 1)
    assert [row["n"] for row in rows] == [0, 1]
