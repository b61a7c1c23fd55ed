"""Dead letters fit into requests and records, and are sent again at the pace of other calls."""

import base64
import json
from types import SimpleNamespace

import pytest
from streamcore import ConnectionFailed
from streamcore.failures import BadRecord
from streamcore.registry import installed
from streamcore_kinesis import deadletters
from streamcore_kinesis.deadletters import dead_letter_sender
from streamcore_kinesis.retrying import Caller

OPTIONS = {
    "stream.arn": "arn:aws:kinesis:us-east-1:123456789012:stream/orders",
    "aws.region": "us-east-1",
    "format": "json",
    "scan.deser.failure-handler": "dead-letter",
    "scan.deser.failure-stream": "letters",
}
THROTTLED = "ProvisionedThroughputExceededException"


class Letters:
    """A client that refuses whole requests with these codes first, and then accepts."""

    def __init__(self, *codes):
        self.codes, self.requests = list(codes), []

    def put_records(self, Records, **_):
        self.requests.append(Records)
        code = self.codes.pop(0) if self.codes else None
        return {"Records": [{"ErrorCode": code} if code else {} for _ in Records]}


@pytest.fixture
def send(monkeypatch):
    pauses = []
    # In this module alone: threads that earlier tests left to PySpark sleep, too.
    monkeypatch.setattr(deadletters, "time", SimpleNamespace(sleep=pauses.append))

    def sending(client, *values):
        connector = installed().build("connector", "kinesis", OPTIONS)
        settings = connector.source_settings()
        caller = Caller(client, settings.endpoint, settings.retries)
        bad = [
            BadRecord("there", "no row", b"k", value, (("stream", "orders"),)) for value in values
        ]
        dead_letter_sender(connector, caller, settings)(bad)
        return pauses

    return sending


def test_a_request_holds_no_more_bytes_than_the_service_takes(send):
    client = Letters()
    send(client, *[b"x" * 20_000] * 500)
    sizes = [sum(len(r["Data"]) + len(r["PartitionKey"]) for r in each) for each in client.requests]
    assert max(sizes) <= 5 * 1024 * 1024
    assert sum(len(each) for each in client.requests) == 500


def test_a_record_too_large_for_a_letter_is_cut_and_says_so(send):
    client = Letters()
    send(client, b"x" * 1_000_000, b"short")
    cut, whole = (json.loads(r["Data"]) for each in client.requests for r in each)
    assert all(len(r["Data"]) + 1 <= 1024 * 1024 for each in client.requests for r in each)
    assert cut["bytes"] == 1_000_000
    assert 700_000 < len(base64.b64decode(cut["data"])) < 1_000_000
    assert "bytes" not in whole
    assert base64.b64decode(whole["data"]) == b"short"


def test_throttled_letters_are_sent_again_after_growing_pauses(send):
    pauses = send(Letters(*[THROTTLED] * 5), b"x")
    assert len(pauses) == 5
    assert all(pause >= 0.15 for pause in pauses)


def test_letters_that_are_never_taken_fail_the_task(send):
    with pytest.raises(
        ConnectionFailed, match=f"^stream 'letters' refused dead letters: {THROTTLED}"
    ):
        send(Letters(*[THROTTLED] * 1000), b"x")
    client = Letters("AccessDeniedException")
    with pytest.raises(ConnectionFailed, match="refused dead letters: AccessDeniedException.$"):
        send(client, b"x")
    assert len(client.requests) == 1
