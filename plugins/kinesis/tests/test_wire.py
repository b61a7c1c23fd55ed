"""Requests and answers are what the SDK would have made of them, however they were made."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamcore.registry import installed
from streamcore_kinesis import wire
from streamcore_kinesis.client import kinesis as client_of


@pytest.fixture
def ours(kinesis, options):
    connector = installed().build("connector", "kinesis", options("any"))
    endpoint = connector.service(connector.region)
    return client_of(endpoint.provider, endpoint.region, endpoint.url)


RECORDS = [
    {"Data": bytes(range(256)), "PartitionKey": "a"},
    {"Data": b"", "PartitionKey": '"quoted" \\ \n'},
    {"Data": "grüße".encode(), "PartitionKey": "\N{GRINNING FACE} ü"},
]


def read(client, stream):
    shard = client.list_shards(StreamName=stream)["Shards"][0]["ShardId"]
    iterator = client.get_shard_iterator(
        StreamName=stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    return client.get_records(ShardIterator=iterator)


def test_both_ways_agree_with_the_sdk(kinesis, kinesis_stream, ours):
    stream = kinesis_stream(shards=1)
    sdk = kinesis.client(direct=True)
    answers = [client.put_records(StreamName=stream, Records=RECORDS) for client in (ours, sdk)]
    assert [sorted(answer) for answer in answers] == [
        ["EncryptionType", "FailedRecordCount", "Records", "ResponseMetadata"]
    ] * 2
    assert [len(answer["Records"]) for answer in answers] == [3, 3]
    found, expected = read(ours, stream), read(sdk, stream)
    assert found["Records"] == expected["Records"]
    assert found["MillisBehindLatest"] == expected["MillisBehindLatest"] == 0
    plain = [{key: record[key] for key in ("Data", "PartitionKey")} for record in found["Records"]]
    assert plain == RECORDS * 2


@given(st.lists(st.tuples(st.binary(max_size=50), st.text(min_size=1, max_size=20)), min_size=1))
def test_any_request_is_the_json_of_its_records(pairs):
    entries = [{"Data": data, "PartitionKey": key} for data, key in pairs]
    params, context = {"Records": entries, "StreamName": "s"}, {}
    wire.encode_entries(params=params, context=context)
    request = {}
    wire.replace_body(params=request, context=context)
    answer = {"status_code": 200, "body": request["body"]}
    found = {}
    wire.decode_results(response_dict=answer, customized_response_dict=found)
    assert json.loads(answer["body"]) == {"StreamName": "s"}
    assert [entry["PartitionKey"] for entry in found["Records"]] == [key for _, key in pairs]
    assert len(params["Records"]) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"status_code": 400, "body": b'{"__type": "ExpiredIteratorException"}'},
        {"status_code": 200, "body": b"<html>"},
        {"status_code": 200, "body": b"[]"},
        {"status_code": 200, "body": b'{"MillisBehindLatest": 0}'},
        {"status_code": 200, "body": b'{"Records": [{"Data": "?"}]}'},
        {
            "status_code": 200,
            "body": b'{"Records": [{"Data": "", "ApproximateArrivalTimestamp": "2026-01-01"}]}',
        },
    ],
)
def test_what_is_not_understood_is_left_to_the_sdk(answer):
    before, found = dict(answer), {}
    wire.decode_records(response_dict=answer, customized_response_dict=found)
    assert (answer, found) == (before, {})
