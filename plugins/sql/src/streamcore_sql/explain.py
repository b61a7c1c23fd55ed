"""EXPLAIN: what would be read, in which mode, into what, and how Spark would do it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamcore.values import masked, show_duration

from .monitoring.scrubbing import SECRETS
from .planner.inserts import InsertPlan
from .planner.modes import APPEND, BATCH
from .planner.queries import QueryPlan
from .planner.sources import Scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MODES = {
    BATCH: "batch: ends when everything is read",
    APPEND: "append: each row is told once",
}
_UPDATE = "update: a row is told again whenever it changes"


def query_text(plan: QueryPlan, *, details: bool = True) -> str:
    """A query, told."""
    return "\n".join(["SELECT", *_indented(_query(plan)), *_physical(plan.frame, details)])


def insert_text(plan: InsertPlan, *, details: bool = True, options: bool = False) -> str:
    """An INSERT, told; `options` adds those of every table, secrets masked."""
    lines = [f"INSERT INTO {plan.insert.table}", *_indented(_query(plan.query, options))]
    columns = ", ".join(f"{c.name} {c.type}" for c in plan.sink.table.writable)
    lines.append(f"  writes {plan.sink.name} ({plan.sink.connector.identifier}): {columns}")
    if options:
        lines += _options(plan.sink.options)
    return "\n".join([*lines, *_physical(plan.frame, details)])


def _query(plan: QueryPlan, options: bool = False) -> Iterator[str]:
    yield f"mode {_MODES.get(plan.mode, _UPDATE)}"
    for read in plan.scans:
        yield f"reads {_scan(read)}"
        if options:
            yield from (line.removeprefix("  ") for line in _options(read.bound.options))
    yield f"spark {' '.join(plan.rewritten.sql.split())}"
    for stage in plan.rewritten.stages:
        yield f"stage {stage.view}: {' '.join(stage.sql.split())}"


def _scan(read: Scan) -> str:
    bound = read.bound
    kind = "stream" if read.streaming else "bounded" if bound.connector.bounded() else "as it is"
    names = ", ".join(read.projection) or "no column"
    total = len(bound.table.columns)
    part = f"{names}" if len(read.projection) >= total else f"{names} (of {total} columns)"
    text = f"{bound.name} ({bound.connector.identifier}, {kind}): {part}"
    if read.streaming and bound.connector.stream_updates():
        text += f"; keeps the latest row of each {', '.join(bound.table.primary_key)}"
    if read.delay is not None and bound.statement.watermark:
        from datetime import timedelta

        delay = show_duration(timedelta(milliseconds=read.delay))
        text += f"; watermark {bound.statement.watermark.column.last} less {delay}"
    return text


def _options(options: dict[str, str]) -> list[str]:
    return [
        f"    '{key}' = '{SECRETS.scrub(masked(key, value))}'"
        for key, value in sorted(options.items())
    ]


def _indented(lines: Iterator[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _physical(frame: DataFrame, details: bool) -> list[str]:
    if not details:
        return []
    from pyspark.errors import PySparkException

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            frame.explain()
        except PySparkException:  # Spark plans some stateful queries only when they start
            return []
    return ["", printed.getvalue().strip()]
