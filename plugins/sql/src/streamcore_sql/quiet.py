"""Starts Spark for a command: its words go to a log file, and Ctrl-C reaches only us."""

from __future__ import annotations

import functools
import os
import sys
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
    gateway.Popen = functools.partial(start, start_new_session=True)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        if log is None:
            yield
        else:
            with _redirected(log):
                yield
    finally:
        gateway.Popen = start


@contextmanager
def _redirected(log: Path) -> Iterator[None]:
    """Send what child processes print to a file; they keep it for life."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.dup2(file, 1)
        os.dup2(file, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for descriptor in (*kept, file):
            os.close(descriptor)
