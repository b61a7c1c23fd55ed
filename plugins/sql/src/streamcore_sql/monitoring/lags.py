"""How far a source is behind, place by place: in rows where it counts, in time where it knows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Lag:
    """One partition of a topic, or one shard of a stream."""

    topic: str
    place: str
    """The number of the partition, or the name of the shard."""
    rows: int | None = None
    seconds: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


def named(tables: Mapping[str, Sequence[Lag]]) -> Iterator[tuple[str, Lag]]:
    """Every lag by its topic, or by its shard: beside the table, where several have shards."""
    several = sum(any(not lag.topic for lag in found) for found in tables.values()) > 1
    for table, found in tables.items():
        for lag in found:
            shard = f"{table} {lag.place}" if several else lag.place
            yield lag.topic or shard, lag


def lags(source: Mapping[str, Any]) -> list[Lag]:
    """The lags of one source of a query, from what Spark's progress tells of it."""
    end, latest = offset(source.get("endOffset")), offset(source.get("latestOffset"))
    if "offsets" in latest and "offsets" in end:
        return list(_counted(latest["offsets"], end["offsets"]))
    if "at" in latest and "shards" in end:
        return list(_timed(latest["at"], end["shards"]))
    if "at" in latest and "at" in end:
        return [Lag("", "", seconds=max(latest["at"] - end["at"], 0) / 1000)]
    return []


def offset(value: Any) -> dict[str, Any]:
    """An offset as Spark shows it: a text or already read."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _counted(latest: Mapping[str, Any], end: Mapping[str, Any]) -> Iterator[Lag]:
    done = {(topic, place): at for topic, place, at in _leaves(end)}
    for topic, place, top in _leaves(latest):
        yield Lag(topic, place, max(top - done.get((topic, place), 0), 0))


def _leaves(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str, int]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}/{key}" if path else key)
        elif isinstance(value, int):
            yield path, key, value


def _timed(now: int, shards: Mapping[str, Any]) -> Iterator[Lag]:
    for name, position in shards.items():
        moment = position.get("at", position.get("ts"))
        if moment is not None:
            yield Lag("", name, seconds=max(now - moment, 0) / 1000)
