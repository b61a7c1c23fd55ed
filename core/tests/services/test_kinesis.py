"""The Kinesis emulator behaves as AWS does, and fails as AWS does when asked to."""

from __future__ import annotations

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError
from streamcore.testing.services import KinesisEmulator, Sts

NO_RETRIES = Config(retries={"max_attempts": 0, "mode": "standard"})


@pytest.fixture(scope="module")
def emulator():
    with KinesisEmulator(seed=7) as emulator:
        yield emulator


@pytest.fixture
def client(emulator):
    yield boto3.client("kinesis", config=NO_RETRIES, **emulator.client_kwargs)
    emulator.faults.clear()
    emulator.ledger.injected.clear()
    emulator.ledger.calls.clear()


@pytest.fixture
def stream(emulator, request):
    name = request.node.name[:100]
    emulator.create_stream(name)
    return name


def put(client, stream, count):
    records = [{"Data": b"%d" % i, "PartitionKey": str(i)} for i in range(count)]
    return client.put_records(StreamName=stream, Records=records)


def iterator(client, stream, shard="shardId-000000000000"):
    start = {"StreamName": stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
    return client.get_shard_iterator(**start)["ShardIterator"]


def read(client, position):
    return [record["Data"] for record in client.get_records(ShardIterator=position)["Records"]]


def test_what_is_put_is_read_in_order(client, stream):
    put(client, stream, 5)
    assert read(client, iterator(client, stream)) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_share_of_calls_is_throttled(emulator, client, stream):
    emulator.faults.throttle = 1.0
    with pytest.raises(ClientError) as caught:
        put(client, stream, 1)
    assert caught.value.response["Error"]["Code"] == "ProvisionedThroughputExceededException"
    assert emulator.ledger.injected["throttle"] == 1


def test_failed_records_of_a_put_are_reported_and_not_written(emulator, client, stream):
    emulator.faults.partial = 0.5
    reply = put(client, stream, 100)
    written = [b"%d" % i for i, r in enumerate(reply["Records"]) if "SequenceNumber" in r]
    assert 0 < len(written) < 100
    assert reply["FailedRecordCount"] == 100 - len(written) == emulator.ledger.injected["partial"]
    assert read(client, iterator(client, stream)) == written


def test_every_nth_iterator_is_expired(emulator, client, stream):
    position = iterator(client, stream)
    emulator.faults.expire_every = 1
    with pytest.raises(client.exceptions.ExpiredIteratorException):
        client.get_records(ShardIterator=position)


def test_a_lost_reply_leaves_the_records_written(emulator, client, stream):
    emulator.faults.lose_reply = 1.0
    with pytest.raises(ConnectionClosedError):
        put(client, stream, 3)
    assert emulator.ledger.ambiguous_records == 3
    assert len(read(client, iterator(client, stream))) == 3


def test_a_broken_connection_leaves_nothing_written(emulator, client, stream):
    emulator.faults.disconnect = 1.0
    with pytest.raises(ConnectionClosedError):
        put(client, stream, 3)
    emulator.faults.clear()
    assert read(client, iterator(client, stream)) == []


def test_reads_over_the_rate_of_a_shard_are_refused_and_counted(emulator, client, stream):
    position = iterator(client, stream)
    emulator.faults.reads_per_second = 2
    for _ in range(2):
        position = client.get_records(ShardIterator=position)["NextShardIterator"]
    with pytest.raises(client.exceptions.ProvisionedThroughputExceededException):
        client.get_records(ShardIterator=position)
    assert emulator.ledger.peak_reads_per_second() == {f"{stream}/shardId-000000000000": 3}


def test_more_than_500_records_or_5_mb_are_refused_as_on_aws(client, stream):
    with pytest.raises(ClientError, match="less than or equal to 500"):
        put(client, stream, 501)
    big = [{"Data": bytes(1_000_000), "PartitionKey": "k"}] * 6
    with pytest.raises(client.exceptions.InvalidArgumentException):
        client.put_records(StreamName=stream, Records=big)


def test_a_subscription_delivers_records_and_ends_with_the_children_of_a_split(
    emulator, client, stream
):
    put(client, stream, 3)
    summary = client.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]
    consumer = client.register_stream_consumer(StreamARN=summary["StreamARN"], ConsumerName="c")
    arn = consumer["Consumer"]["ConsumerARN"]
    half = str(2**127)
    shard = "shardId-000000000000"
    client.split_shard(StreamName=stream, ShardToSplit=shard, NewStartingHashKey=half)
    emulator.wait_active(stream)
    start = {"ConsumerARN": arn, "ShardId": shard, "StartingPosition": {"Type": "TRIM_HORIZON"}}
    events = [e["SubscribeToShardEvent"] for e in client.subscribe_to_shard(**start)["EventStream"]]
    assert [r["Data"] for e in events for r in e["Records"]] == [b"0", b"1", b"2"]
    assert "ContinuationSequenceNumber" not in events[-1]
    children = [child["ShardId"] for child in events[-1]["ChildShards"]]
    assert children == ["shardId-000000000001", "shardId-000000000002"]


def test_sts_gives_out_temporary_credentials():
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}
    role = "arn:aws:iam::123456789012:role/reader"
    with Sts() as sts:
        client = boto3.client("sts", endpoint_url=sts.endpoint_url, **keys)
        reply = client.assume_role(RoleArn=role, RoleSessionName="session", ExternalId="friend")
    assert reply["Credentials"]["SessionToken"]
