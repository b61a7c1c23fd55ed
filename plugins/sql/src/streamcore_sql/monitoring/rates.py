"""How fast totals grow and a lag shrinks, over the last minute."""

from __future__ import annotations

from collections import deque

_WINDOW = 60.0
_SHORTEST = 1.0


class Rate:
    """The growth of one total."""

    def __init__(self, began: float | None = None) -> None:
        """`began` is when the total was 0, if that is known."""
        self._began = began
        self._samples: deque[tuple[float, float]] = deque()

    def add(self, at: float, total: float) -> None:
        if not self._samples and self._began is not None:
            self._samples.append((max(self._began, at - _WINDOW), 0.0))
        self._samples.append((at, total))
        while len(self._samples) > 2 and self._samples[1][0] <= at - _WINDOW:
            self._samples.popleft()

    def per_second(self) -> float | None:
        """None until a second has passed."""
        if len(self._samples) < 2:
            return None
        (start, before), (end, now) = self._samples[0], self._samples[-1]
        return (now - before) / (end - start) if end - start >= _SHORTEST else None


class CatchUp:
    """When a lag will be gone, by how it went over the last minute."""

    def __init__(self) -> None:
        self._rate = Rate()
        self._lag: float | None = None

    def add(self, at: float, lag: float) -> None:
        self._rate.add(at, lag)
        self._lag = lag

    @property
    def drain(self) -> float | None:
        """By how much the lag shrinks each second; negative if it grows."""
        growth = self._rate.per_second()
        return None if growth is None else -growth

    @property
    def seconds(self) -> float | None:
        """Infinite if the lag does not shrink; None if there is none or it is too early to say."""
        drain = self.drain
        if not self._lag or drain is None:
            return None
        return self._lag / drain if drain > 0 else float("inf")
