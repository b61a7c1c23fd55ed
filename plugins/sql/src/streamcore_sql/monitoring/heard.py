"""What tasks report, as figures of their tables."""

from __future__ import annotations

from streamcore import reports

from .about import About
from .metrics import TableMetrics

_SOURCE_COUNTS = {
    "records": "numRecordsIn",
    "bytes": "numBytesIn",
    "skipped": "numRecordsSkipped",
    "dead-lettered": "numRecordsDeadLettered",
    "ignored": "numRecordsIgnored",
    "lost": "numRecordsLost",
    "retries": "numRetries",
}
_SINK_COUNTS = {
    "rows": "numRecordsOut",
    "bytes": "numBytesOut",
    "retries": "numRetries",
    "transactions": "numTransactions",
    "repeated-transactions": "numRepeatedTransactions",
}
_MARKS = {
    "fetch-lag-ms": "currentFetchEventTimeLag",
    "emit-lag-ms": "currentEmitEventTimeLag",
    "send-ms": "currentSendTime",
}
Table = tuple[str, str]
"""A table and the side it is on, 'source' or 'sink'."""


def batch_tables(group: str, about: About) -> tuple[TableMetrics, ...]:
    """What the tasks of a batch job told; `group` is the job group they run in."""
    connectors = {(each.table, each.side): each.connector for each in about.tables}
    told = heard(group)
    return tuple(
        TableMetrics(*table, connectors.get(table, ""), told.get(table, {}))
        for table in {**connectors, **told}
    )


def heard(query: str) -> dict[Table, dict[str, float]]:
    """What the tasks of a query told so far, under the names of figures, by table and side."""
    collector = reports.listening()
    told = collector.heard(query) if collector and query else {}
    tables: dict[Table, dict[str, float]] = {}
    for table, said in told.items():
        names = _SOURCE_COUNTS if table[1] == "source" else _SINK_COUNTS
        tables[table] = {names[key]: count for key, count in said.counts.items() if key in names}
        tables[table] |= {_MARKS[key]: mark for key, mark in said.marks.items() if key in _MARKS}
    return tables
