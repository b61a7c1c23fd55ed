"""From the messages of a task's ranges to rows of the table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from streamcore import Table
from streamcore.failures import BadRecord, FailureHandler, FailurePolicy
from streamcore.rows import Assembled, Assembler, key_value
from streamcore.spark.reporting import report
from streamcore.spark.types import arrow_output

from . import client
from .fetching import Fetcher, no_collector
from .metadata import metadata_arrays
from .progress import Range

if TYPE_CHECKING:
    import pyarrow as pa

    from .connector import Kafka


def read_rows(
    kafka: Kafka, table: Table, ranges: Sequence[Range], *, upsert: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some ranges; runs in a task."""
    layout = key_value(table, kafka.key_fields, kafka.key_prefix, kafka.value_fields)
    assembler = Assembler(
        table,
        layout,
        kafka.key_format,
        kafka.format,
        arrow_output(table.output),
        upsert=upsert,
    )
    fetcher, policy = Fetcher(kafka, ranges), _policy(kafka)
    needs_keys = kafka.key_format is not None
    records = rows = ignored = 0
    marks: dict[str, float] = {}
    chunks = fetcher.chunks()
    while True:
        with no_collector():  # until the messages are gone: among them it would search in vain
            chunk = next(chunks, None)
            if chunk is None:
                break
            fetched, (known, event_time) = time.time(), chunk[-1].timestamp()
            keys = list(map(client.Message.key, chunk)) if needs_keys else [None] * len(chunk)
            values = list(map(client.Message.value, chunk))
            metadata = metadata_arrays(assembler.metadata_keys, chunk)
            found = assembler.assemble(keys, values, metadata)
            policy.apply(_bad_records(found, chunk))
            records, rows = records + len(chunk), rows + found.batch.num_rows
            ignored += found.ignored
            if known != client.TIMESTAMP_NOT_AVAILABLE:
                marks["fetch-lag-ms"] = round(fetched * 1000) - event_time
                marks["emit-lag-ms"] = round(time.time() * 1000) - event_time
            del chunk, keys, values, metadata  # not kept while Spark takes the rows
        yield found.batch
    counts = {
        "records": records,
        "bytes": fetcher.bytes,
        "rows": rows,
        "ignored": ignored,
        "skipped": policy.skipped,
        "dead-lettered": policy.dead_lettered,
        "lost": fetcher.lost,
    }
    report(table, "source", counts, marks, policy.notes)


def _policy(kafka: Kafka) -> FailurePolicy:
    send_away = None
    if kafka.failure_handler is FailureHandler.DEAD_LETTER:
        from .deadletters import dead_letter_sender

        send_away = dead_letter_sender(kafka)
    return FailurePolicy(kafka.failure_handler, send_away)


def _bad_records(found: Assembled, chunk: Sequence[Any]) -> list[BadRecord]:
    bad = []
    for index, reason in found.rejected:
        message = chunk[index]
        topic, number, offset = message.topic(), message.partition(), message.offset()
        place = (("topic", topic), ("partition", str(number)), ("offset", str(offset)))
        position = f"topic '{topic}' partition {number} offset {offset}"
        headers = tuple(message.headers() or ())
        bad.append(BadRecord(position, reason, message.key(), message.value(), place, headers))
    return bad
