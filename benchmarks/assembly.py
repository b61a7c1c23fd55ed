"""Rows assembled from key, value and metadata columns, in rows per second of CPU.

python -m benchmarks.assembly
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
from streamcore import Column, Decoded, Format, Table
from streamcore.rows import Assembler, key_value
from streamcore.spark.types import arrow_output
from streamcore.table import ValueFields

from .measure import Plan, Run
from .setting import Setting

ROWS, BATCH, LEAST = 1_000_000, 10_000, 10_000_000
KINDS = ("BIGINT", "BIGINT", "STRING", "DOUBLE", "BOOLEAN", "TIMESTAMP(6)")


class Ready(Format):
    """Gives rows that were decoded before, so that only assembling them is measured."""

    identifier = "ready"

    def decoder(self, schema, columns=None, metadata=()):
        arrays = [pa.nulls(BATCH, schema.field(name).type) for name in columns or schema.names]
        batch = pa.RecordBatch.from_arrays(arrays, list(columns or schema.names))

        class Decoder:
            def decode(self, messages):
                return Decoded(batch)

        return Decoder()


def cases(setting: Setting) -> Iterator[Plan]:
    """Rows per second of CPU."""
    what = f"{ROWS:,} rows of 8 columns assembled from value and metadata, per second of CPU"
    yield Plan("assembly", what, lambda: {"streamcore": assembled}, runs=5)


def assembled() -> Run:
    columns = [Column(f"c{at}", kind) for at, kind in enumerate(KINDS)]
    columns.append(Column("at", "TIMESTAMP_LTZ(3)", metadata="timestamp", virtual=True))
    columns.append(Column("offset", "BIGINT", metadata="offset", virtual=True))
    table = Table(tuple(columns), "t")
    layout = key_value(table, (), "", ValueFields.ALL)
    assembler = Assembler(table, layout, None, Ready(), arrow_output(table.output))
    offsets = pa.array(range(BATCH), pa.int64())
    metadata = {"timestamp": offsets.cast(pa.timestamp("ms", "UTC")), "offset": offsets}
    nothing: list[bytes | None] = [None] * BATCH
    started = time.process_time()
    for _ in range(ROWS // BATCH):
        assembler.assemble(nothing, nothing, metadata)
    seconds = time.process_time() - started
    return Run(seconds, ROWS, seconds)


def main() -> int:
    """Print the rate and whether it is enough."""
    run = assembled()
    rate = run.rows / run.seconds
    print(f"assembly of 8 columns: {rate / 1e6:.0f} M rows per CPU second (at least 10)")
    return 0 if rate >= LEAST else 1


if __name__ == "__main__":
    raise SystemExit(main())
