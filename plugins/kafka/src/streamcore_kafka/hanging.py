"""Warns of transactions of others that stay open and keep rows behind them from being read."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from .progress import Partition, Positions

if TYPE_CHECKING:
    from .discovery import Cluster

log = logging.getLogger("streamcore.kafka")
PATIENCE = 20.0


class Hanging:
    """Compares, now and then, what may be read with what is there."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._due = 0.0
        self._held: dict[Partition, int] = {}
        self._told: dict[Partition, int] = {}

    def look(self, stable: Positions) -> None:
        """Warn once of each partition that ended where it ends now the last time, too."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + PATIENCE
        high = self._cluster.latest(stable)
        held = {each: end for each, end in stable.items() if high[each] > end}
        for each, end in held.items():
            if self._held.get(each) == end and self._told.get(each) != end:
                self._told[each] = end
                log.warning(
                    "%s: a transaction that is still open at offset %d keeps %d offsets from being "
                    "read; find it with 'kafka-transactions.sh find-hanging', and abort it if "
                    "nobody will end it",
                    each,
                    end,
                    high[each] - end,
                )
        self._held = held
