"""Normalisation whose state forgets: keys that no longer change are dropped after a while.

Only `transformWithState` can expire state by time, and it hands every key to Python, so this is
far slower than the aggregate in `normalizing`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StringType, StructType
from streamcore import ROW_KIND, RecordError, Table

from .normalizing import TWICE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Normalizer(StatefulProcessor):
    """Keeps the latest row of each key and tells what a change means."""

    def __init__(self, names: list[str], schema: StructType, ttl: timedelta) -> None:
        self._names, self._schema, self._ttl = names, schema, ttl

    def init(self, handle: StatefulProcessorHandle) -> None:
        millis = int(self._ttl.total_seconds() * 1000)
        self._state = handle.getValueState("latest", self._schema, ttlDurationMs=millis)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timers: Any) -> Iterator[Row]:
        before = self._state.get() if self._state.exists() else None
        found = list(rows)
        if len(found) > 1:
            raise RecordError(TWICE % json.dumps(key, default=str))
        for row in found:
            if row[ROW_KIND] == "-D":
                if before is not None:
                    yield self._told(before, "-D")
                before = None
                continue
            now = tuple(row[name] for name in self._names)
            if before is None:
                yield self._told(now, "+I")
            elif tuple(before) != now:
                yield self._told(before, "-U")
                yield self._told(now, "+U")
            before = now
        if before is None:
            self._state.clear()
        else:
            self._state.update(tuple(before))

    def _told(self, values: Any, kind: str) -> Row:
        return Row(*self._names, ROW_KIND)(*values, kind)

    def close(self) -> None:
        """Nothing to close."""


def normalized_with_ttl(frame: DataFrame, table: Table, ttl: timedelta) -> DataFrame:
    """The changelog of a stream, from state that forgets a key `ttl` after its last change."""
    names = [name for name in frame.columns if name not in (ROW_KIND, "_batch")]
    schema = StructType([frame.schema[name] for name in names])
    output = StructType([*schema.fields]).add(ROW_KIND, StringType())
    keys = [name for name in table.primary_key if name in names]
    return frame.groupBy(*keys).transformWithState(
        statefulProcessor=Normalizer(names, schema, ttl),
        outputStructType=output,
        outputMode="Update",
        timeMode="ProcessingTime",
    )
