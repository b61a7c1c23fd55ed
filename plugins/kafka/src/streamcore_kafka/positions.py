"""Turns the start and end modes of a table into one number per partition, once."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from streamcore import DataLossError, StreamcoreError

from .discovery import reads_committed
from .offsets import COMMITTED, EARLIEST, LATEST, Bounded, Startup, parse_specific
from .progress import Partition, Positions
from .validation import text

if TYPE_CHECKING:
    from .connector import Kafka
    from .discovery import Cluster

log = logging.getLogger("streamcore.kafka")


def stops(kafka: Kafka, cluster: Cluster, partitions: Sequence[Partition]) -> Positions:
    """Where each partition ends; nothing for a table without an end."""
    mode = kafka.bounded_mode
    if mode is Bounded.UNBOUNDED:
        return {}
    if mode is Bounded.TIMESTAMP:
        return _at_time(cluster, partitions, kafka.bounded_millis or 0)
    if mode is Bounded.GROUP:
        found = cluster.committed(partitions)
        for partition in partitions:
            if partition not in found:
                raise _no_commit(kafka, partition, "end")
        return found
    latest = cluster.latest(partitions, stable=reads_committed(kafka.properties))
    if mode is Bounded.LATEST:
        return latest
    return _specific(kafka, cluster, partitions, kafka.bounded_offsets or "", latest)


def starts(
    kafka: Kafka, cluster: Cluster, partitions: Sequence[Partition], until: Positions
) -> Positions:
    """Where a new query starts in each partition; always a place that exists."""
    mode = kafka.startup
    if mode is Startup.EARLIEST:
        return cluster.earliest(partitions)
    latest = cluster.latest(partitions)
    if mode is Startup.LATEST:
        return latest
    if mode is Startup.TIMESTAMP:
        return _at_time(cluster, partitions, kafka.startup_millis or 0, latest)
    earliest = cluster.earliest(partitions)
    if mode is Startup.GROUP:
        return _from_group(kafka, cluster, partitions, earliest, latest)
    wanted = _specific(kafka, cluster, partitions, kafka.startup_offsets or "", latest, earliest)
    return {
        partition: _existing(kafka, partition, offset, earliest, latest, until)
        for partition, offset in wanted.items()
    }


def _at_time(
    cluster: Cluster, partitions: Sequence[Partition], millis: int, latest: Positions | None = None
) -> Positions:
    # The end comes first: a record that arrives in between is then read rather than skipped.
    ends = cluster.latest(partitions) if latest is None else latest
    return {**ends, **cluster.at_time(partitions, millis)}


def _from_group(
    kafka: Kafka,
    cluster: Cluster,
    partitions: Sequence[Partition],
    earliest: Positions,
    latest: Positions,
) -> Positions:
    reset = text(kafka.properties.get("auto.offset.reset")).lower() or "none"
    committed = cluster.committed(partitions)
    found = {}
    for partition in partitions:
        offset = committed.get(partition)
        if offset is not None and earliest[partition] <= offset <= latest[partition]:
            found[partition] = offset
        elif reset != "none":
            found[partition] = (earliest if reset == "earliest" else latest)[partition]
        elif offset is None:
            raise _no_commit(kafka, partition, "start")
        else:
            raise DataLossError(
                f"{partition}: group '{kafka.group}' stands at offset {offset}, but the log has "
                f"{earliest[partition]} to {latest[partition]}; set 'properties.auto.offset.reset' "
                "to 'earliest' or 'latest' to start there instead."
            )
    return found


def _specific(
    kafka: Kafka,
    cluster: Cluster,
    partitions: Sequence[Partition],
    given: str,
    latest: Positions,
    earliest: Positions | None = None,
) -> Positions:
    """The listed offsets; an unlisted partition takes its group's offset, else its first one."""
    listed = parse_specific(given)
    _tell_unknown(kafka, partitions, listed, "startup" if earliest is not None else "bounded")
    committed = cluster.committed(partitions)
    lowest = cluster.earliest(partitions) if earliest is None else earliest
    found = {}
    for partition in partitions:
        offset = listed.get(partition.number)
        if offset is None:
            found[partition] = committed.get(partition, lowest[partition])
        elif offset == COMMITTED:
            if partition not in committed:
                raise _no_commit(kafka, partition, "start" if earliest is not None else "end")
            found[partition] = committed[partition]
        else:
            named = {LATEST: latest[partition], EARLIEST: lowest[partition]}
            found[partition] = named.get(offset, offset)
    return found


def _tell_unknown(
    kafka: Kafka, partitions: Sequence[Partition], listed: Mapping[int, int], which: str
) -> None:
    """Warn of listed partitions that no topic has, unless a part of them is all we look at."""
    unknown = sorted(listed.keys() - {partition.number for partition in partitions})
    if unknown and not kafka.only_partitions:
        numbers = ", ".join(map(str, unknown))
        log.warning(
            "'scan.%s.specific-offsets' lists what no topic has: partition %s", which, numbers
        )


def _existing(
    kafka: Kafka,
    partition: Partition,
    offset: int,
    earliest: Positions,
    latest: Positions,
    until: Positions,
) -> int:
    first, end = earliest[partition], latest[partition]
    if offset < first:
        log.warning("%s: offset %d is gone, reading starts at %d", partition, offset, first)
        return first
    if offset > end and offset < until.get(partition, offset + 1):
        if kafka.fail_on_data_loss:
            raise DataLossError(
                f"{partition}: 'scan.startup.specific-offsets' starts at {offset}, but the log "
                f"ends at {end}. Set 'scan.fail-on-data-loss' to 'false' to start at {first}."
            )
        log.warning("%s: offset %d is past the end, reading starts at %d", partition, offset, first)
        return first
    return offset


def _no_commit(kafka: Kafka, partition: Partition, which: str) -> StreamcoreError:
    advice = (
        "set 'properties.auto.offset.reset' to 'earliest' or 'latest', or choose another "
        "'scan.startup.mode'"
        if which == "start"
        else "commit one, or choose another 'scan.bounded.mode'"
    )
    return StreamcoreError(
        f"{partition}: group '{kafka.group}' has committed no offset to {which} at; {advice}."
    )
