"""What a query has told since it was last asked, at the cost of one short call if nothing."""

from __future__ import annotations

import json
from typing import Any

Plain = dict[str, Any]


class Progresses:
    """Reads a query's progress, each piece once."""

    def __init__(self, query: Any) -> None:
        self._query = query
        self._java: Any = getattr(query, "_jsq", None)
        self._last = ("", -1)

    def fresh(self) -> list[Plain]:
        """What is new, oldest first."""
        found: list[Plain] = []
        for text in self._texts():
            plain = json.loads(text)
            stamp = (plain["timestamp"], plain["batchId"])
            if stamp == self._last:
                break
            if not found or found[-1] != plain:
                found.append(plain)
        if found:
            self._last = (found[0]["timestamp"], found[0]["batchId"])
        return found[::-1]

    def _texts(self) -> Any:
        """The newest first, so that old ones need not be fetched."""
        if self._java is None:  # Spark Connect: only all of them or the last one can be asked for
            if (last := getattr(self._query, "lastProgress", None)) is not None:
                yield last.json
            yield from (each.json for each in reversed(self._query.recentProgress))
            return
        last = self._java.lastProgress()
        if last is None or last.timestamp() == self._last[0]:
            return
        recent = self._java.recentProgress()
        for at in range(len(recent) - 1, -1, -1):
            yield recent[at].json()
