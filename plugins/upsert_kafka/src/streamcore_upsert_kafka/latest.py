"""Keeps the latest row of each key: the same rule for snapshots and for buffered writing."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

_PLACE = "_place"


def latest_rows(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The last row of every key, in the order in which those rows came."""
    places = pa.array(range(rows.num_rows), pa.int64())
    keyed = rows.select(list(keys)).append_column(_PLACE, places)
    last = keyed.group_by(list(keys)).aggregate([(_PLACE, "max")])
    return rows.take(last.column(f"{_PLACE}_max").combine_chunks().sort())


class LatestRows:
    """Collects rows, and holds no more than about twice as many as there are keys."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = list(keys)
        self._kept: pa.Table | None = None
        self._fresh: list[pa.RecordBatch] = []
        self._waiting = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows that are newer than all before."""
        self._fresh.append(batch)
        self._waiting += batch.num_rows
        if self._waiting > max(100_000, self._kept.num_rows if self._kept is not None else 0):
            self._compact()

    def count(self) -> int:
        """How many keys there are."""
        self._compact()
        return self._kept.num_rows if self._kept is not None else 0

    def take(self) -> pa.Table | None:
        """The latest row of every key, once; then it starts anew."""
        self._compact()
        taken, self._kept = self._kept, None
        return taken

    def _compact(self) -> None:
        if not self._fresh:
            return
        fresh = pa.Table.from_batches(self._fresh)
        whole = fresh if self._kept is None else pa.concat_tables([self._kept, fresh])
        self._kept = latest_rows(whole, self._keys).combine_chunks()
        self._fresh, self._waiting = [], 0
