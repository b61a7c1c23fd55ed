"""Dead letters: rejected records go to another stream, with where they came from and why."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from streamcore import ConnectionFailed
from streamcore.failures import BadRecord

from .client import PASSING
from .options import StreamTable
from .retrying import Caller, pause
from .settings import SourceSettings

_MOST, _MOST_BYTES = 500, 5 * 1024 * 1024
"""Records and bytes that one request may hold."""
_LARGEST = 1024 * 1024
_SPARE = 64
"""Bytes of a letter kept free for the length of a record that is cut."""

Letter = dict[str, Any]


def dead_letter_sender(
    connector: StreamTable, caller: Caller, settings: SourceSettings
) -> Callable[[Sequence[BadRecord]], None] | None:
    """A function that puts rejected records to the failure stream; None when there is none.

    Kinesis records have no headers, so a dead letter is a JSON object: the record's bytes in
    base64, its partition key, its position and the reason. A record too large for that is cut,
    and `bytes` says how long it was.
    """
    name = connector.failure_stream
    if name is None:
        return None
    target = {"StreamARN": name} if name.startswith("arn:") else {"StreamName": name}

    def send(bad: Sequence[BadRecord]) -> None:
        for letters in _requests([_letter(record) for record in bad]):
            attempt = 0
            while letters:
                answer = caller.call(
                    f"sending dead letters to stream '{name}'",
                    partial(caller.client.put_records, **target, Records=letters),
                )
                again, code = _refused(letters, answer["Records"])
                attempt = 0 if len(again) < len(letters) else attempt + 1
                if attempt and (code not in PASSING or attempt >= settings.retries.attempts):
                    raise ConnectionFailed(f"stream '{name}' refused dead letters: {code}.")
                letters = again
                if letters:
                    time.sleep(pause(settings.retries, attempt))

    return send


def _refused(letters: list[Letter], results: list[Any]) -> tuple[list[Letter], str]:
    again = [each for each, told in zip(letters, results, strict=True) if told.get("ErrorCode")]
    return again, next((told["ErrorCode"] for told in results if told.get("ErrorCode")), "")


def _requests(letters: list[Letter]) -> Iterator[list[Letter]]:
    """The letters in order, cut into what one request may hold."""
    batch: list[Letter] = []
    size = 0
    for letter in letters:
        weight = len(letter["Data"]) + len(letter["PartitionKey"].encode())
        if len(batch) == _MOST or size + weight > _MOST_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(letter)
        size += weight
    if batch:
        yield batch


def _letter(record: BadRecord) -> Letter:
    """The record as JSON; of one that is too large in base64, as much as fits."""
    value, key = record.value or b"", (record.key or b"").decode(errors="replace")
    plain: dict[str, object] = {**dict(record.origin), "reason": record.reason}
    plain |= {"data": "", "partition-key": key}
    room = _LARGEST - len(json.dumps(plain)) - len(key.encode()) - _SPARE
    if len(value) > room // 4 * 3:
        plain["bytes"] = len(value)
        value = value[: room // 4 * 3]
    plain["data"] = base64.b64encode(value).decode()
    return {"Data": json.dumps(plain).encode(), "PartitionKey": key or "-"}
