"""Reading with a throughput of its own: registered, subscribed, complete, and cleaned up."""

import json
import time

import pytest
from streamcore import ConnectionFailed


def put(client, stream, count):
    for first in range(0, count, 100):
        client.put_records(
            StreamName=stream,
            Records=[
                {"Data": json.dumps({"n": n, "key": "k"}).encode(), "PartitionKey": str(n)}
                for n in range(first, first + 100)
            ],
        )


def consumers(client, stream):
    arn = client.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]["StreamARN"]
    return [c["ConsumerName"] for c in client.list_stream_consumers(StreamARN=arn)["Consumers"]]


EFO = {
    "source.reader.type": "EFO",
    "source.efo.consumer.name": "ours",
    "source.init.position": "TRIM_HORIZON",
}


def test_a_subscription_reads_everything_once_and_the_consumer_is_removed(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=2)
    client = kinesis.client()
    put(client, stream, 300)
    time.sleep(2.5)
    run = job(options(stream, **EFO))
    run.reader.prepareForTriggerAvailableNow()
    rows = []
    while (found := run.step()) is not None:
        rows += found
    assert sorted(row["n"] for row in rows) == list(range(300))
    assert consumers(client, stream) == []


def test_a_consumer_that_an_earlier_run_left_behind_is_used_again(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=1)
    client = kinesis.client()
    put(client, stream, 100)
    time.sleep(2.5)
    first = job(options(stream, **EFO))
    assert sorted(row["n"] for row in first.step()) == list(range(100))
    assert consumers(client, stream) == ["ours"]
    again = job(options(stream, **EFO))
    assert sorted(row["n"] for row in again.step()) == list(range(100))
    again.reader.stop()
    assert consumers(client, stream) == []


def test_a_self_managed_consumer_must_exist(kinesis, kinesis_stream, options, job):
    stream = kinesis_stream(shards=1)
    put(kinesis.client(), stream, 100)
    time.sleep(2.5)
    run = job(options(stream, **EFO, **{"source.efo.lifecycle": "SELF_MANAGED"}))
    with pytest.raises(ConnectionFailed, match="consumer 'ours' of '.*' does not exist"):
        run.step()
