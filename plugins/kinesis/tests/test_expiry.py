"""What expired before it was read is told, by polling and by subscription, and so is a consumer."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError
from streamcore import ConnectionFailed, DataLossError
from streamcore.registry import installed
from streamcore_kinesis import fetching, probing
from streamcore_kinesis.fetching import SliceReader
from streamcore_kinesis.positions import END, Slice, at_record, at_time
from streamcore_kinesis.retrying import Caller
from streamcore_kinesis.subscribing import SubscribedSliceReader

OPTIONS = {
    "stream.arn": "arn:aws:kinesis:us-east-1:123456789012:stream/orders",
    "aws.region": "us-east-1",
    "format": "json",
    "source.reader.type": "EFO",
    "source.efo.consumer.name": "ours",
    "source.reader.empty-records-fetch-interval": "0 s",
}
NOON = 1_700_000_000_000
HOUR = 3_600_000


class NotFound(ClientError):
    """What the service says of a shard and of a consumer alike."""

    def __init__(self):
        error = {"Code": "ResourceNotFoundException", "Message": "not found"}
        super().__init__({"Error": error}, "SubscribeToShard")


class Shard:
    """A client of a stream whose one shard keeps these records; older ones have expired."""

    exceptions = SimpleNamespace(
        ResourceNotFoundException=NotFound, ExpiredIteratorException=TimeoutError
    )

    def __init__(self, *kept, consumer=True, reads=999):
        self.consumer, self.reads = consumer, reads  # after so many the shard itself is gone
        self.records = [
            {
                "SequenceNumber": str(number),
                "ApproximateArrivalTimestamp": datetime.fromtimestamp(arrival / 1000, UTC),
                "Data": b"{}",
                "PartitionKey": "k",
            }
            for number, arrival in kept
        ]

    def get_shard_iterator(self, **where):
        first = int(where["StartingSequenceNumber"])
        if not self.reads:
            raise NotFound
        return {"ShardIterator": str(first)}

    def count_read(self):
        if not self.reads:
            raise NotFound
        self.reads -= 1

    def get_records(self, ShardIterator, Limit, StreamARN):
        self.count_read()
        found = [r for r in self.records if int(r["SequenceNumber"]) >= int(ShardIterator)]
        return {"Records": found, "NextShardIterator": "999", "MillisBehindLatest": 0}

    def subscribe_to_shard(self, StartingPosition, **rest):
        if not self.consumer:
            raise NotFound
        self.count_read()
        first = int(StartingPosition["SequenceNumber"])
        found = [r for r in self.records if int(r["SequenceNumber"]) >= first]
        told = {"ContinuationSequenceNumber": "999", "MillisBehindLatest": 0}
        events = [{**told, "Records": found}, *({**told, "Records": []} for _ in range(5))]
        return {"EventStream": Events({"SubscribeToShardEvent": event} for event in events)}

    def describe_stream_consumer(self, ConsumerARN):
        if not self.consumer:
            raise NotFound
        return {}


class Events:
    """A subscription."""

    def __init__(self, events):
        self.events = events

    def __iter__(self):
        return iter(self.events)

    def close(self):
        """Nothing to close."""


@pytest.fixture(params=["polling", "subscription"])
def read(request, monkeypatch):
    monkeypatch.setattr(fetching, "CALLS_APART", 0)

    def numbers(client, stop, careless=False):
        given = OPTIONS | {"source.fail-on-data-loss": str(not careless).lower()}
        settings = installed().build("connector", "kinesis", given).source_settings()
        caller = Caller(client, settings.endpoint, settings.retries)
        part = Slice("shard-0", at_record("100", NOON - 30 * HOUR), stop, 0, 2**128 - 1)
        if request.param == "polling":
            reader = SliceReader(caller, settings, part)
        else:
            reader = SubscribedSliceReader(caller, settings, part, settings.fan_out, "arn:ours")
        return [int(r["SequenceNumber"]) for found in reader.records() for r in found]

    return numbers


@pytest.mark.parametrize(
    ("kept", "stop", "said"),
    [
        (
            [(150, NOON), (300, NOON)],
            at_record("300", NOON),
            "records from 100 up to 150 have expired",
        ),
        ([(300, NOON)], at_record("300", NOON), "records from 100 up to 300 have expired"),
        ([(300, NOON)], at_time(NOON - 29 * HOUR), "records from 100 up to 300 have expired"),
        ([], at_time(NOON), "records from 100 on have expired"),
        (
            [],
            at_record("300", NOON),
            "record 300, up to which this batch reads, was never met",
        ),
        ([], END, "the end of the shard, up to which this batch reads, was never met"),
    ],
)
def test_a_slice_must_begin_with_the_record_it_starts_at(read, kept, stop, said):
    with pytest.raises(DataLossError, match=f"^shard 'shard-0' of stream 'orders': {said}. Set "):
        read(Shard(*kept), stop)
    inside = [n for n, _ in kept if n < int(stop.get("seq", 0))]
    assert read(Shard(*kept), stop, careless=True) == inside


def test_a_slice_that_begins_with_its_record_is_whole(read):
    kept = Shard((100, NOON - 30 * HOUR), (300, NOON))
    assert read(kept, at_record("300", NOON)) == [100]
    assert read(kept, at_time(NOON - 29 * HOUR)) == [100]


@pytest.mark.parametrize(("reads", "met"), [(0, []), (1, [100])])
def test_a_shard_that_goes_before_its_slice_was_read_is_a_loss_unless_that_is_accepted(
    read, reads, met
):
    said = "^shard 'shard-0' of stream 'orders': the shard no longer exists. Set 'source.fail-on-da"
    with pytest.raises(DataLossError, match=said):
        read(Shard((100, NOON - 30 * HOUR), reads=reads), END)
    assert read(Shard((100, NOON - 30 * HOUR), reads=reads), END, careless=True) == met


def subscribed(client, careless):
    given = OPTIONS | {"source.fail-on-data-loss": str(not careless).lower()}
    settings = installed().build("connector", "kinesis", given).source_settings()
    caller = Caller(client, settings.endpoint, settings.retries)
    part = Slice("shard-0", at_record("100", NOON), END, 0, 2**128 - 1)
    return list(
        SubscribedSliceReader(caller, settings, part, settings.fan_out, "arn:ours").records()
    )


@pytest.mark.parametrize("careless", [False, True])
def test_a_consumer_that_was_removed_is_never_taken_for_a_lost_shard(careless):
    with pytest.raises(ConnectionFailed, match="^the consumer 'arn:ours' no longer exists, so st"):
        subscribed(Shard(consumer=False), careless)


class Old(Shard):
    """A client of a stream that knows nothing of moments before the oldest record it keeps."""

    exceptions = SimpleNamespace(
        InvalidArgumentException=ClientError, ExpiredNextTokenException=TimeoutError
    )

    def __init__(self, hours):
        super().__init__()
        self.hours, self.asked = hours, []

    def list_shards(self, ShardFilter, **_):
        self.asked.append(ShardFilter["Type"])
        if ShardFilter["Type"] == "FROM_TIMESTAMP":
            error = {"Code": "InvalidArgumentException", "Message": "too old"}
            raise ClientError({"Error": error}, "ListShards")
        shard = {
            "ShardId": "shard-0",
            "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "9"},
            "SequenceNumberRange": {"StartingSequenceNumber": "0"},
        }
        return {"Shards": [shard], "ResponseMetadata": {"HTTPHeaders": {}}}

    def describe_stream_summary(self, **_):
        summary = {"RetentionPeriodHours": self.hours}
        return {"StreamDescriptionSummary": summary, "ResponseMetadata": {"HTTPHeaders": {}}}


def test_a_start_before_anything_is_kept_begins_with_the_oldest_record(monkeypatch, caplog):
    start = datetime.now(UTC) - timedelta(hours=30)
    given = OPTIONS | {"source.reader.type": "POLLING"}
    settings = installed().build("connector", "kinesis", given).source_settings()
    client = Old(hours=24)
    monkeypatch.setattr(probing, "kinesis", lambda *_, **__: client)
    assert [shard.name for shard in probing.Stream(settings).shards_from(start)] == ["shard-0"]
    assert client.asked == ["FROM_TIMESTAMP", "FROM_TRIM_HORIZON"]
    assert "reading starts with the oldest record there is" in caplog.text
    client.hours = 48
    with pytest.raises(ConnectionFailed, match="^listing the shards of stream 'orders' failed"):
        probing.Stream(settings).shards_from(start)


class Expired(ClientError):
    """What the service says of a list whose next page was asked for too late."""

    def __init__(self):
        error = {"Code": "ExpiredNextTokenException", "Message": "too late"}
        super().__init__({"Error": error}, "ListShards")


class Paged:
    """A client that lists a shard a page, and once finds the token of the second page too old."""

    exceptions = SimpleNamespace(ExpiredNextTokenException=Expired)

    def __init__(self):
        self.asked = []

    def list_shards(self, **given):
        self.asked.append(given)
        if len(self.asked) == 2:
            raise Expired
        at = int(given.get("NextToken", 0))
        shard = {
            "ShardId": f"shard-{at}",
            "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "9"},
            "SequenceNumberRange": {"StartingSequenceNumber": "0"},
        }
        more = {} if at == 2 else {"NextToken": str(at + 1)}
        return {"Shards": [shard], "ResponseMetadata": {"HTTPHeaders": {}}, **more}


def test_a_list_of_shards_is_begun_again_when_its_next_page_has_expired(monkeypatch):
    given = OPTIONS | {"source.reader.type": "POLLING"}
    settings = installed().build("connector", "kinesis", given).source_settings()
    client = Paged()
    monkeypatch.setattr(probing, "kinesis", lambda *_, **__: client)
    assert [s.name for s in probing.Stream(settings).shards()] == ["shard-0", "shard-1", "shard-2"]
    whole = {"StreamARN": OPTIONS["stream.arn"]}
    pages = [{"NextToken": "1"}, {"NextToken": "2"}]
    assert client.asked == [whole, pages[0], whole, *pages]  # a token is sent alone
