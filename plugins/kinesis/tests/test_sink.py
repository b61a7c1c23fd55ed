"""Every record is accepted once, in full requests, whatever the service refuses meanwhile."""

import contextlib
import dataclasses
import json
import time

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError
from streamcore import Column, ConnectionFailed, Partitioner, RecordError, Table
from streamcore.registry import installed
from streamcore_kinesis import putting, sink
from streamcore_kinesis.putting import Putter

TABLE = Table((Column("n", "BIGINT"), Column("key", "STRING")), "t")


def write(options, rows, table=TABLE):
    schema = pa.schema([("n", pa.int64()), ("key", pa.string())])
    writer = installed().build("connector", "kinesis", options).writer(table)
    return writer.write(iter([pa.RecordBatch.from_pylist(rows, schema)]))


def read(kinesis, stream):
    client = kinesis.client(direct=True)
    found = []
    for shard in client.list_shards(StreamName=stream)["Shards"]:
        iterator = client.get_shard_iterator(
            StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while True:
            answer = client.get_records(ShardIterator=iterator)
            found += [(shard["ShardId"], r) for r in answer["Records"]]
            iterator = answer["NextShardIterator"]
            if not answer["Records"] or iterator is None:
                break
    return found


@contextlib.contextmanager
def failing(kinesis, **shares):
    for name, share in shares.items():
        setattr(kinesis.faults, name, share)
    try:
        yield
    finally:
        kinesis.faults.clear()


def rows(count):
    return [{"n": n, "key": f"k{n % 5}"} for n in range(count)]


def test_all_rows_arrive_in_requests_of_the_chosen_size(kinesis, kinesis_stream, options):
    stream = kinesis_stream(shards=2)
    written = write(options(stream, **{"sink.batch.max-size": "20"}), rows(150))
    found = read(kinesis, stream)
    assert sorted(json.loads(r["Data"])["n"] for _, r in found) == list(range(150))
    assert (written.records, written.requests) == (150, 8)


def test_refused_records_are_sent_again_until_they_are_accepted(kinesis, kinesis_stream, options):
    stream = kinesis_stream(shards=2)
    with failing(kinesis, partial=0.3):
        written = write(options(stream, **{"sink.batch.max-size": "50"}), rows(400))
    found = [json.loads(r["Data"])["n"] for _, r in read(kinesis, stream)]
    assert sorted(found) == list(range(400))
    assert written.retried > 0


def test_the_first_refusal_fails_the_task_if_that_is_wanted(kinesis, kinesis_stream, options):
    stream = kinesis_stream(shards=1)
    with (
        failing(kinesis, partial=1.0),
        pytest.raises(ConnectionFailed, match="of 10 records were refused, the first with"),
    ):
        write(options(stream, **{"sink.fail-on-error": "true"}), rows(10))


def test_partitioned_tables_spell_their_keys(kinesis, kinesis_stream, options):
    stream = kinesis_stream(shards=1)
    table = Table(TABLE.columns, "t", partition_keys=("key", "n"))
    write(options(stream), rows(3), table)
    keys = [r["PartitionKey"] for _, r in read(kinesis, stream)]
    assert sorted(keys) == ["k0|0", "k1|1", "k2|2"]


@pytest.mark.parametrize("partitioner", ["random", "fixed"])
def test_partitioners_choose_keys(kinesis, kinesis_stream, options, partitioner):
    stream = kinesis_stream(shards=1)
    write(options(stream, **{"sink.partitioner": partitioner}), rows(4))
    keys = {r["PartitionKey"] for _, r in read(kinesis, stream)}
    assert keys == {"0"} if partitioner == "fixed" else len(keys) == 4


def test_a_missing_stream_is_one_clear_sentence(kinesis, options):
    with pytest.raises(ConnectionFailed, match="writing to stream 'nowhere' failed at .*Check the"):
        write(options("nowhere"), rows(1))


def test_a_record_that_is_too_large_is_refused_before_it_is_sent(kinesis_stream, options):
    stream = kinesis_stream(shards=1)
    with pytest.raises(RecordError, match="larger than the 1048576 bytes a stream takes"):
        write(options(stream), [{"n": 1, "key": "x" * 1_048_600}])


def test_a_mebibyte_holds_the_partition_key_too(kinesis, kinesis_stream, options):
    stream = kinesis_stream(shards=1)
    putter = Putter(installed().build("connector", "kinesis", options(stream))._sink())
    key = "\N{SNOWMAN}"  # three bytes
    putter.put(b"x" * (1_048_576 - 3), key)
    with pytest.raises(
        RecordError,
        match="^a record of 1048574 bytes with a partition key of 3, '\N{SNOWMAN}', is larger than "
        "the 1048576 bytes a stream takes$",
    ):
        putter.put(b"x" * (1_048_576 - 2), key)
    putter.close()
    assert [len(r["Data"]) for _, r in read(kinesis, stream)] == [1_048_573]


def test_an_empty_partition_key_is_refused(kinesis_stream, options):
    stream = kinesis_stream(shards=1)
    table = Table(TABLE.columns, "t", partition_keys=("key",))
    with pytest.raises(RecordError, match="a partition key has 1 to 256 characters"):
        write(options(stream), [{"n": 1, "key": ""}], table)


def test_requests_are_cut_by_bytes_with_keys_counted(kinesis, kinesis_stream, options):
    stream = kinesis_stream(shards=1)
    big = [{"n": n, "key": "x" * 400_000} for n in range(5)]
    written = write(options(stream, **{"sink.flush-buffer.size": "1048576"}), big)
    assert (written.records, written.requests) == (5, 3)


def test_a_record_that_has_waited_long_enough_is_sent_without_company(
    kinesis, kinesis_stream, options
):
    stream = kinesis_stream(shards=1)
    given = options(stream, **{"sink.flush-buffer.timeout": "100"})
    connector = installed().build("connector", "kinesis", given)
    putter = Putter(connector._sink())
    putter.put(b"first", "a")
    time.sleep(0.2)
    putter.put(b"second", "b")
    assert putter.requests == 1
    putter.close()
    assert [r["Data"] for _, r in read(kinesis, stream)] == [b"first", b"second"]


def test_several_requests_are_under_way_at_once(kinesis, kinesis_stream, options):
    stream = kinesis_stream(shards=1)
    with failing(kinesis, latency=0.3):
        began = time.monotonic()
        given = {"sink.batch.max-size": "10", "sink.requests.max-inflight": "10"}
        write(options(stream, **given), rows(150))
    assert len(read(kinesis, stream)) == 150
    assert time.monotonic() - began < 15 * 0.3 * 3


@pytest.mark.parametrize("fail_on_error", ["false", "true"])
@pytest.mark.parametrize("code", ["AccessDeniedException", "UnrecognizedClientException"])
def test_what_never_heals_fails_at_once_with_and_without_fail_on_error(
    kinesis, kinesis_stream, options, code, fail_on_error
):
    stream = kinesis_stream(shards=1)
    before = kinesis.ledger.injected["refuse"]
    with failing(kinesis, refuse=code), pytest.raises(ConnectionFailed, match=f": {code}: "):
        write(options(stream, **{"sink.fail-on-error": fail_on_error}), rows(3))
    assert kinesis.ledger.injected["refuse"] == before + 1


class Service:
    """A client that answers with these errors, in turn, and accepts everything after."""

    def __init__(self, *errors):
        self.errors, self.calls = list(errors), 0

    def put_records(self, Records, **_):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return {"Records": [{} for _ in Records]}


@pytest.fixture
def putter(options, monkeypatch):
    monkeypatch.setattr(putting, "_LONGEST_PAUSE", 0.001)

    def make(client):
        monkeypatch.setattr(putting, "kinesis", lambda *_, **__: client)
        connector = installed().build("connector", "kinesis", options("orders"))
        return Putter(connector._sink())

    return make


class Picky(Service):
    """A client that refuses these records of its first request, and keeps what it accepts."""

    def __init__(self, *refused):
        super().__init__()
        self.refused, self.requests = refused, []

    def put_records(self, Records, **_):
        self.requests.append([entry["Data"] for entry in Records])
        refused, self.refused = self.refused, ()
        told = {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "slow"}
        return {"Records": [told if n in refused else {} for n in range(len(Records))]}


def test_refused_records_are_first_in_line_and_in_their_order(putter):
    client = Picky(1, 3)
    sender = putter(client)
    for name in (b"a", b"b", b"c", b"d"):
        sender.put(name, "k")
    sender._send(everything=True)
    sender.put(b"e", "k")
    sender.close()
    assert client.requests == [[b"a", b"b", b"c", b"d"], [b"b", b"d", b"e"]]


def test_what_may_be_under_way_grows_by_ten_and_shrinks_by_a_hundredth(putter):
    sender = putter(Picky(0))
    assert sender._allowed == 500
    for expected in (495.0, 505.0, 515.0):
        sender.put(b"1", "k")
        sender._send(everything=True)
        sender._settle(block=True)
        assert sender._allowed == expected
        if sender._waiting:  # what was refused goes with the next
            sender._waiting.clear()
    sender._allowed = 500 * 50 - 5
    sender.put(b"1", "k")
    sender.close()
    assert sender._allowed == 500 * 50


BROKEN = ConnectionClosedError(endpoint_url="http://there")


def test_an_endpoint_that_takes_no_request_is_given_up(putter):
    client = Service(*[BROKEN] * 1000)
    sender = putter(client)
    sender.put(b"1", "k")
    with pytest.raises(
        ConnectionFailed, match="^writing to stream 'orders' was tried 50 times without success and"
    ):
        sender.close()
    assert client.calls == 50


def test_a_service_that_has_taken_records_is_waited_for_with_a_warning(putter, caplog):
    client = Service()
    sender = putter(client)
    sender.put(b"1", "k")
    sender._send(everything=True)
    sender._settle(block=True)
    unreached = EndpointConnectionError(endpoint_url="http://there")
    client.errors = [BROKEN, unreached] * 60
    sender.put(b"2", "k")
    sender.close()
    assert client.calls == 122
    (warned,) = caplog.records
    assert warned.getMessage().startswith("writing to stream 'orders' fails and is tried again: ")


def test_a_stream_that_throttles_from_the_start_is_waited_for(putter):
    answer = {"Error": {"Code": "ProvisionedThroughputExceededException", "Message": "slow"}}
    client = Service(*[ClientError(answer, "PutRecords")] * 100)
    sender = putter(client)
    sender.put(b"1", "k")
    sender.close()
    assert client.calls == 101


def test_the_fixed_partitioner_writes_the_number_of_its_task(
    kinesis, kinesis_stream, options, monkeypatch
):
    stream = kinesis_stream(shards=1)
    monkeypatch.setattr(sink.Task, "current", lambda: sink.Task(3, 0, "", None))
    write(options(stream, **{"sink.partitioner": "fixed"}), rows(4))
    assert {r["PartitionKey"] for _, r in read(kinesis, stream)} == {"3"}


class ByRow(Partitioner):
    """Keys every record by its number, to see that a partitioner of one's own is asked."""

    identifier = "by-row"

    def assign_keys(self, batch, target):
        return [f"row-{n}" for n in batch.column("n").to_pylist()]


def test_a_partitioner_of_ones_own_chooses_keys(kinesis, kinesis_stream, options):
    stream = kinesis_stream(shards=1)
    connector = installed().build("connector", "kinesis", options(stream))
    connector = dataclasses.replace(connector, partitioner=ByRow())
    schema = pa.schema([("n", pa.int64()), ("key", pa.string())])
    connector.writer(TABLE).write(iter([pa.RecordBatch.from_pylist(rows(3), schema)]))
    assert sorted(r["PartitionKey"] for _, r in read(kinesis, stream)) == [
        "row-0",
        "row-1",
        "row-2",
    ]
