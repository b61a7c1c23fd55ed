"""Streams that are resharded, throttled or read by a clock that is wrong lose no record."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter

import pyarrow as pa
import pytest
from streamcore import Column, Table
from streamcore.registry import installed
from streamcore.testing.ledger import Seen, compare, scenario
from streamcore.testing.services import KinesisEmulator
from streamcore.testing.services.kafka import unique_name
from streamcore.testing.services.kinesis.address import ACCOUNT
from streamcore_kinesis import probing

TABLE = Table((Column("n", "BIGINT"), Column("key", "STRING")), "t")


@pytest.fixture(scope="module")
def emulator():
    """An emulator of our own, because faults are for everyone who uses it."""
    with KinesisEmulator() as emulator:
        yield emulator


@pytest.fixture(autouse=True)
def fate(emulator, scale):
    """Faults are drawn from the seed of the test, and end with it."""
    emulator.proxy.fate.draw_from(scale.seed)
    yield
    emulator.faults.clear()


@pytest.fixture
def stream(emulator):
    name = unique_name("reliability")
    emulator.create_stream(name, 2)
    return name


def options(emulator, stream, **more):
    kwargs = emulator.client_kwargs
    return {
        "stream.arn": f"arn:aws:kinesis:{kwargs['region_name']}:{ACCOUNT}:stream/{stream}",
        "aws.region": kwargs["region_name"],
        "aws.endpoint": kwargs["endpoint_url"],
        "aws.credentials.basic.accesskeyid": kwargs["aws_access_key_id"],
        "aws.credentials.basic.secretkey": kwargs["aws_secret_access_key"],
        "format": "json",
        "source.init.position": "TRIM_HORIZON",
        "source.shard.discovery.interval": "500 ms",
        **more,
    }


class Query:
    """A driver that keeps Spark's two logs: what was planned, and what was done with it."""

    def __init__(self, options):
        self._options = options
        self.rows = []
        self._done = self._planned = None
        self.start()

    def start(self):
        """Start anew from the logs, as after a kill; a planned batch is read first."""
        connector = installed().build("connector", "kinesis", self._options)
        self._reader = connector.stream_reader(TABLE)
        if self._done is None:
            self._done = json.loads(json.dumps(self._reader.initialOffset()))
        if self._planned is not None:
            self._finish()

    def step(self, die=False):
        """One batch; with `die`, end in the middle of it and start anew."""
        end = json.loads(json.dumps(self._reader.latestOffset(self._done, None)))
        if end == self._done:
            return
        self._planned = end
        if die:
            self._read(self._done, end)  # and nobody gets it
            self.start()
        else:
            self._finish()

    def _finish(self):
        self.rows += self._read(self._done, self._planned)
        self._done, self._planned = self._planned, None

    def _read(self, start, end):
        partitions = self._reader.partitions(start, end)
        return [
            Seen(row["key"], row["n"])
            for partition in partitions
            for batch in self._reader.read(partition)
            for row in batch.to_pylist()
        ]

    def until(self, count, timeout=300):
        deadline = time.monotonic() + timeout
        while len(self.rows) < count:
            assert time.monotonic() < deadline, f"{len(self.rows)} of {count} records"
            self.step()
            time.sleep(0.1)


class Producer(threading.Thread):
    """Puts the rows of a ledger into a stream, past all faults."""

    def __init__(self, emulator, stream, rows, seed, pause=0.02):
        super().__init__(daemon=True)
        self._client, self._stream = emulator.client(direct=True), stream
        self._left, self._random, self._pause = rows, random.Random(seed), pause
        self.sent = {}

    def run(self):
        while self._left > 0:
            records = []
            for _ in range(min(self._left, self._random.randint(1, 50))):
                key = f"k{self._random.randrange(17)}"
                number = self.sent.get(key, 0)
                self.sent[key] = number + 1
                data = json.dumps({"n": number, "key": key}).encode()
                records.append({"Data": data, "PartitionKey": key})
            while records:
                answer = self._client.put_records(StreamName=self._stream, Records=records)
                failed = [bool(each.get("ErrorCode")) for each in answer["Records"]]
                records = [each for each, bad in zip(records, failed, strict=True) if bad]
            self._left -= len(failed)
            time.sleep(self._pause)

    def finish(self):
        self.join(600)
        assert not self.is_alive()
        return sum(self.sent.values())


def verify(query, producer, seed):
    findings = compare(producer.sent, query.rows)
    assert not findings, f"seed {seed}: {findings}"


def reshard(emulator, stream, dice):
    """Split a shard, or merge two neighbours."""
    client = emulator.client(direct=True)
    shards = client.list_shards(StreamName=stream, ShardFilter={"Type": "AT_LATEST"})["Shards"]
    shards.sort(key=lambda shard: int(shard["HashKeyRange"]["StartingHashKey"]))
    at = dice.randrange(len(shards))
    if len(shards) < 3 or (len(shards) < 8 and dice.random() < 0.6):
        span = shards[at]["HashKeyRange"]
        middle = (int(span["StartingHashKey"]) + int(span["EndingHashKey"])) // 2
        client.split_shard(
            StreamName=stream, ShardToSplit=shards[at]["ShardId"], NewStartingHashKey=str(middle)
        )
    else:
        at = min(at, len(shards) - 2)
        client.merge_shards(
            StreamName=stream,
            ShardToMerge=shards[at]["ShardId"],
            AdjacentShardToMerge=shards[at + 1]["ShardId"],
        )
    emulator.wait_active(stream)


@scenario(
    20,
    small={"rows": 1_200, "reshards": 3, "kills": 2},
    full={"rows": 50_000, "reshards": 20, "kills": 5},
)
def test_shards_split_and_merged_under_load_and_kills_are_read_once(emulator, stream, scale):
    dice = random.Random(scale.seed)
    query = Query(options(emulator, stream))
    producer = Producer(emulator, stream, scale.rows, scale.seed)
    producer.start()
    deaths = set(dice.sample(range(scale.reshards), min(scale.kills, scale.reshards)))
    for turn in range(scale.reshards):
        for _ in range(3):
            query.step()
            time.sleep(0.1)
        reshard(emulator, stream, dice)
        query.step(die=turn in deaths)
    query.until(producer.finish())
    verify(query, producer, scale.seed)


@scenario(21, small={"rows": 600, "reshards": 3}, full={"rows": 20_000, "reshards": 10})
def test_shards_that_changed_while_the_query_was_stopped_are_read_once(emulator, stream, scale):
    dice = random.Random(scale.seed)
    query = Query(options(emulator, stream))
    first = Producer(emulator, stream, scale.rows // 2, scale.seed, pause=0)
    first.start()
    query.until(first.finish() // 2)
    for _ in range(scale.reshards):
        reshard(emulator, stream, dice)
    second = Producer(emulator, stream, scale.rows - scale.rows // 2, scale.seed, pause=0)
    second.sent = first.sent
    second.start()
    total = second.finish()
    reshard(emulator, stream, dice)
    query.start()
    query.until(total)
    verify(query, second, scale.seed)


@scenario(22, small={"rows": 1_000, "streams": 1}, full={"rows": 5_000, "streams": 10})
def test_throttling_expired_iterators_and_partial_puts_lose_nothing(emulator, scale):
    """Rows are written twice only where a reply was lost, and never more often than that.

    Several streams, because a put takes the emulator longer the more records a stream has.
    """
    before = emulator.ledger.ambiguous_records
    repeated = sum(_repeated(emulator, scale) for _ in range(scale.streams))
    ambiguous = emulator.ledger.ambiguous_records - before
    assert repeated <= ambiguous
    scale.measured["rows written twice"] = str(repeated)
    scale.measured["records without a reply"] = str(ambiguous)


def _repeated(emulator, scale):
    """How many rows of a stream were written twice; all are there, and reads kept their pace."""
    stream = unique_name("reliability")
    emulator.create_stream(stream, 2)
    emulator.faults.throttle, emulator.faults.partial = 0.3, 0.2
    emulator.faults.expire_every, emulator.faults.lose_reply = 50, 0.02
    schema = pa.schema([("n", pa.int64()), ("key", pa.string())])
    keys = [f"k{number % 17}" for number in range(scale.rows)]
    rows = [{"n": number // 17, "key": key} for number, key in enumerate(keys)]
    connector = installed().build("connector", "kinesis", options(emulator, stream))
    writer = connector.writer(TABLE)
    for first in range(0, scale.rows, 500):
        writer.write(iter([pa.RecordBatch.from_pylist(rows[first : first + 500], schema)]))
    query = Query(options(emulator, stream))
    query.until(scale.rows)
    emulator.faults.clear()
    deadline = time.monotonic() + 4  # what is behind the margin of a batch by now
    while time.monotonic() < deadline:
        query.step()
        time.sleep(0.2)
    findings = compare(Counter(keys), query.rows, ordered=False)
    assert not findings.lost, f"seed {scale.seed}: {findings}"
    assert not findings.unknown, f"seed {scale.seed}: {findings}"
    peaks = emulator.ledger.peak_reads_per_second().items()
    mine = {shard: peak for shard, peak in peaks if stream in shard}
    assert max(mine.values()) <= 5, mine
    return len(query.rows) - scale.rows


class Clock:
    """The time module of a machine whose clock is wrong; the service's own stays right."""

    def __init__(self, shift):
        self._shift = shift
        self.monotonic, self.sleep = time.monotonic, time.sleep

    def time(self):
        return time.time() + self._shift()


@scenario(23, small={"rows": 400, "minutes": 10}, full={"rows": 20_000, "minutes": 10})
def test_a_driver_whose_clock_is_wrong_reads_the_same(emulator, stream, scale, monkeypatch):
    minutes = [0]
    monkeypatch.setattr(probing, "time", Clock(lambda: 60 * minutes[0]))
    query = Query(options(emulator, stream))
    producer = Producer(emulator, stream, scale.rows, scale.seed)
    producer.start()
    for minutes[0] in (scale.minutes, -scale.minutes, 0):
        for _ in range(4):
            query.step()
            time.sleep(0.2)
        query.start()
    minutes[0] = -scale.minutes
    query.start()
    query.until(producer.finish())
    verify(query, producer, scale.seed)


@scenario(23, small={"rows": 300, "minutes": 1}, full={"rows": 20_000, "minutes": 2}, always=False)
def test_arrivals_ahead_of_the_clock_wait_and_within_the_margin_they_make_no_difference(
    emulator, stream, scale
):
    """A slice ends a margin behind the service's clock, so this is what may be wrong by that.

    When a record arrived is kept with its position: it is read when that moment has come.
    """
    margin = 2
    query = Query(options(emulator, stream, **{"source.slice.margin": f"{margin} s"}))
    first = Producer(emulator, stream, scale.rows // 3, scale.seed, pause=0)
    emulator.faults.shift_arrivals = 60 * scale.minutes
    first.start()
    first.finish()
    for _ in range(4):
        query.step()
        time.sleep(0.2)
    assert query.rows == [], "what arrives in some minutes is not read now"
    for shift in (margin / 4, -margin / 4):
        emulator.faults.shift_arrivals = shift
        more = Producer(emulator, stream, scale.rows // 3, scale.seed)
        more.sent = first.sent
        more.start()
        while more.is_alive():
            query.step()
            time.sleep(0.1)
        query.start()
    query.until(sum(first.sent.values()))
    verify(query, first, scale.seed)
