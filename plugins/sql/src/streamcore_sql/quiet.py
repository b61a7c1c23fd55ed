"""Starts Spark for a command: its words go to a log file, and Ctrl-C reaches only us."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def quiet_start(log: Path | None) -> Iterator[None]:
    """Start Spark inside this; with no log, its words stay on the terminal."""
    from pyspark import java_gateway

    gateway: Any = java_gateway
    start = gateway.Popen
    # In a session of its own Spark and its workers get no Ctrl-C: the batch at hand can finish.
    changes: dict[str, Any] = {"start_new_session": True}
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    file = None
    if log is not None:
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        logging.getLogger().addFilter(_is_not_of_py4j)
        log.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        changes |= {"stdout": file, "stderr": file}
    gateway.Popen = functools.partial(start, **changes)
    try:
        yield
    finally:
        gateway.Popen = start
        if file is not None:
            os.close(file)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Of a Ctrl-C it logs the stack, past its own logger; whoever pressed it knows."""
    return Path(record.pathname).parent.name != "py4j"
