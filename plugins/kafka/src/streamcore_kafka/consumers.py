"""Kafka consumers kept open between tasks: opening one costs more than reading a small batch."""

from __future__ import annotations

import atexit
import contextlib
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from streamcore import Secret

from . import client

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

Key = tuple[tuple[str, str | Secret], ...]
_idle: OrderedDict[Key, list[Any]] = OrderedDict()
_inherited: list[Any] = []


@contextlib.contextmanager
def borrowed(properties: Mapping[str, str | Secret]) -> Iterator[Any]:
    """A consumer for these properties, ours alone until the block ends."""
    key = tuple(sorted(properties.items(), key=lambda item: item[0]))
    waiting = _idle.pop(key, [])
    consumer = waiting.pop() if waiting else _opened(properties)
    if waiting:
        _idle[key] = waiting
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


def _keep(key: Key, consumer: Any) -> None:
    consumer.unassign()  # or it would go on fetching
    _idle.setdefault(key, []).append(consumer)
    _idle.move_to_end(key)
    while sum(map(len, _idle.values())) > KEPT:
        oldest, waiting = next(iter(_idle.items()))
        spare = waiting.pop(0)
        if not waiting:
            del _idle[oldest]
        spare.close()


@atexit.register
def close_all() -> None:
    """Close what is idle in this process."""
    while _idle:
        _, waiting = _idle.popitem()
        for consumer in waiting:
            consumer.close()


def _disown() -> None:
    """A consumer's threads do not survive a fork: never use it there, and never let it go."""
    _inherited.extend(_idle.values())
    _idle.clear()


os.register_at_fork(after_in_child=_disown)
