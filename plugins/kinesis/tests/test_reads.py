"""What a task asks a shard for: how much, how often, and how long while it is refused."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError
from streamcore import Column, ConnectionFailed, Table
from streamcore.registry import installed
from streamcore_kinesis import fetching, probing, retrying
from streamcore_kinesis.fetching import CALLS_APART, SliceReader
from streamcore_kinesis.positions import Slice, at_record
from streamcore_kinesis.retrying import Caller

SHARED = {"aws.region": "us-east-1", "format": "json"}
TABLES = {
    "kinesis": SHARED | {"stream.arn": "arn:aws:kinesis:us-east-1:123456789012:stream/orders"},
    "kinesis-legacy": SHARED | {"stream": "orders"},
}
ITERATOR_LIVES = 300
WHOLE = Slice("shard-0", at_record("100", 0), at_record("200", 0), 0, 2**128 - 1)


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def time(self):
        return 1_700_000_000 + self.now

    def sleep(self, seconds):
        self.now += seconds


class Refusal(ClientError):
    """An error of the service."""

    def __init__(self, code, status=400):
        told = {"Code": code, "Message": "no."}
        super().__init__(
            {"Error": told, "ResponseMetadata": {"HTTPStatusCode": status}}, "GetRecords"
        )


class Expired(Refusal):
    """What the service says of an iterator that is too old."""

    def __init__(self):
        super().__init__("ExpiredIteratorException")


class Shard:
    """A client of a shard that answers by a script: sequence numbers, or a refusal."""

    exceptions = SimpleNamespace(
        ExpiredIteratorException=Expired, ResourceNotFoundException=LookupError
    )

    def __init__(self, clock, *script):
        self.clock, self.script = clock, list(script)
        self.asked, self.times = [], []
        self.arrived = datetime.fromtimestamp(0, UTC)

    def get_shard_iterator(self, **_):
        return {"ShardIterator": str(self.clock.now)}

    def get_records(self, **asked):
        self.asked.append(asked)
        assert len(self.asked) < 99, "this never ends"
        self.times.append(self.clock.now)
        if self.clock.now - float(asked["ShardIterator"]) > ITERATOR_LIVES:
            raise Expired
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, Exception):
            raise answer
        return {
            "Records": [
                {"SequenceNumber": str(number), "ApproximateArrivalTimestamp": self.arrived}
                for number in answer
            ],
            "NextShardIterator": str(self.clock.now),
            "MillisBehindLatest": 1000,
        }

    @property
    def gaps(self):
        return [later - earlier for earlier, later in zip(self.times, self.times[1:], strict=False)]


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in (fetching, retrying):
        monkeypatch.setattr(module, "time", clock)
    return clock


def read(client, connector="kinesis", **options):
    given = TABLES[connector] | options
    settings = installed().build("connector", connector, given).source_settings()
    caller = Caller(client, settings.endpoint, settings.retries)
    reader = SliceReader(caller, settings, WHOLE)
    return [int(record["SequenceNumber"]) for found in reader.records() for record in found]


@pytest.mark.parametrize(
    ("connector", "option"),
    [
        ("kinesis", "source.shard.get-records.max-record-count"),
        ("kinesis-legacy", "scan.shard.getrecords.maxrecordcount"),
    ],
)
def test_an_answer_holds_as_many_records_as_the_table_says(clock, connector, option):
    for limit, options in ((40, {option: "40"}), (10000, {})):
        client = Shard(clock, [100], [101], [200])
        assert read(client, connector, **options) == [100, 101]
        assert [asked["Limit"] for asked in client.asked] == [limit] * 3


EMPTY = "source.reader.empty-records-fetch-interval"
EVERY = "scan.shard.getrecords.intervalmillis"


@pytest.mark.parametrize(
    ("connector", "options", "gaps"),
    [
        ("kinesis", {}, [CALLS_APART] * 4),
        ("kinesis", {EMPTY: "2 s"}, [CALLS_APART, CALLS_APART, 2, 2]),
        ("kinesis", {EMPTY: "10 ms"}, [CALLS_APART] * 4),
        ("kinesis-legacy", {}, [CALLS_APART] * 4),
        ("kinesis-legacy", {EVERY: "2000"}, [2] * 4),
        ("kinesis-legacy", {EVERY: "0"}, [CALLS_APART] * 4),
    ],
)
def test_reads_keep_the_pause_of_the_table_and_never_less_than_the_service_wants(
    clock, connector, options, gaps
):
    client = Shard(clock, [100], [101], [], [], [200])
    assert read(client, connector, **options) == [100, 101]
    assert client.gaps == pytest.approx(gaps)


def test_a_pause_longer_than_an_iterator_lives_ends(clock):
    client = Shard(clock, [100], [], [200])
    assert read(client, **{EMPTY: "10 min"}) == [100]
    assert client.gaps == pytest.approx([CALLS_APART, 600, CALLS_APART])


THROTTLED = "ProvisionedThroughputExceededException"


@pytest.mark.parametrize(
    ("connector", "options", "calls"),
    [
        ("kinesis", {}, 50),
        ("kinesis-legacy", {}, 4),
        ("kinesis-legacy", {"scan.shard.getrecords.maxretries": "0"}, 1),
    ],
)
def test_a_shard_that_stays_throttled_is_given_up_with_a_sentence(clock, connector, options, calls):
    client = Shard(clock, [100], Refusal(THROTTLED))
    with pytest.raises(
        ConnectionFailed,
        match=f"^reading shard 'shard-0' of stream 'orders' failed at region 'us-east-1': "
        f"{THROTTLED}: no. Other readers or writers use up what a shard allows: add shards, or "
        r"read with a throughput of its own \('EFO'\).$",
    ):
        read(client, connector, **options)
    assert len(client.asked) == 1 + calls


def test_an_error_of_the_server_passes_whatever_its_code(clock):
    client = Shard(clock, [100], Refusal("NeverHeardOf", 503), Refusal("Other", 500), [101], [200])
    assert read(client) == [100, 101]
    refused = Shard(clock, [100], Refusal("NeverHeardOf", 400))
    with pytest.raises(ConnectionFailed, match="^reading shard .* failed .*: NeverHeardOf: no.$"):
        read(refused)
    assert len(refused.asked) == 2


class Stream(Shard):
    """A client of a stream whose one shard is listed after so many empty lists."""

    def __init__(self, clock, *script, lists=0, behind=0):
        super().__init__(clock, *script)
        self.lists, self.behind = lists, behind
        self.made = datetime.fromtimestamp(clock.time(), UTC)

    def list_shards(self, **_):
        self.lists -= 1
        shard = {
            "ShardId": "shard-0",
            "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "9"},
            "SequenceNumberRange": {"StartingSequenceNumber": "0"},
        }
        shards = [shard] if self.lists < 0 else []
        return {"Shards": shards, "ResponseMetadata": {"HTTPHeaders": {}}}

    def describe_stream_summary(self, **_):
        summary = {"RetentionPeriodHours": 24, "StreamCreationTimestamp": self.made}
        return {"StreamDescriptionSummary": summary, "ResponseMetadata": {"HTTPHeaders": {}}}

    def get_records(self, **asked):
        return super().get_records(**asked) | {"MillisBehindLatest": self.behind}


@pytest.fixture
def driver(clock, monkeypatch):
    """A stream reader as the driver has it."""
    monkeypatch.setattr(probing, "time", clock)

    def make(client, connector="kinesis", **options):
        monkeypatch.setattr(probing, "kinesis", lambda *_, **__: client)
        built = installed().build("connector", connector, TABLES[connector] | options)
        return built.stream_reader(Table((Column("n", "BIGINT"),), "t"))

    return make


def test_a_stream_that_lists_no_shard_yet_is_looked_at_again(clock, driver):
    reader = driver(Stream(clock, [], lists=2))
    offset = reader.initialOffset()
    assert offset["shards"] == {}
    offset = reader.latestOffset(offset, None)
    assert offset["shards"] == {}
    clock.sleep(60)
    assert list(reader.latestOffset(offset, None)["shards"]) == ["shard-0"]


LOOKS_APART = probing._WITHIN / probing._LOOKS


@pytest.mark.parametrize(
    ("connector", "options", "gaps"),
    [
        ("kinesis", {}, [LOOKS_APART] * 3),
        ("kinesis", {EMPTY: "2 s"}, [LOOKS_APART, 2, 2]),
        ("kinesis-legacy", {}, [LOOKS_APART] * 3),
        ("kinesis-legacy", {EVERY: "2000"}, [2] * 3),
    ],
)
def test_an_idle_stream_is_looked_at_as_often_as_the_table_says(
    clock, driver, connector, options, gaps
):
    client = Stream(clock, [])
    reader = driver(client, connector, **options)
    offset = reader.initialOffset()
    clock.sleep(60)
    for _ in range(4):  # the first finds that there is nothing in its batch
        offset = reader.latestOffset(offset, None)
    assert client.gaps == pytest.approx(gaps)


def test_a_read_of_all_there_is_looks_on_while_answers_are_empty_but_behind(clock, driver):
    empty = [[]] * 3 * probing._FOLLOWED
    client = Stream(clock, *empty, [300], behind=1000)
    client.arrived = client.made + timedelta(minutes=6)
    clock.sleep(600)
    reader = driver(client, **{"source.init.position": "TRIM_HORIZON"})
    reader.prepareForTriggerAvailableNow()
    first = reader.latestOffset(reader.initialOffset(), None)  # ends before that record
    assert len(client.asked) == probing._FOLLOWED
    assert reader.latestOffset(first, None) != first
    assert len(client.asked) > len(empty)
