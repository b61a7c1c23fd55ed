"""Commits a group's offsets for lag tools: after each batch, at best effort, never in the way."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from .progress import Positions, Progress
from .validation import text

if TYPE_CHECKING:
    from concurrent.futures import Future

    from .connector import Kafka
    from .discovery import Cluster

log = logging.getLogger("streamcore.kafka")


class GroupOffsets:
    """Follows what Spark has committed; recovery never depends on it."""

    def __init__(self, kafka: Kafka, cluster: Cluster) -> None:
        wanted = text(kafka.properties.get("commit.offsets.on.checkpoint")).lower() != "false"
        self._enabled = wanted and kafka.group is not None
        self._group, self._cluster = kafka.group, cluster
        self._committed: Positions = {}
        self._pending: Future[Any] | None = None
        self.succeeded = 0
        self.failed = 0

    def commit(self, done: Progress) -> None:
        """Start committing, if anything moved; a later commit covers one that failed."""
        if not self._enabled or done.initial or done.positions == self._committed:
            return
        self.settle(0)
        try:
            self._pending = self._cluster.commit(done.positions)
        except Exception as error:  # whatever the client objects to, the query goes on
            self._failed(error)
        self._committed = done.positions

    def settle(self, seconds: float) -> None:
        """Give a commit on its way this long, and note how it went."""
        if self._pending is None:
            return
        try:
            self._pending.result(timeout=seconds)
            self.succeeded += 1
        except TimeoutError:
            return
        except Exception as error:
            self._failed(error)
        self._pending = None

    def report(self) -> dict[str, Any]:
        """How committing went so far, for the query's progress."""
        if not self._enabled:
            return {}
        self.settle(0)
        return {"commits": self.succeeded, "failed-commits": self.failed, "id": self._group}

    def _failed(self, error: Exception) -> None:
        self.failed += 1
        reason = error.args[0] if error.args else error
        log.warning("offsets of group '%s' were not committed: %s", self._group, reason)
