"""Where a sink puts a row when its key is not to decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from streamcore import Partitioner, Target

if TYPE_CHECKING:
    import pyarrow as pa


class AllToZero(Partitioner):
    """Everything into the first partition, so that all changes keep their order."""

    identifier = "all-to-zero"

    def assign(
        self, rows: pa.RecordBatch, keys: Sequence[bytes | None], target: Target
    ) -> Sequence[int | None] | None:
        return [0] * rows.num_rows


class ByPlace(Partitioner):
    """Rows with equal `partition-keys` into one partition; rows without any by their key."""

    identifier = "by-place"

    def assign(
        self, rows: pa.RecordBatch, keys: Sequence[bytes | None], target: Target
    ) -> Sequence[int | None] | None:
        return [
            None if place is None else crc32(place.encode()) % target.partitions
            for place in rows.column("place").to_pylist()
        ]
