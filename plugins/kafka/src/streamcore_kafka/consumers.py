"""The consumers of tasks, kept open from one task to the next."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from streamcore import Secret

from . import client
from .idle import Idle

KEPT = 4
"""Idle consumers a process keeps; it works on one task at a time, so more means more queries."""

ALWAYS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
}
UNLESS_SET = {
    "fetch.wait.max.ms": 10,  # our ranges exist already: there is nothing to wait for
    "fetch.queue.backoff.ms": 10,  # the library pauses a second when its queue is full
}
_ALSO_CALLED = {"fetch.wait.max.ms": "fetch.max.wait.ms"}

_idle: Idle[Any] = Idle(KEPT, lambda consumer: consumer.close())
close_all = _idle.close


@contextlib.contextmanager
def borrowed(properties: Mapping[str, str | Secret]) -> Iterator[Any]:
    """A consumer for these properties, ours alone until the block ends."""
    key = frozenset(properties.items())
    consumer = _idle.take(key) or _opened(properties)
    try:
        yield consumer
    except GeneratorExit:  # the query needs no more rows, which is no fault of the consumer
        _keep(key, consumer)
        raise
    except BaseException:
        consumer.close()
        raise
    else:
        _keep(key, consumer)


def _opened(properties: Mapping[str, str | Secret]) -> Any:
    tuned = {
        name: value
        for name, value in UNLESS_SET.items()
        if name not in properties and _ALSO_CALLED.get(name) not in properties
    }
    return client.consumer(properties, **tuned, **ALWAYS)


def _keep(key: Hashable, consumer: Any) -> None:
    consumer.unassign()  # or it would go on fetching
    _idle.keep(key, consumer)
