"""What a query has told since it was last asked, at the cost of one short call if nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Plain = dict[str, Any]


class Progresses:
    """Reads a query's progress, each batch once."""

    def __init__(self, query: Any) -> None:
        self._query = query
        self._java: Any = getattr(query, "_jsq", None)
        self._last = ""
        self._done: int | None = None
        """The last batch that is done."""

    def fresh(self) -> list[Plain]:
        """What is new, oldest first; Spark keeps the last hundred pieces."""
        newest = self._newest()
        if newest is None:
            return []
        found = [newest] if self._follows(newest) else list(self._back_to_known())[::-1]
        if found:
            self._last = found[-1]["timestamp"]
            self._done = found[-1]["batchId"] - (0 if ran(found[-1]) else 1)
        return found

    def _newest(self) -> Plain | None:
        if self._java is None:
            last = self._query.lastProgress
            plain = None if last is None else json.loads(last.json)
            return None if plain is None or plain["timestamp"] == self._last else plain
        last = self._java.lastProgress()
        if last is None or last.timestamp() == self._last:
            return None
        return dict(json.loads(last.json()))

    def _follows(self, newest: Plain) -> bool:
        """Whether no batch lies between this piece and what is known; then it is all there is."""
        return self._done is not None and newest["batchId"] <= self._done + 1

    def _back_to_known(self) -> Iterator[Plain]:
        for text in self._texts():
            plain = json.loads(text)
            if plain["timestamp"] == self._last:
                return
            yield plain

    def _texts(self) -> Iterator[str]:
        """All that Spark keeps, the newest first, so that old ones need not be made text."""
        if self._java is None:  # Spark Connect: only all of them can be asked for
            yield from (each.json for each in reversed(self._query.recentProgress))
            return
        recent = self._java.recentProgress()
        for at in range(len(recent) - 1, -1, -1):
            yield recent[at].json()


def ran(progress: Plain) -> bool:
    """Whether this tells of a batch, and not that the one of this number has nothing to do yet."""
    return "addBatch" in progress["durationMs"]
