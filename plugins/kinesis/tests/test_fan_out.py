"""Reading with a throughput of its own: registered, subscribed, complete, and cleaned up."""

import json
import time

import pytest
from streamcore import ConnectionFailed
from streamcore_kinesis.consumers import Consumer


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


def test_a_consumer_left_behind_is_removed_by_a_run_that_had_nothing_to_read(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=1)
    client = kinesis.client()
    killed = job(options(stream, **EFO))
    assert consumers(client, stream) == []  # where a table is only checked, nothing is registered
    killed.end()
    assert consumers(client, stream) == ["ours"]  # from the start, before there are records
    again = job(options(stream, **EFO), offset=killed.offset)
    assert again.step() == []
    again.reader.stop()
    assert consumers(client, stream) == []


def test_a_consumer_that_could_not_be_waited_for_is_removed_by_its_name(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=1)
    run = job(options(stream, **EFO))
    run.end()
    fresh = Consumer(run.reader._stream._caller, run.reader._settings, run.reader._settings.fan_out)
    fresh.remove()
    assert consumers(kinesis.client(), stream) == []


def test_a_self_managed_consumer_must_exist_is_read_with_and_stays(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=1)
    client = kinesis.client()
    put(client, stream, 100)
    # A name of its own: the emulator mixes up consumers of one name, whichever stream they are of.
    theirs = {"source.efo.lifecycle": "SELF_MANAGED", "source.efo.consumer.name": "theirs"}
    given = options(stream, **EFO | theirs)
    with pytest.raises(ConnectionFailed, match="consumer 'theirs' of '.*' does not exist"):
        job(given).end()
    client.register_stream_consumer(StreamARN=given["stream.arn"], ConsumerName="theirs")
    before = len(kinesis.ledger.calls)
    run = job(given)
    assert sorted(row["n"] for row in run.everything()) == list(range(100))
    run.reader.stop()
    assert consumers(client, stream) == ["theirs"]
    made = {call.operation for call in kinesis.ledger.calls[before:]}
    assert "SubscribeToShard" in made
    assert not made & {"RegisterStreamConsumer", "DeregisterStreamConsumer"}


def test_a_name_of_a_consumer_alone_registers_nothing(kinesis, kinesis_stream, options, job):
    stream = kinesis_stream(shards=1)
    put(kinesis.client(), stream, 100)
    given = options(stream, **EFO | {"source.reader.type": "POLLING"})
    before = len(kinesis.ledger.calls)
    run = job(given)
    assert sorted(row["n"] for row in run.everything()) == list(range(100))
    run.reader.stop()
    made = {call.operation for call in kinesis.ledger.calls[before:]}
    assert not [name for name in made if "Consumer" in name or "Subscribe" in name]


@pytest.mark.parametrize("position", ["LATEST", "AT_TIMESTAMP"])
def test_a_subscription_starts_where_it_is_told(kinesis, kinesis_stream, options, job, position):
    stream = kinesis_stream(shards=1)
    client = kinesis.client()
    put(client, stream, 100)
    time.sleep(1.1)  # our idea of the service's clock is by whole seconds
    given = EFO | {"source.init.position": position}
    if position == "AT_TIMESTAMP":
        given["source.init.timestamp"] = f"{time.time():.3f}"
    run = job(options(stream, **given))
    put(client, stream, 200)
    assert [row["n"] for row in run.everything()] == list(range(200))


def test_a_consumer_that_vanishes_while_a_query_runs_fails_it(
    kinesis, kinesis_stream, options, job
):
    stream = kinesis_stream(shards=1)
    put(kinesis.client(), stream, 100)
    time.sleep(2.5)
    run = job(options(stream, **EFO, **{"source.fail-on-data-loss": "false"}))
    start, end = run.offset, run.end()
    parts = run.reader.partitions(start, end)
    run.reader.stop()
    with pytest.raises(ConnectionFailed, match="the consumer '.*' no longer exists, so stream"):
        [batch for part in parts for batch in run.reader.read(part)]


def test_broken_subscriptions_are_taken_up_where_they_broke(kinesis, kinesis_stream, options, job):
    stream = kinesis_stream(shards=1)
    put(kinesis.client(), stream, 200)
    time.sleep(2.5)
    before = kinesis.ledger.injected["cut_subscription"]
    kinesis.faults.cut_subscription_after = 1
    try:
        rows = job(options(stream, **EFO)).everything()
    finally:
        kinesis.faults.clear()
    assert [row["n"] for row in rows] == list(range(200))
    assert kinesis.ledger.injected["cut_subscription"] > before


def test_a_shard_that_is_held_by_the_last_subscription_is_waited_for(
    kinesis, kinesis_stream, options, job
):
    """The service gives a consumer one subscription of a shard in five seconds, broken or not."""
    stream = kinesis_stream(shards=1)
    put(kinesis.client(), stream, 100)
    time.sleep(2.5)
    before = kinesis.ledger.injected["in_use"]
    kinesis.faults.subscription_holds, kinesis.faults.cut_subscription_after = 5, 1
    try:
        run = job(options(stream, **EFO))
        rows = run.step()
        put(kinesis.client(), stream, 100)
        time.sleep(2.5)
        rows += run.step()
    finally:
        kinesis.faults.clear()
    run.reader.stop()
    assert [row["n"] for row in rows] == [*range(100), *range(100)]
    assert kinesis.ledger.injected["in_use"] > before


@pytest.mark.parametrize(("reader", "before"), [("EFO", 100), ("EFO", 0), ("POLLING", 0)])
def test_a_shard_that_ends_makes_way_for_its_children_though_it_be_empty(
    kinesis, kinesis_stream, options, job, reader, before
):
    stream = kinesis_stream(shards=1)
    client = kinesis.client()
    put(client, stream, before)
    client.update_shard_count(StreamName=stream, TargetShardCount=2, ScalingType="UNIFORM_SCALING")
    kinesis.wait_active(stream)
    put(client, stream, 100)
    run = job(options(stream, **EFO | {"source.reader.type": reader}))
    assert sorted(row["n"] for row in run.everything()) == sorted([*range(before), *range(100)])
    assert sorted(run.offset["shards"]) == ["shardId-000000000001", "shardId-000000000002"]


@pytest.mark.parametrize(
    ("registration", "left"), [("LAZY", []), ("EAGER", ["ours"]), ("NONE", ["ours"])]
)
def test_the_legacy_connector_registers_as_it_is_told(
    kinesis, kinesis_stream, options, job, registration, left
):
    stream = kinesis_stream(shards=1)
    client = kinesis.client()
    put(client, stream, 100)
    given = {
        "stream": stream,
        "scan.stream.initpos": "TRIM_HORIZON",
        "scan.stream.recordpublisher": "EFO",
        "scan.stream.efo.registration": registration,
        "scan.stream.efo.consumername": "ours",
    }
    if registration == "NONE":
        arn = options(stream)["stream.arn"]
        made = client.register_stream_consumer(StreamARN=arn, ConsumerName="ours")["Consumer"]
        given[f"scan.stream.efo.consumerarn.{stream}"] = made["ConsumerARN"]
    time.sleep(2.5)
    shared = {key: value for key, value in options(stream).items() if key != "stream.arn"}
    rows = job(shared | given, connector="kinesis-legacy").everything()
    assert sorted(row["n"] for row in rows) == list(range(100))
    assert consumers(client, stream) == left
