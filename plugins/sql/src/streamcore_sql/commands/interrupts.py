"""Ctrl-C and SIGTERM: once to finish the batch at hand and stop, twice to stop at once."""

from __future__ import annotations

import signal
from typing import Any


class Interrupts:
    """Counts interruptions; until jobs run, one simply raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.count = 0
        self._jobs_run = False

    def install(self) -> None:
        """Take the signals over; Spark takes Ctrl-C for itself when it starts, so come after it."""
        signal.signal(signal.SIGINT, self._interrupted)
        signal.signal(signal.SIGTERM, self._interrupted)

    def jobs_run(self) -> None:
        """From now on only count: an exception in the middle of a call to Spark would break it."""
        self._jobs_run = True

    def twice(self) -> bool:
        """Whether the user has no patience left."""
        return self.count > 1

    def _interrupted(self, number: int, frame: Any) -> None:
        self.count += 1
        if not self._jobs_run:
            raise KeyboardInterrupt
