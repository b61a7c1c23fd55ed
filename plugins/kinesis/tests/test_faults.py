"""What passes is waited for, what does not is said at once, and limits are kept meanwhile."""

import contextlib
import json
import socket
import threading
import time

import boto3
import pyarrow as pa
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from streamcore import Column, ConnectionFailed, DataLossError, OptionError, Table
from streamcore.registry import installed
from streamcore_kinesis import client, fetching, probing
from streamcore_kinesis.client import explain
from streamcore_kinesis.positions import at_time
from streamcore_kinesis.retrying import Caller, pause
from streamcore_kinesis.settings import Backoff, Endpoint, timedelta

TABLE = Table((Column("n", "BIGINT"), Column("key", "STRING")), "t")
SETTLED = 2.5
"""Seconds after which records lie behind the margin that a batch keeps to the service's clock."""
FROM_START = {"source.init.position": "TRIM_HORIZON"}


@contextlib.contextmanager
def failing(kinesis, **faults):
    before = kinesis.faults.__dict__ | {}
    for name, value in faults.items():
        setattr(kinesis.faults, name, value)
    try:
        yield kinesis.ledger.injected
    finally:
        for name in faults:
            setattr(kinesis.faults, name, before[name])


def put(kinesis, stream, numbers):
    records = [
        {"Data": json.dumps({"n": n, "key": f"k{n % 5}"}).encode(), "PartitionKey": f"k{n % 5}"}
        for n in numbers
    ]
    for first in range(0, len(records), 100):
        kinesis.client(direct=True).put_records(
            StreamName=stream, Records=records[first : first + 100]
        )


def write(options, count):
    schema = pa.schema([("n", pa.int64()), ("key", pa.string())])
    rows = [{"n": n, "key": f"k{n % 5}"} for n in range(count)]
    writer = installed().build("connector", "kinesis", options).writer(TABLE)
    return writer.write(iter([pa.RecordBatch.from_pylist(rows, schema)]))


def numbers(rows):
    return sorted(row["n"] for row in rows)


# --- reading ------------------------------------------------------------------------------


def test_throttling_expired_iterators_and_broken_connections_cost_time_not_records(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=2)
    put(kinesis, stream, range(400))
    time.sleep(SETTLED)
    small = {"source.shard.get-records.max-record-count": "40"}
    with failing(
        kinesis, throttle=0.25, disconnect=0.1, expire_every=4, limit_control=0.2
    ) as struck:
        rows = job(options(stream, **FROM_START, **small)).everything()
    assert numbers(rows) == list(range(400))
    for key in {row["key"] for row in rows}:
        own = [row["n"] for row in rows if row["key"] == key]
        assert own == sorted(own)
    assert all(struck[fault] for fault in ("throttle", "disconnect", "expire"))


def test_a_shard_is_read_at_most_five_times_a_second_and_planned_with_two_calls_more(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=2)
    run = job(options(stream, **FROM_START))
    rows, began = [], len(kinesis.ledger.calls)
    counted, batches = [], 0
    for turn in range(12):
        put(kinesis, stream, range(turn * 20, turn * 20 + 20))
        before = len(kinesis.ledger.calls)
        found = run.step()
        if found:
            counted.append([call.operation for call in kinesis.ledger.calls[before:]])
            rows += found
            batches += 1
    deadline = time.monotonic() + 60
    while len(rows) < 240 and time.monotonic() < deadline:
        rows += run.step() or []
    assert numbers(rows) == list(range(240))
    calls = [call for call in kinesis.ledger.calls[began:] if (call.shard or "").startswith(stream)]
    peaks = type(kinesis.ledger)(calls=calls).peak_reads_per_second()
    assert len(peaks) == 2
    assert max(peaks.values()) <= 5, peaks
    # Reading takes an iterator and a read per shard: all else is planning.
    for made in counted:
        of_shards = [name for name in made if name in ("GetShardIterator", "GetRecords")]
        assert len(of_shards) <= 2 * (1 + 1 + 2), made


def test_an_idle_stream_is_not_polled_more_often_than_the_service_allows(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=1)
    run = job(options(stream, **FROM_START))
    before, began = len(kinesis.ledger.calls), time.monotonic()
    while time.monotonic() - began < 3:
        assert not run.step()
    reads = [call for call in kinesis.ledger.calls[before:] if call.operation == "GetRecords"]
    assert 2 <= len(reads) <= 8


def test_a_read_of_all_there_is_goes_on_while_answers_are_empty_but_behind(
    kinesis, kinesis_stream, options, job, monkeypatch
):
    monkeypatch.setattr(fetching, "CALLS_APART", 0.02)
    stream = kinesis_stream(shards=2)
    put(kinesis, stream, range(20))
    time.sleep(SETTLED)
    with failing(kinesis, empty_reads=3 * probing._FOLLOWED) as struck:
        at_once = {"source.reader.empty-records-fetch-interval": "0 s"}
        rows = job(options(stream, **FROM_START, **at_once)).everything()
    assert numbers(rows) == list(range(20))
    assert struck["empty"] >= 2 * 3 * probing._FOLLOWED


def test_positions_older_than_the_stream_keeps_are_a_loss_unless_that_is_accepted(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=1)
    put(kinesis, stream, range(3))
    time.sleep(SETTLED)
    shard = kinesis.client().list_shards(StreamName=stream)["Shards"][0]["ShardId"]
    two_days_ago = int(time.time() * 1000) - 48 * 3_600_000
    offset = {"version": 1, "shards": {shard: at_time(two_days_ago)}, "tasks": 2}
    with pytest.raises(DataLossError, match="may have expired unread. Set 'source.fail-on-data-lo"):
        job(options(stream), offset=offset).step()
    careless = options(stream, **{"source.fail-on-data-loss": "false"})
    assert numbers(job(careless, offset=offset).step()) == [0, 1, 2]


def test_a_shard_that_is_gone_is_a_loss_unless_that_is_accepted(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=1)
    put(kinesis, stream, range(3))
    gone = {"shardId-000000009999": {"seq": "49", "at": int(time.time() * 1000) - 60_000}}
    offset = {"version": 1, "shards": gone, "tasks": 2}
    with pytest.raises(DataLossError, match="shard 'shardId-000000009999' of stream '.*' is gone"):
        job(options(stream), offset=offset).step()
    run = job(options(stream, **{"source.fail-on-data-loss": "false"}), offset=offset)
    assert numbers(run.everything()) == [0, 1, 2]
    assert run.offset["shards"]["shardId-000000009999"] == {"end": 1}
    put(kinesis, stream, range(3, 6))
    again = job(options(stream), offset=run.offset)  # what has been accepted is over
    assert numbers(again.everything()) == [3, 4, 5]
    assert list(again.offset["shards"]) == ["shardId-000000000000"]


def test_a_read_of_all_there_is_holds_what_was_written_just_before_and_ends_beside_a_producer(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=2)
    run = job(options(stream, **FROM_START))
    put(kinesis, stream, range(100))
    sent, ended = [100], threading.Event()

    def go_on():
        while not ended.is_set():
            put(kinesis, stream, range(sent[0], sent[0] + 10))
            sent[0] += 10

    producer = threading.Thread(target=go_on, daemon=True)
    producer.start()
    try:
        rows = run.everything()
        more = job(options(stream), offset=run.offset).everything()
    finally:
        ended.set()
        producer.join()
    assert set(range(100)) <= set(numbers(rows))
    found = numbers(rows + more)
    assert len(found) == len(set(found))
    rest = job(options(stream, **FROM_START)).everything()
    assert numbers(rest) == list(range(sent[0]))


def test_a_batch_read_holds_what_was_written_just_before(kinesis, kinesis_stream, options):
    stream = kinesis_stream(shards=2)
    put(kinesis, stream, range(100))
    reader = installed().build("connector", "kinesis", options(stream, **FROM_START)).reader(TABLE)
    found = [row for p in reader.partitions() for b in reader.read(p) for row in b.to_pylist()]
    assert numbers(found) == list(range(100))


def test_update_shard_count_under_load_loses_nothing(kinesis, kinesis_stream, options, job):
    stream = kinesis_stream(shards=1)
    put(kinesis, stream, range(100))
    kinesis.client().update_shard_count(
        StreamName=stream, TargetShardCount=2, ScalingType="UNIFORM_SCALING"
    )
    kinesis.wait_active(stream)
    put(kinesis, stream, range(100, 200))
    time.sleep(SETTLED)
    assert numbers(job(options(stream, **FROM_START)).everything()) == list(range(200))


@pytest.mark.parametrize("reader", ["POLLING", "EFO"])
def test_a_stream_of_another_account_is_read_and_written_by_its_arn(kinesis, options, job, reader):
    theirs = boto3.client("kinesis", **kinesis.client_kwargs | {"aws_access_key_id": "2" * 12})
    stream = f"theirs-{reader.lower()}"
    theirs.create_stream(StreamName=stream, ShardCount=1)
    theirs.get_waiter("stream_exists").wait(StreamName=stream, WaiterConfig={"Delay": 1})
    given = options(stream, **FROM_START, **{"source.reader.type": reader})
    given |= {
        "stream.arn": f"arn:aws:kinesis:{given['aws.region']}:{'2' * 12}:stream/{stream}",
        "source.efo.consumer.name": "ours",
    }
    write(given, 20)
    assert numbers(job(given).everything()) == list(range(20))


def test_reading_from_a_moment_leaves_out_what_was_there_before(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=1)
    put(kinesis, stream, range(10))
    time.sleep(0.5)
    moment = time.time()
    time.sleep(0.5)
    put(kinesis, stream, range(10, 20))
    time.sleep(SETTLED)
    start = {"source.init.position": "AT_TIMESTAMP", "source.init.timestamp": f"{moment:.3f}"}
    assert numbers(job(options(stream, **start)).everything()) == list(range(10, 20))


def test_slices_of_bounded_length_catch_up_in_several_batches_with_the_lag_the_service_says(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=1)
    for turn in range(3):
        put(kinesis, stream, range(turn * 10, turn * 10 + 10))
        time.sleep(1.3)
    time.sleep(SETTLED)
    run = job(options(stream, **FROM_START, **{"source.slice.max": "1 s"}))
    run.reader.prepareForTriggerAvailableNow()
    batches, lags = [], []
    while (found := run.step()) is not None:
        batches.append(numbers(found))
        lags.append(run.reader.reportLatestOffset()["at"] - run.offset["at"])
    assert [n for batch in batches for n in batch] == list(range(30))
    assert len([batch for batch in batches if batch]) == 3
    assert max(lags) > 1000  # where the first group ends, two more wait
    assert lags[-1] == 0


# --- writing ------------------------------------------------------------------------------


def read(kinesis, stream):
    client = kinesis.client(direct=True)
    shard = client.list_shards(StreamName=stream)["Shards"][0]["ShardId"]
    iterator = client.get_shard_iterator(
        StreamName=stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    return [
        json.loads(r["Data"])["n"] for r in client.get_records(ShardIterator=iterator)["Records"]
    ]


def test_a_throttled_sink_with_broken_connections_writes_every_row_once(
    kinesis, kinesis_stream, options
):
    stream = kinesis_stream(shards=1)
    with failing(kinesis, throttle=0.3, partial=0.2, disconnect=0.2) as struck:
        write(options(stream, **{"sink.batch.max-size": "50"}), 300)
    assert sorted(read(kinesis, stream)) == list(range(300))
    assert struck["throttle"] + struck["disconnect"] > 0


def test_a_lost_reply_writes_rows_again_rather_than_losing_them(kinesis, kinesis_stream, options):
    stream = kinesis_stream(shards=1)
    before = kinesis.ledger.ambiguous_records
    with failing(kinesis, lose_reply=0.4):
        write(options(stream, **{"sink.batch.max-size": "20"}), 200)
    found = read(kinesis, stream)
    assert set(found) == set(range(200))
    assert len(found) == 200 + kinesis.ledger.ambiguous_records - before


# --- what no patience heals ---------------------------------------------------------------


REFUSALS = {
    "AccessDeniedException": "Check the policy of the credentials in use.",
    "ExpiredTokenException": "The session has ended: choose a provider that renews it.",
    "UnrecognizedClientException": "Check the access key id, and that it belongs to this region.",
}


@pytest.mark.parametrize("code", REFUSALS)
def test_refused_credentials_are_one_sentence_for_source_and_sink(
    kinesis, kinesis_stream, options, job, code
):
    stream = kinesis_stream(shards=1)
    expected = f"stream '{stream}' failed at {kinesis.endpoint_url}: {code}: .* {REFUSALS[code]}$"
    with failing(kinesis, refuse=code):
        with pytest.raises(ConnectionFailed, match=f"^listing the shards of {expected}"):
            job(options(stream))
        with pytest.raises(ConnectionFailed, match=f"^writing to {expected}"):
            write(options(stream), 10)


def test_a_missing_stream_is_one_sentence_for_the_source_too(options, job):
    with pytest.raises(
        ConnectionFailed, match="listing the shards of stream 'nowhere' failed .*Check the stream's"
    ):
        job(options("nowhere"))


def test_an_endpoint_nobody_answers_at_is_said_at_once(kinesis_stream, options, job):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    began = time.monotonic()
    for act in (job, lambda given: write(given, 1)):
        with pytest.raises(
            ConnectionFailed, match=f"nothing answers at {url}. Check 'aws.endpoint"
        ):
            act(options("orders", **{"aws.endpoint": url}))
    assert time.monotonic() - began < 60


def test_a_certificate_that_nobody_signed_is_refused_unless_all_are_trusted(
    kinesis, kinesis_stream, options, job
):
    given = options(kinesis_stream(shards=1), **FROM_START, **{"aws.endpoint": kinesis.tls_url})
    for act in (job, lambda given: write(given, 1)):
        with pytest.raises(
            ConnectionFailed,
            match=f"failed at {kinesis.tls_url}: SSL validation failed .*in AWS_CA_BUNDLE where",
        ):
            act(given)
    for trusting in ("aws.trust.all.certificates", "sink.producer.verify-certificate"):
        trusted = given | {trusting: "false" if "verify" in trusting else "true"}
        write(trusted, 5)
    assert numbers(job(trusted).everything()) == sorted([*range(5), *range(5)])


@pytest.mark.parametrize(
    "error", [EndpointConnectionError(endpoint_url="x"), OSError("http://me:hunter2@host/ is away")]
)
def test_an_endpoint_is_named_without_its_login(error):
    told = str(explain(error, "listing", "eu-west-1", "http://me:hunter2@host"))
    assert "hunter2" not in told
    assert "at http://***@host" in told


def test_the_sdk_is_not_told_the_login_of_an_endpoint(kinesis, options):
    given = options("orders", **{"aws.endpoint": "http://me:hunter2@127.0.0.1:1"})
    provider = installed().build("connector", "kinesis", given).provider
    assert client.kinesis(provider, "eu-west-1", given["aws.endpoint"]).meta.endpoint_url == (
        "http://127.0.0.1:1"
    )
    role = {"region": "eu-west-1", "sts-endpoint": "https://me:hunter2@host/sts"}
    assert client._sts(role, "", "", None).meta.endpoint_url == "https://host/sts"


@pytest.mark.parametrize(
    "code", ["ResourceInUseException", "LimitExceededException", "ThrottlingException"]
)
def test_a_stream_that_is_being_made_or_changed_is_waited_for(code):
    pauses = Backoff(50, timedelta(milliseconds=1), timedelta(milliseconds=1))
    caller = Caller(None, Endpoint(None, "us-east-1", None), pauses)
    busy = [ClientError({"Error": {"Code": code}}, "ListShards")] * 5

    def call():
        if busy:
            raise busy.pop()
        return "there"

    assert caller.call("listing", call) == "there"
    assert caller.retries == 5


def test_a_service_that_never_answers_is_given_up():
    calls = []

    def silent():
        calls.append(1)
        raise ReadTimeoutError(endpoint_url="http://there")

    pauses = Backoff(50, timedelta(milliseconds=1), timedelta(milliseconds=1))
    caller = Caller(None, Endpoint(None, "us-east-1", None), pauses)
    with pytest.raises(
        ConnectionFailed, match="^reading failed at region 'us-east-1': Read timeout"
    ):
        caller.call("reading", silent)
    assert len(calls) == 3


def test_pauses_grow_to_their_longest_however_many_there_are():
    pauses = Backoff(1000, timedelta(seconds=2), timedelta(seconds=60))
    assert 1 <= pause(pauses, 0) <= 2
    assert 30 <= pause(pauses, 999) <= 60


def test_a_service_that_has_answered_may_be_away_for_a_while():
    pauses = Backoff(50, timedelta(milliseconds=1), timedelta(milliseconds=1))
    caller = Caller(None, Endpoint(None, "us-east-1", None), pauses)
    away = [EndpointConnectionError(endpoint_url="http://there")] * 20

    def call():
        if away:
            raise away.pop()
        return "there"

    with pytest.raises(ConnectionFailed, match="^reading failed: nothing answers at region"):
        caller.call("reading", call)
    assert len(away) == 17  # a wrong address is said soon
    assert caller.call("reading", lambda: "there") == "there"
    assert caller.call("reading", call) == "there"


def test_a_start_in_the_future_is_refused_when_the_table_is_planned(options):
    tomorrow = f"{time.time() + 86400:.0f}"
    start = {"source.init.position": "AT_TIMESTAMP", "source.init.timestamp": tomorrow}
    with pytest.raises(
        OptionError, match=f"source.init.timestamp: '{tomorrow}' lies in the future"
    ):
        installed().build("connector", "kinesis", options("orders", **start))
