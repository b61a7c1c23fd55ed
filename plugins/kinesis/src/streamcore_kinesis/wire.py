"""Encodes and decodes the two calls that carry records, past the SDK's general way of doing so.

The SDK walks its description of the service for every field of every record, which costs more than
all else that is done with one. It offers events around both steps; what these functions do not
recognise is left to it.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii
from typing import Any

_BODY = "streamcore-body"
"""Where an encoded request waits in the context of its call until the SDK has built the rest."""


def register(events: Any) -> None:
    """Put ourselves around the calls of one client."""
    events.register("before-parse.kinesis.GetRecords", decode_records)
    events.register("before-parse.kinesis.PutRecords", decode_results)
    events.register("before-parameter-build.kinesis.PutRecords", encode_entries)
    events.register("before-call.kinesis.PutRecords", replace_body)


def decode_records(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    """Read the records of an answer; the SDK reads what else it says."""
    _decode(response_dict, customized_response_dict, _read_records)


def decode_results(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    """Read what became of each record of a request."""
    _decode(response_dict, customized_response_dict, lambda results: None)


def _decode(
    response: dict[str, Any], found: dict[str, Any], read: Callable[[list[dict[str, Any]]], None]
) -> None:
    if response["status_code"] != 200:
        return
    try:
        answer = json.loads(response["body"])
        records = answer.pop("Records")
        read(records)
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    found["Records"] = records
    response["body"] = json.dumps(answer).encode()


def _read_records(records: list[dict[str, Any]]) -> None:
    moment = datetime.fromtimestamp
    for record in records:
        record["Data"] = a2b_base64(record["Data"])
        arrived = record["ApproximateArrivalTimestamp"]
        record["ApproximateArrivalTimestamp"] = moment(arrived, UTC)


def encode_entries(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    """Write a request; the SDK still builds one of its first record, for its headers."""
    entries = params.pop("Records")
    records = ",".join(
        f'{{"Data":"{b2a_base64(entry["Data"], newline=False).decode("ascii")}",'
        f'"PartitionKey":{encode_basestring_ascii(entry["PartitionKey"])}}}'
        for entry in entries
    )
    opened = json.dumps({**params, "Records": 0})[:-2]
    context[_BODY] = f"{opened}[{records}]}}".encode()
    params["Records"] = entries[:1]


def replace_body(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    """Send what was written for the whole request; it is signed after this."""
    params["body"] = context.pop(_BODY)
