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
    "group.id": "streamcore",  # demanded by the library, joined by nobody
    "isolation.level": "read_uncommitted",  # as the Java client has it
}
_ALSO_CALLED = {"fetch.wait.max.ms": "fetch.max.wait.ms"}

Key = tuple[int, tuple[tuple[str, str | Secret], ...]]
_idle: OrderedDict[Key, list[Any]] = OrderedDict()


@contextlib.contextmanager
def borrowed(properties: Mapping[str, str | Secret]) -> Iterator[Any]:
    """A consumer for these properties, ours alone until the block ends."""
    key = (os.getpid(), tuple(sorted(properties.items(), key=lambda item: item[0])))
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
        if oldest[0] == os.getpid():  # a forked process must not touch its parent's
            spare.close()


@atexit.register
def close_all() -> None:
    """Close what is idle in this process."""
    for (pid, _), waiting in list(_idle.items()):
        if pid == os.getpid():
            for consumer in waiting:
                consumer.close()
    _idle.clear()
