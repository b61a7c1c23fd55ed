"""Sends what loggers say beside a table to the process that runs its query, with the query's ids.

Spark runs the readers, the writers and the tasks of Python sources in processes of their own,
whose words would end up bare in its own log.
"""

from __future__ import annotations

import logging

from .. import reports
from ..table import Table
from .task import Task

_LOGGER = "streamcore"
_LONGEST = 4000


class _Sender(logging.Handler):
    """One per process: a worker serves one task after another, maybe of other queries."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Table(())

    def emit(self, record: logging.LogRecord) -> None:
        table, task = self.table, Task.current()
        text = record.getMessage()[:_LONGEST]
        word = reports.Word(record.name, record.levelno, text, table.job, task.query, task.batch)
        if not reports.send(table.reports, word) and logging.lastResort is not None:
            logging.lastResort.handle(record)


_sender = _Sender()


def speak_for(table: Table) -> None:
    """From now on what our loggers say in this process is said about this table."""
    if table.reports and reports.listening() is None:  # who listens hears its own words anyway
        _sender.table = table
        logging.getLogger(_LOGGER).addHandler(_sender)
