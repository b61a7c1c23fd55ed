"""Kafka source over more partitions, larger messages and longer topics: ours and Spark's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from .data import COLUMNS
from .measure import Plan, Run
from .setting import Setting

PARTITIONS = (1, 16, 64)
"""Beside the 4 of every other case."""
SIZES = {100: 1, 1_000: 2, 100_000: 150}
"""Bytes of a message, and by how much fewer of them are enough."""
LENGTHS = (1_000_000, 10_000_000, 50_000_000)


def cases(setting: Setting) -> Iterator[Plan]:
    """Rates against Spark's own, then the memory of our workers over ever longer topics."""
    rows = setting.fewer // 2
    for partitions in PARTITIONS:
        yield _plan(setting, "json", rows, partitions, f"{partitions} partitions")
    for size, fewer in SIZES.items():
        yield _plan(setting, f"json-{size}", rows // fewer, 4, f"messages of {size:,} B")
    for length in LENGTHS:
        yield Plan(
            f"length-{length}",
            f"Kafka json to rows, a topic of {length:,} messages: is memory flat?",
            partial(_length, setting, length),
            runs=1,
            warmups=0,
            note="One run: the figure is the memory of the largest worker, which hardly differs "
            "from run to run, and not the pace.",
        )


def _plan(setting: Setting, format_name: str, rows: int, partitions: int, text: str) -> Plan:
    name = f"scaling-{text.replace(',', '').replace(' ', '-')}"
    what = f"Kafka json to rows, {rows:,} messages, {text}"
    sides = partial(_sides, setting, format_name, rows, partitions)
    warming = partial(_sides, setting, "json", setting.sample // 4, 4)
    return Plan(name, what, sides, setting.runs, setting.warmups, warming=warming)


def _sides(
    setting: Setting, format_name: str, rows: int, partitions: int
) -> dict[str, Callable[[], Run]]:
    source = _source(setting, setting.topic(format_name, rows, partitions))
    return {
        "streamcore": partial(setting.ours.run, "read_ours", **source),
        "Spark's own": partial(setting.spark.run, "read_spark", **source),
    }


def _length(setting: Setting, rows: int) -> dict[str, Callable[[], Run]]:
    """The large topic of JSON, longer and longer from its own length on."""
    name = setting.topic("json", min(rows, setting.rows))
    source = _source(setting, setting.grown(name, "json", rows))
    return {"streamcore": partial(setting.ours.run, "read_ours", **source)}


def _source(setting: Setting, topic: str) -> dict[str, object]:
    place = {"servers": setting.servers, "topic": topic}
    return {**place, "format_name": "json", "columns": list(COLUMNS)}
