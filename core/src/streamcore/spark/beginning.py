"""What every task does first, whichever connector it belongs to."""

from __future__ import annotations

import gc
import itertools
from functools import wraps
from typing import Any

from pyspark import TaskContext

from ..table import Table
from .words import speak_for

_tasks = itertools.count(1)


def beginning(part: Any, table: Table, name: str) -> None:
    """Have a method of a reader or writer begin so, in whatever process it is called."""
    method = getattr(type(part), name)  # a bound one would find this wrapper when it is unpickled

    @wraps(method)
    def call(*given: Any) -> Any:
        _spare_the_collector()
        speak_for(table)
        return method(part, *given)

    setattr(part, name, call)


def _spare_the_collector() -> None:
    """Spark has it search a worker after every task: among all that was imported, in vain.

    By a worker's second task all of that is there. To do it again would be to keep, one day,
    what nobody needs any more.
    """
    if TaskContext.get() is not None and next(_tasks) == 2:
        gc.freeze()
