"""Subscriptions that are refused, break or fall silent, and consumers that come and go slowly."""

import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError, EventStreamError
from streamcore import ConnectionFailed
from streamcore.registry import installed
from streamcore.testing.services.kinesis.eventstream import frame
from streamcore_kinesis import client as clients
from streamcore_kinesis import consumers, subscribing
from streamcore_kinesis.consumers import Consumer
from streamcore_kinesis.positions import END, TRIM, Slice
from streamcore_kinesis.retrying import Caller
from streamcore_kinesis.subscribing import SubscribedSliceReader

NEW = {
    "stream.arn": "arn:aws:kinesis:us-east-1:123456789012:stream/orders",
    "aws.region": "us-east-1",
    "aws.credentials.basic.accesskeyid": "id",
    "aws.credentials.basic.secretkey": "secret",
    "format": "json",
    "source.reader.type": "EFO",
    "source.efo.consumer.name": "ours",
}
OLD = {
    "stream": "orders",
    "aws.region": "us-east-1",
    "format": "json",
    "scan.stream.recordpublisher": "EFO",
    "scan.stream.efo.consumername": "ours",
}


def settings_of(given):
    connector = "kinesis" if "stream.arn" in given else "kinesis-legacy"
    return installed().build("connector", connector, given).source_settings()


def subscription(client, settings):
    caller = Caller(client, settings.endpoint, settings.retries)
    part = Slice("shard-0", TRIM, END, 0, 2**128 - 1)
    reader = SubscribedSliceReader(caller, settings, part, settings.fan_out, "arn:ours")
    return [int(record["SequenceNumber"]) for found in reader.records() for record in found]


def refused(code):
    return ClientError({"Error": {"Code": code, "Message": "no."}}, "SubscribeToShard")


def broken(code):
    return EventStreamError({"Error": {"Code": code, "Message": "no."}}, "SubscribeToShard")


def event(number, last=False):
    arrived = datetime.fromtimestamp(0, UTC)
    record = {"SequenceNumber": str(number), "ApproximateArrivalTimestamp": arrived}
    told = {"Records": [record], "MillisBehindLatest": 0}
    return told if last else {**told, "ContinuationSequenceNumber": f"{number}5"}


class Subscribed:
    """A client whose subscriptions go by a script: refused, or events of which one may fail."""

    def __init__(self, *script):
        self.script, self.asked = list(script), []

    def subscribe_to_shard(self, StartingPosition, **_):
        self.asked.append(StartingPosition)
        made = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(made, Exception):
            raise made
        return {"EventStream": Events(made)}


class Events:
    """One subscription."""

    def __init__(self, events):
        self.events = events

    def __iter__(self):
        for each in self.events:
            if isinstance(each, Exception):
                raise each
            yield {"SubscribeToShardEvent": each}

    def close(self):
        """Nothing to close."""


@pytest.fixture
def pauses(monkeypatch):
    pauses = []
    monkeypatch.setattr(subscribing, "time", SimpleNamespace(sleep=pauses.append))
    return pauses


@pytest.mark.parametrize("error", [refused, broken])
def test_a_subscription_that_is_denied_fails_at_once_with_a_sentence(pauses, error):
    denied = error("AccessDeniedException")
    client = Subscribed(denied if error is refused else [denied])
    with pytest.raises(
        ConnectionFailed,
        match="^subscribing to shard 'shard-0' of stream 'orders' failed at region 'us-east-1': "
        "AccessDeniedException: no. Check the policy of the credentials in use.$",
    ):
        subscription(client, settings_of(NEW))
    assert (len(client.asked), pauses) == (1, [])


@pytest.mark.parametrize(
    "code", ["ResourceInUseException", "LimitExceededException", "InternalFailureException"]
)
@pytest.mark.parametrize(
    ("given", "calls"), [(NEW, 50), (OLD | {"scan.shard.subscribetoshard.maxretries": "2"}, 3)]
)
def test_a_subscription_that_is_never_given_is_given_up_with_a_sentence(pauses, code, given, calls):
    client = Subscribed(refused(code) if code != "InternalFailureException" else [broken(code)])
    with pytest.raises(
        ConnectionFailed,
        match=f"^subscribing to shard 'shard-0' of stream 'orders' failed at .*: {code}: no.$",
    ):
        subscription(client, settings_of(given))
    assert (len(client.asked), len(pauses)) == (calls, calls - 1)


def test_pauses_begin_again_after_an_event_and_reading_goes_on_behind_it(pauses):
    given = OLD | {
        "scan.shard.subscribetoshard.maxretries": "2",
        "scan.shard.subscribetoshard.backoff.base": "1000",
        "scan.shard.subscribetoshard.backoff.max": "1000000",
        "scan.shard.subscribetoshard.backoff.expconst": "10",
    }
    client = Subscribed(
        refused("LimitExceededException"),
        refused("ResourceInUseException"),
        [event(1), event(2), broken("InternalFailureException")],
        refused("LimitExceededException"),
        [event(3), OSError("broken")],
        [event(4)],  # ends as one does after five minutes, and there is more
        [event(5, last=True)],
    )
    assert subscription(client, settings_of(given)) == [1, 2, 3, 4, 5]
    behind = [{"Type": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": f"{n}5"} for n in (2, 2, 3, 4)]
    assert client.asked == [{"Type": "TRIM_HORIZON"}] * 3 + behind
    for pause, most in zip(pauses, [10, 100, 10, 100, 10], strict=True):
        assert most / 2 <= pause <= most


class Silent(BaseHTTPRequestHandler):
    """Speaks the fourth time it is subscribed to, and until then falls silent early or late."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Keep quiet."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        server = self.server
        server.calls += 1
        self.close_connection = True
        if server.calls == 1:
            server.done.wait(60)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.amazon.eventstream")
        self.end_headers()
        self.wfile.write(frame("initial-response", {}))
        if server.calls < 4:
            self.wfile.flush()
            server.done.wait(60)
            return
        record = {"SequenceNumber": "7", "ApproximateArrivalTimestamp": 0, "Data": ""}
        self.wfile.write(frame("SubscribeToShardEvent", {"Records": [record]}))


def test_a_silent_subscription_is_given_up_and_made_again_and_is_no_attempt(caplog):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    server.calls, server.done = 0, threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    given = OLD | {
        "aws.endpoint": f"http://127.0.0.1:{server.server_port}",
        "aws.credentials.basic.accesskeyid": "id",
        "aws.credentials.basic.secretkey": "secret",
        "scan.shard.subscribetoshard.maxretries": "0",
    }
    settings = settings_of(given)
    endpoint = settings.endpoint
    client = clients.kinesis(endpoint.provider, endpoint.region, endpoint.url, read_seconds=0.3)
    try:
        assert subscription(client, settings) == [7]
    finally:
        server.done.set()
        server.shutdown()
        server.server_close()
    assert server.calls == 4
    assert caplog.text.count("shard 'shard-0' of stream 'orders' said nothing in time") == 3


# --- consumers ------------------------------------------------------------------------------


class Gone(ClientError):
    """What the service says of a consumer that is not there."""

    def __init__(self):
        super().__init__({"Error": {"Code": "ResourceNotFoundException"}}, "Describe")


class Taken(ClientError):
    """What the service says when a name is taken."""

    def __init__(self):
        super().__init__({"Error": {"Code": "ResourceInUseException"}}, "Register")


class Registry:
    """A client that finds a consumer in one state after the other; None is not there."""

    exceptions = SimpleNamespace(ResourceNotFoundException=Gone, ResourceInUseException=Taken)

    def __init__(self, *states, registered=()):
        self.states, self.registered = list(states), list(registered)
        self.registrations = self.removals = 0

    def register_stream_consumer(self, **_):
        if self.states and self.states[0] is not None:
            raise Taken
        self.registrations += 1
        self.states = list(self.registered)

    def describe_stream_consumer(self, **_):
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if state is None:
            raise Gone
        return {"ConsumerDescription": {"ConsumerStatus": state, "ConsumerARN": "arn:ours"}}

    def describe_stream_summary(self, **_):
        return {"StreamDescriptionSummary": {"StreamARN": NEW["stream.arn"]}}

    def deregister_stream_consumer(self, **_):
        self.removals += 1


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def consumer(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(consumers, "time", clock)

    def make(registry, given):
        settings = settings_of(given)
        made = Consumer(
            Caller(registry, settings.endpoint, settings.retries), settings, settings.fan_out
        )
        made.clock = clock
        return made

    return make


def test_a_consumer_on_its_way_out_is_registered_again_when_it_has_gone(consumer):
    registry = Registry("DELETING", "DELETING", None, registered=["CREATING", "ACTIVE"])
    assert consumer(registry, NEW).arn == "arn:ours"
    assert registry.registrations == 1


LOOKS = "source.efo.describe.retry-strategy.attempts.max"


@pytest.mark.parametrize(
    ("given", "looks"),
    [
        (NEW | {LOOKS: "3"}, 3),
        (OLD | {"scan.stream.describestreamconsumer.maxretries": "4"}, 5),
        (OLD | {"scan.stream.registerstreamconsumer.timeout": "0"}, 1),
    ],
)
def test_a_consumer_that_does_not_become_active_is_given_up_with_a_sentence(consumer, given, looks):
    with pytest.raises(
        ConnectionFailed,
        match=f"^consumer 'ours' of stream 'orders' did not become active in {looks} looks, the "
        "last of which found it CREATING. Start the query again, or remove the consumer first.$",
    ):
        consumer(Registry(None, registered=["CREATING"]), given).prepare()


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (NEW, 10),
        (NEW | {"source.efo.deregister.timeout": "3 s"}, 3),
        (OLD, 60),
        (OLD | {"scan.stream.deregisterstreamconsumer.timeout": "5"}, 5),
    ],
)
def test_a_consumer_that_takes_too_long_to_go_is_named_and_left(consumer, caplog, given, seconds):
    registry = Registry("ACTIVE", "DELETING")
    ours = consumer(registry, given)
    ours.remove()
    assert registry.removals == 1
    assert seconds <= ours.clock.now < seconds + 0.5
    assert "consumer 'ours' is still being removed" in caplog.text


def test_a_consumer_that_may_not_be_removed_is_named_and_left(consumer, caplog):
    registry = Registry("ACTIVE")
    registry.deregister_stream_consumer = lambda **_: (_ for _ in ()).throw(
        refused("AccessDeniedException")
    )
    consumer(registry, NEW).remove()
    assert "consumer 'ours' was not removed: removing consumer 'ours' failed" in caplog.text
