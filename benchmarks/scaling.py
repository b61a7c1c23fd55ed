"""Kafka source over more partitions, larger messages and longer topics: ours and Spark's own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from .data import COLUMNS
from .measure import Case, alternate
from .setting import Setting

PARTITIONS = (1, 4, 16, 64)
SIZES = {100: 4, 1_000: 12, 100_000: 400}
"""Bytes of a message, and by how much fewer of them are enough."""
LENGTHS = (1_000_000, 10_000_000, 50_000_000)


def cases(setting: Setting) -> Iterator[Case]:
    """Rates against Spark's own, then the memory of our workers over ever longer topics."""
    for partitions in PARTITIONS:
        yield _case(setting, "json", setting.fewer, partitions, f"{partitions} partitions")
    for size, fewer in SIZES.items():
        rows = setting.rows // fewer
        yield _case(setting, f"json-{size}", rows, 4, f"messages of {size:,} B")
    if not setting.quick:
        for rows in LENGTHS:
            yield _length(setting, rows)


def _case(setting: Setting, format_name: str, rows: int, partitions: int, text: str) -> Case:
    source = _source(setting, format_name, rows, partitions)
    sides = {
        "streamcore": partial(setting.ours.run, "read_ours", **source),
        "Spark's own": partial(setting.spark.run, "read_spark", **source),
    }
    name = f"scaling-{text.replace(',', '').replace(' ', '-')}"
    what = f"Kafka json to rows, {rows:,} messages, {text}"
    return alternate(name, what, sides, runs=min(3, setting.runs), warmups=setting.warmups)


def _length(setting: Setting, rows: int) -> Case:
    source = _source(setting, "json", rows, 4)
    sides = {"streamcore": partial(setting.ours.run, "read_ours", **source)}
    what = f"Kafka json to rows, a topic of {rows:,} messages: is memory flat?"
    return alternate(f"length-{rows}", what, sides, runs=1, warmups=0)


def _source(setting: Setting, format_name: str, rows: int, partitions: int) -> dict[str, object]:
    return {
        "servers": setting.servers,
        "topic": setting.topic(format_name, rows, partitions),
        "format_name": "json",
        "columns": list(COLUMNS),
    }
