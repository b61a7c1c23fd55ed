"""Where a sink puts a row when its key is not to decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar
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
    """Rows with equal `partition-keys` into one partition; rows of other tables by their key."""

    identifier = "by-place"
    elsewhere: ClassVar[int | None] = None
    """Where rows of tables without `partition-keys` go; None: where their key says."""

    def assign(
        self, rows: pa.RecordBatch, keys: Sequence[bytes | None], target: Target
    ) -> Sequence[int | None] | None:
        return [
            self.elsewhere if place is None else crc32(place.encode()) % target.partitions
            for place in rows.column("place").to_pylist()
        ]


class ByPlaceOrZero(ByPlace):
    """Rows with equal `partition-keys` into one partition; those of other tables into the first."""

    identifier = "by-place-or-zero"
    elsewhere = 0
