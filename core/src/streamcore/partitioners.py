"""Partitioners every connector shares: the client's own choice, one per task, and taking turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .api import Partitioner, Target

if TYPE_CHECKING:
    import pyarrow as pa


class Default(Partitioner):
    """Leaves the choice to the client, which hashes the key as the system's Java client does."""

    identifier = "default"

    def assign(
        self, rows: pa.RecordBatch, keys: Sequence[bytes | None], target: Target
    ) -> Sequence[int | None] | None:
        return None


class Fixed(Partitioner):
    """Sends everything one task writes to one partition."""

    identifier = "fixed"

    def assign(
        self, rows: pa.RecordBatch, keys: Sequence[bytes | None], target: Target
    ) -> Sequence[int | None] | None:
        return [target.task % target.partitions] * rows.num_rows

    def assign_keys(self, rows: pa.RecordBatch, target: Target) -> Sequence[str] | None:
        return [str(target.task)] * rows.num_rows


class RoundRobin(Partitioner):
    """Deals the rows of each batch out evenly, each task starting at a partition of its own."""

    identifier = "round-robin"

    def assign(
        self, rows: pa.RecordBatch, keys: Sequence[bytes | None], target: Target
    ) -> Sequence[int | None] | None:
        count = target.partitions
        turns: list[int | None] = list(range(count)) * (rows.num_rows // count + 2)
        first = target.task % count
        return turns[first : first + rows.num_rows]
