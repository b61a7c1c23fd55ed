"""Positions in a shard and offsets of a stream: plain dicts that Spark keeps, and what they mean.

A position is the first thing not yet read: a record (`{"seq": number, "at": arrival millis}`), a
moment (`{"ts": millis}`), the oldest record there is (`{"trim": 1}`), or nothing (`{"end": 1}`).
An offset has a position for every shard on the frontier of the stream's family tree: shards above
it are finished, shards below it wait until their parents are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Position = dict[str, Any]
Offset = dict[str, Any]

TRIM: Position = {"trim": 1}
END: Position = {"end": 1}


def at_record(sequence: str, arrival: int) -> Position:
    """Stand at a record that arrived at this millisecond."""
    return {"seq": sequence, "at": arrival}


def at_time(millis: int) -> Position:
    """Stand at a moment: whatever arrived before it has been read."""
    return {"ts": millis}


def known_time(position: Position) -> int | None:
    """The arrival time this position stands at, as far as it says so."""
    return position.get("at", position.get("ts"))


@dataclass(frozen=True)
class Shard:
    """A shard as the service lists it."""

    name: str
    parents: tuple[str, ...]
    first_hash: int
    last_hash: int
    closed: bool

    @classmethod
    def listed(cls, found: Mapping[str, Any]) -> Shard:
        parents = (found.get("ParentShardId"), found.get("AdjacentParentShardId"))
        hashes = found["HashKeyRange"]
        return cls(
            found["ShardId"],
            tuple(parent for parent in parents if parent),
            int(hashes["StartingHashKey"]),
            int(hashes["EndingHashKey"]),
            "EndingSequenceNumber" in found["SequenceNumberRange"],
        )


def roots(shards: Iterable[Shard]) -> list[Shard]:
    """The shards none of whose parents are among them: where reading starts."""
    listed = list(shards)
    names = {shard.name for shard in listed}
    return [shard for shard in listed if not names.intersection(shard.parents)]


def next_frontier(frontier: Mapping[str, Position], shards: Iterable[Shard]) -> dict[str, Position]:
    """The frontier after finished shards have made way for children whose parents are all done.

    A finished shard stays until every child of it has started, so that the frontier always cuts
    the family tree: whatever is listed but not on it is above or below it.
    """
    by_name = {shard.name: shard for shard in shards}
    above = _ancestors(frontier, by_name)
    ended = {name for name, position in frontier.items() if position == END}
    present = {*by_name, *frontier}
    children: dict[str, list[str]] = {}
    for shard in by_name.values():
        for parent in shard.parents:
            children.setdefault(parent, []).append(shard.name)

    def done(parent: str) -> bool:
        return parent in ended or parent in above or parent not in present

    starting = [
        shard
        for shard in by_name.values()
        if shard.name not in frontier
        and shard.name not in above
        and all(done(parent) for parent in shard.parents)
    ]
    started = {shard.name for shard in starting} | set(frontier)
    result = {shard.name: dict(TRIM) for shard in starting}
    for name, position in frontier.items():
        heirs = children.get(name, [])
        made_way = all(heir in started for heir in heirs) and (heirs or name not in by_name)
        if not (position == END and made_way):
            result[name] = position
    return dict(sorted(result.items()))


def _ancestors(frontier: Iterable[str], by_name: Mapping[str, Shard]) -> set[str]:
    above: set[str] = set()
    waiting = [parent for name in frontier if name in by_name for parent in by_name[name].parents]
    while waiting:
        name = waiting.pop()
        if name not in above:
            above.add(name)
            waiting += by_name[name].parents if name in by_name else ()
    return above


@dataclass(frozen=True)
class Slice:
    """The part of one shard that one batch reads: from a position up to, not including, another."""

    shard: str
    start: Position
    stop: Position
    first_hash: int
    last_hash: int

    def holds(self, sequence: str, arrival: int) -> bool:
        """Whether a record met while reading on from the start still belongs to this slice."""
        if "seq" in self.stop:
            return int(sequence) < int(self.stop["seq"])
        if "ts" in self.stop:
            return arrival < int(self.stop["ts"])
        return "end" in self.stop


def plan(slices: list[Slice], tasks: int) -> list[list[Slice]]:
    """Deal slices out to tasks: a pure function of its arguments, so that a replay is equal."""
    groups: list[list[Slice]] = [[] for _ in range(max(1, min(tasks, len(slices))))]
    for at, each in enumerate(sorted(slices, key=lambda s: s.shard)):
        groups[at % len(groups)].append(each)
    return [group for group in groups if group]
