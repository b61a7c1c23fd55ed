"""Partition keys for systems that hash a text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamcore import Partitioner, Target

if TYPE_CHECKING:
    import pyarrow as pa


class Random(Partitioner):
    """A random key for every row, which spreads rows evenly over shards."""

    identifier = "random"

    def assign_keys(self, rows: pa.RecordBatch, target: Target) -> Sequence[str] | None:
        return random_keys(rows.num_rows)

    def assign(
        self, rows: pa.RecordBatch, keys: Sequence[bytes | None], target: Target
    ) -> Sequence[int | None] | None:
        import random

        return [random.randrange(target.partitions) for _ in range(rows.num_rows)]


def random_keys(count: int) -> list[str]:
    """So many keys of 128 random bits, drawn at once."""
    digits = os.urandom(16 * count).hex()
    return [digits[start : start + 32] for start in range(0, len(digits), 32)]
