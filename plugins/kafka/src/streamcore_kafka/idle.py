"""Clients kept open between tasks, a few at most: opening one costs more than a small batch."""

from __future__ import annotations

import atexit
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

C = TypeVar("C")


class Idle(Generic[C]):
    """Clients that nobody uses right now; the longest unused ones are closed first."""

    def __init__(self, most: int, close: Callable[[C], None]) -> None:
        self._most, self._close_one = most, close
        self._waiting: OrderedDict[Hashable, list[C]] = OrderedDict()
        self._inherited: list[list[C]] = []
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._disown)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def take(self, key: Hashable) -> C | None:
        """One that was kept under this key, the caller's alone from now on."""
        found = self._waiting.pop(key, [])
        client = found.pop() if found else None
        if found:
            self._waiting[key] = found
        return client

    def keep(self, key: Hashable, client: C) -> None:
        """Keep a client for the next who asks for this key."""
        self._waiting.setdefault(key, []).append(client)
        self._waiting.move_to_end(key)
        while len(self) > self._most:
            oldest, found = next(iter(self._waiting.items()))
            spare = found.pop(0)
            if not found:
                del self._waiting[oldest]
            self._close_one(spare)

    def close(self) -> None:
        """Close what is idle in this process."""
        while self._waiting:
            _, found = self._waiting.popitem()
            for client in found:
                self._close_one(client)

    def _disown(self) -> None:
        """A client's threads do not survive a fork: never use it there, and never let it go."""
        self._inherited.extend(self._waiting.values())
        self._waiting.clear()
