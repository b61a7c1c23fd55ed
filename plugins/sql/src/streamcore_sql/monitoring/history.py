"""The last hour of a job in bounded memory, for charts."""

from __future__ import annotations

from collections import deque
from typing import Any

EVERY = 5.0
POINTS = 720
NAMES = ("time", "in", "out", "lag_rows", "lag_seconds", "batch_ms")

Point = tuple[float, float | None, float | None, float | None, float | None, float | None]


class History:
    """A point every few seconds; the oldest make way."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=POINTS)

    def add(self, point: Point) -> None:
        if not self._points or point[0] - self._points[-1][0] >= EVERY:
            self._points.append(point)

    def to_json(self, since: float = 0.0) -> dict[str, Any]:
        points = [point for point in self._points if point[0] > since]
        return {"names": NAMES, "points": points}
