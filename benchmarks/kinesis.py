"""Kinesis: source and sink against a bare boto3 loop on one emulator, and planning many shards."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
from streamcore import Column, Table
from streamcore.registry import installed
from streamcore.testing.services.kinesis import KinesisEmulator
from streamcore.testing.services.kinesis.address import ACCOUNT, REGION

from .measure import BenchmarkError, Plan, Run
from .setting import Setting

COLUMNS = (Column("n", "BIGINT"), Column("name", "STRING"), Column("price", "DOUBLE"))
TABLE = Table(COLUMNS, "t", partition_keys=("n",))
"""The bare loop's records have the same keys: the service hashes and keeps them, too."""
SHARDS, MOST = 2, 500
PLANNED = 1000
_numbers = itertools.count(1)


def cases(setting: Setting) -> Iterator[Plan]:
    """Reading and writing json, then planning a batch of a thousand shards.

    The emulator takes the longer for a record the more its stream holds.
    """
    rows, times = 2_000 if setting.quick else 8_000, (setting.runs, setting.warmups)
    what = f"Kinesis json to rows, {rows:,} records, {SHARDS} shards"
    yield Plan("kinesis-source", what, partial(_reading, setting, rows), *times)
    what = f"{rows // 4:,} rows to Kinesis json, {SHARDS} shards"
    yield Plan("kinesis-sink", what, partial(_writing, setting, rows // 4), *times)
    what = f"planning a batch of {PLANNED:,} shards, calls aside (rows are shards, time is CPU)"
    yield Plan("kinesis-planning", what, lambda: {"streamcore": _plan}, *times)


def _reading(setting: Setting, rows: int) -> dict[str, Callable[[], Run]]:
    setting.kinesis.create_stream("bench", SHARDS)
    _put(setting.kinesis, "bench", _records(rows))
    time.sleep(3)  # a batch ends a little behind the clock
    return {
        "streamcore": partial(_read, setting.kinesis, rows),
        "bare boto3": partial(_get, setting.kinesis, rows),
    }


def _writing(setting: Setting, rows: int) -> dict[str, Callable[[], Run]]:
    return {
        "streamcore": partial(_into_new_stream, setting.kinesis, rows, _write),
        "bare boto3": partial(_into_new_stream, setting.kinesis, rows, _put_rows),
    }


def _options(endpoint: str, stream: str) -> dict[str, str]:
    return {
        "stream.arn": f"arn:aws:kinesis:{REGION}:{ACCOUNT}:stream/{stream}",
        "aws.region": REGION,
        "aws.endpoint": endpoint,
        "aws.credentials.basic.accesskeyid": ACCOUNT,
        "aws.credentials.basic.secretkey": "bench",
        "source.init.position": "TRIM_HORIZON",
        "format": "json",
    }


def _records(count: int) -> list[dict[str, Any]]:
    return [
        {
            "Data": json.dumps({"n": n, "name": f"name {n % 100}", "price": n / 4}).encode(),
            "PartitionKey": str(n),
        }
        for n in range(count)
    ]


# --- reading ------------------------------------------------------------------------------


def _read(emulator: KinesisEmulator, rows: int) -> Run:
    """A whole batch as Spark would run it: planned, then a task for every shard."""
    connector = installed().build("connector", "kinesis", _options(emulator.direct_url, "bench"))
    cpu, start = time.process_time(), time.perf_counter()
    reader = connector.stream_reader(TABLE)
    begin = reader.initialOffset()
    parts = reader.partitions(begin, reader.latestOffset(begin, None))
    with ThreadPoolExecutor(len(parts)) as tasks:
        found = [batch for each in tasks.map(partial(_rows_of, reader), parts) for batch in each]
    run = Run(time.perf_counter() - start, rows, time.process_time() - cpu)
    run.checksum = _checksum(row for batch in found for row in batch.to_pylist())
    if (seen := sum(batch.num_rows for batch in found)) != rows:
        raise BenchmarkError(f"kinesis source: {seen} of {rows} rows")
    return run


def _rows_of(reader: Any, part: Any) -> list[pa.RecordBatch]:
    return list(reader.read(part))


def _get(emulator: KinesisEmulator, rows: int) -> Run:
    cpu, start = time.process_time(), time.perf_counter()
    found = _fetched(emulator, "bench")
    run = Run(time.perf_counter() - start, rows, time.process_time() - cpu)
    run.checksum = _checksum(map(json.loads, found))
    if len(found) != rows:
        raise BenchmarkError(f"bare boto3: {len(found)} of {rows} records")
    return run


def _fetched(emulator: KinesisEmulator, stream: str) -> list[bytes]:
    """The shortest loop that gets every record, and decodes none."""
    client, found = emulator.client(direct=True), []
    for shard in client.list_shards(StreamName=stream)["Shards"]:
        iterator = client.get_shard_iterator(
            StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while True:
            answer = client.get_records(ShardIterator=iterator, Limit=10000)
            found += [record["Data"] for record in answer["Records"]]
            iterator = answer["NextShardIterator"]
            if not answer["Records"] and not answer["MillisBehindLatest"]:
                break
    return found


def _checksum(rows: Iterable[dict[str, Any]]) -> str:
    """Of rows in any order."""
    texts = sorted(str((row["n"], row["name"], float(row["price"]))) for row in rows)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


# --- writing ------------------------------------------------------------------------------


def _into_new_stream(emulator: KinesisEmulator, rows: int, write: Any) -> Run:
    stream = f"bench-{next(_numbers)}"
    emulator.create_stream(stream, SHARDS)
    cpu, start = time.process_time(), time.perf_counter()
    write(emulator, stream, rows)
    run = Run(time.perf_counter() - start, rows, time.process_time() - cpu)
    found = _fetched(emulator, stream)
    run.checksum = _checksum(map(json.loads, found))
    emulator.client(direct=True).delete_stream(StreamName=stream)
    if len(found) != rows:
        raise BenchmarkError(f"kinesis sink: {len(found)} of {rows} records are in the stream")
    return run


def _write(emulator: KinesisEmulator, stream: str, rows: int) -> None:
    connector = installed().build("connector", "kinesis", _options(emulator.direct_url, stream))
    batch = pa.RecordBatch.from_pydict(
        {
            "n": list(range(rows)),
            "name": [f"name {n % 100}" for n in range(rows)],
            "price": [n / 4 for n in range(rows)],
        }
    )
    connector.writer(TABLE).write(iter([batch]))


def _put_rows(emulator: KinesisEmulator, stream: str, rows: int) -> None:
    _put(emulator, stream, _records(rows))


def _put(emulator: KinesisEmulator, stream: str, records: list[dict[str, Any]]) -> None:
    client = emulator.client(direct=True)
    for first in range(0, len(records), MOST):
        answer = client.put_records(StreamName=stream, Records=records[first : first + MOST])
        if refused := answer["FailedRecordCount"]:
            raise BenchmarkError(f"bare boto3: {refused} records were refused")


# --- planning -----------------------------------------------------------------------------


class _Still:
    """A service that answers at once: what is left is our own work."""

    exceptions: Any = type("Exceptions", (), {"__getattr__": lambda self, name: KeyError})()

    def list_shards(self, **_: Any) -> dict[str, Any]:
        hashes = {"StartingHashKey": "0", "EndingHashKey": str(2**128 - 1)}
        shards = [
            {"ShardId": f"shardId-{n:012}", "HashKeyRange": hashes, "SequenceNumberRange": {}}
            for n in range(PLANNED)
        ]
        return {"Shards": shards, "ResponseMetadata": {"HTTPHeaders": {}}}

    def describe_stream_summary(self, **_: Any) -> dict[str, Any]:
        created = datetime.now(UTC) - timedelta(hours=1)
        summary = {"StreamCreationTimestamp": created, "RetentionPeriodHours": 24}
        return {"StreamDescriptionSummary": summary, "ResponseMetadata": {"HTTPHeaders": {}}}

    def get_shard_iterator(self, **_: Any) -> dict[str, Any]:
        return {"ShardIterator": "here"}

    def get_records(self, **_: Any) -> dict[str, Any]:
        arrival = datetime.now(UTC) - timedelta(minutes=1)
        found = {"SequenceNumber": "49" * 20, "ApproximateArrivalTimestamp": arrival}
        return {"Records": [found], "NextShardIterator": "next", "MillisBehindLatest": 0}


def _plan() -> Run:
    from streamcore_kinesis.probing import Stream

    given = {**_options("http://127.0.0.1:1", "many"), "source.slice.margin": "0 s"}
    connector = installed().build("connector", "kinesis", given)
    reader = connector.stream_reader(TABLE)
    reader._opened = Stream(connector.source_settings())
    reader._opened._caller.client = _Still()
    begin = reader.initialOffset()
    start = time.process_time()
    end = reader.latestOffset(begin, None)
    parts = reader.partitions(begin, end)
    spent = time.process_time() - start
    if sum(len(part.slices) for part in parts) != PLANNED:
        raise BenchmarkError("kinesis planning: shards are missing from the plan")
    return Run(spent, PLANNED, spent)
