"""Every record is accepted once, in full requests, whatever the service refuses meanwhile."""

import contextlib
import dataclasses
import json
import re
import threading
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


@pytest.mark.parametrize("partitioner", [{}, {"sink.partitioner": "random"}])
def test_keys_are_random_if_nothing_else_is_said(kinesis, kinesis_stream, options, partitioner):
    stream = kinesis_stream(shards=1)
    write(options(stream, **partitioner), rows(4))
    keys = {r["PartitionKey"] for _, r in read(kinesis, stream)}
    assert len(keys) == 4
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in keys)


@pytest.mark.parametrize("fail_on_error", ["false", "true"])
def test_a_missing_stream_is_one_clear_sentence(kinesis, options, fail_on_error):
    with pytest.raises(ConnectionFailed, match="writing to stream 'nowhere' failed at .*Check the"):
        write(options("nowhere", **{"sink.fail-on-error": fail_on_error}), rows(1))


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


@pytest.mark.parametrize("fail_on_error", ["false", "true"])
@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException"]
)
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

    def make(client, **extra):
        monkeypatch.setattr(putting, "kinesis", lambda *_, **__: client)
        connector = installed().build("connector", "kinesis", options("orders", **extra))
        return Putter(connector._sink())

    return make


class Picky(Service):
    """A client that refuses these records of its first request, and keeps what it accepts."""

    def __init__(self, *refused):
        super().__init__()
        self.refused, self.requests = refused, []

    code = "ProvisionedThroughputExceededException"

    def put_records(self, Records, **_):
        self.requests.append([entry["Data"] for entry in Records])
        refused, self.refused = self.refused, ()
        told = {"ErrorCode": self.code, "ErrorMessage": "slow"}
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


def test_a_record_that_may_not_be_written_fails_the_task(putter):
    client = Picky(1)
    client.code = "AccessDeniedException"
    sender = putter(client)
    sender.put_all([(b"a", "k"), (b"b", "k")])
    with pytest.raises(ConnectionFailed, match="1 of 2 records were refused, the first with Acces"):
        sender.close()
    assert len(client.requests) == 1


def until(holds, seconds=20):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("given", "records", "sent"),
    [
        ({"sink.batch.max-size": "5"}, [b"x"] * 4, []),
        ({"sink.batch.max-size": "5"}, [b"x"] * 7, [5]),
        ({"sink.flush-buffer.size": "1048576"}, [b"x" * 600_000], []),
        ({"sink.flush-buffer.size": "1048576"}, [b"x" * 600_000] * 2, [1]),
        ({"sink.flush-buffer.size": "1048576"}, [b"x" * 524_286, b"x" * 524_288], [2]),
    ],
)
def test_a_full_request_goes_before_the_task_ends(putter, given, records, sent):
    client = Picky()
    sender = putter(client, **given)
    sender.put_all((data, "k") for data in records)
    until(lambda: len(client.requests) == sender.requests)
    assert [len(each) for each in client.requests] == sent
    sender.close()
    assert sum(map(len, client.requests)) == len(records)


def test_a_record_that_has_waited_long_enough_goes_while_the_task_puts_nothing(putter):
    client = Picky(0)
    sender = putter(client, **{"sink.flush-buffer.timeout": "100"})
    sender.put_all([(b"first", "k"), (b"second", "k")])
    assert client.requests == []
    until(lambda: client.requests == [[b"first", b"second"], [b"first"]])  # one was refused
    sender.put(b"third", "k")
    sender.close()
    assert client.requests[2:] == [[b"third"]]


def test_what_goes_wrong_meanwhile_is_told_to_the_task(putter):
    answer = {"Error": {"Code": "AccessDeniedException", "Message": "no"}}
    client = Service(ClientError(answer, "PutRecords"))
    sender = putter(client, **{"sink.flush-buffer.timeout": "50"})
    sender.put(b"1", "k")
    until(lambda: sender._trouble)
    with pytest.raises(ConnectionFailed, match="writing to stream 'orders' .*AccessDenied"):
        sender.put(b"2", "k")
    with pytest.raises(ConnectionFailed, match="writing to stream 'orders' .*AccessDenied"):
        sender.close()
    assert client.calls == 1


def test_a_task_that_fails_leaves_no_record_on_its_way(putter):
    client = Picky()
    sender = putter(client)
    with contextlib.suppress(KeyError), sender:
        sender.put(b"1", "k")
        watch = sender._timer
        raise KeyError
    watch.join(2)  # less than a record may wait
    assert (watch.is_alive(), client.requests) == (False, [])


class Crowd(Service):
    """A client that answers once so many requests are under way."""

    def __init__(self, size):
        super().__init__()
        self.gate, self.counting = threading.Barrier(size), threading.Lock()
        self.now = self.most = 0

    def put_records(self, Records, **_):
        with self.counting:
            self.now += 1
            self.most = max(self.most, self.now)
        self.gate.wait(20)
        with self.counting:
            self.now -= 1
            return super().put_records(Records)


def test_as_many_requests_are_under_way_as_there_may_be(putter):
    client = Crowd(3)
    sender = putter(client, **{"sink.batch.max-size": "10", "sink.requests.max-inflight": "3"})
    sender._allowed = 1000.0  # as after many requests that were accepted
    sender.put_all((b"x", "k") for _ in range(60))
    sender.close()
    assert (client.calls, client.most) == (6, 3)


class Held(Service):
    """A client that answers when it is let."""

    def __init__(self):
        super().__init__()
        self.let = threading.Event()

    def put_records(self, Records, **_):
        assert self.let.wait(20)
        return super().put_records(Records)


def test_a_task_is_held_back_while_too_many_records_wait(putter):
    client = Held()
    given = {"sink.batch.max-size": "2", "sink.requests.max-buffered": "5"}
    sender = putter(client, **given)
    task = threading.Thread(target=lambda: sender.put_all((b"x", "k") for _ in range(6)))
    task.start()
    until(lambda: sender.records == 5)
    task.join(0.1)
    assert (task.is_alive(), sender.records, sender.requests) == (True, 5, 1)
    client.let.set()
    task.join(20)
    sender.close()
    assert (sender.records, client.calls) == (6, 3)


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


def write_with(partitioner, given):
    connector = installed().build("connector", "kinesis", given)
    connector = dataclasses.replace(connector, partitioner=partitioner)
    schema = pa.schema([("n", pa.int64()), ("key", pa.string())])
    connector.writer(TABLE).write(iter([pa.RecordBatch.from_pylist(rows(3), schema)]))


def test_a_partitioner_of_ones_own_chooses_keys(kinesis, kinesis_stream, options):
    stream = kinesis_stream(shards=1)
    write_with(ByRow(), options(stream))
    assert sorted(r["PartitionKey"] for _, r in read(kinesis, stream)) == [
        "row-0",
        "row-1",
        "row-2",
    ]


class TooLong(Partitioner):
    """Chooses keys that are longer than the service takes."""

    identifier = "too-long"

    def assign_keys(self, batch, target):
        return ["k" * 257] * batch.num_rows


def test_a_key_that_is_too_long_is_refused_before_it_is_sent(kinesis, kinesis_stream, options):
    stream = kinesis_stream(shards=1)
    with pytest.raises(RecordError, match="key has 1 to 256 characters, this one has 257"):
        write_with(TooLong(), options(stream))
    assert read(kinesis, stream) == []
