"""Dead letters: rejected records go to another stream, with where they came from and why."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from functools import partial

from streamcore import ConnectionFailed
from streamcore.failures import BadRecord

from .options import StreamTable
from .retrying import Caller
from .settings import SourceSettings

_MOST = 500


def dead_letter_sender(
    connector: StreamTable, caller: Caller, settings: SourceSettings
) -> Callable[[Sequence[BadRecord]], None] | None:
    """A function that puts rejected records to the failure stream; None when there is none.

    Kinesis records have no headers, so a dead letter is a JSON object: the record's bytes in
    base64, its partition key, its position and the reason.
    """
    name = connector.failure_stream
    if name is None:
        return None
    target = {"StreamARN": name} if name.startswith("arn:") else {"StreamName": name}

    def send(bad: Sequence[BadRecord]) -> None:
        for first in range(0, len(bad), _MOST):
            letters = [_letter(record) for record in bad[first : first + _MOST]]
            while letters:
                answer = caller.call(
                    f"sending dead letters to stream '{name}'",
                    partial(caller.client.put_records, **target, Records=letters),
                )
                results = answer["Records"]
                refused = [r["ErrorCode"] for r in results if r.get("ErrorCode")]
                if len(refused) == len(letters) and refused[0] not in (
                    "ProvisionedThroughputExceededException",
                    "InternalFailure",
                ):
                    raise ConnectionFailed(f"stream '{name}' refused dead letters: {refused[0]}.")
                letters = [
                    letter
                    for letter, result in zip(letters, results, strict=True)
                    if result.get("ErrorCode")
                ]

    return send


def _letter(record: BadRecord) -> dict[str, object]:
    plain = {
        **dict(record.origin),
        "reason": record.reason,
        "data": base64.b64encode(record.value or b"").decode(),
        "partition-key": (record.key or b"").decode(errors="replace"),
    }
    return {"Data": json.dumps(plain).encode(), "PartitionKey": plain["partition-key"] or "-"}
