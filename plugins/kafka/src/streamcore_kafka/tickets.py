"""May a task write? Decided by what the markers say, before its first row.

The driver issues a ticket for every write, which remembers what was there before it; each task
shows the ticket once more when it has the transactional id to itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from streamcore import OptionError, Problem, StreamcoreError
from streamcore.spark.task import Task

from .client import (
    ConfigResource,
    KafkaException,
    ResourceType,
    admin,
    patiently,
    topic_names,
)
from .connector import MissingMarker
from .keystores import Settings, text
from .markers import Marker, Markers
from .topics import java_pattern, matches

if TYPE_CHECKING:
    from .connector import Kafka

TIMEOUT = 900_000
"""The default of 'transaction.timeout.ms': what brokers allow unless they are told otherwise."""


class TransactionRefused(StreamcoreError):  # noqa: N818 - says what happened, as its siblings do
    """Writing now could repeat or lose rows, so nothing is written."""


@dataclass(frozen=True)
class Ticket:
    """What the driver hands to every task of one write: its name, and what was there before it."""

    prefix: str
    place: str
    """The topic that markers are kept with, because offsets need one."""
    timeout: int
    before: Marker | None
    write: str
    tasks: int
    trust: bool
    """Whether a missing marker means that nothing was written."""

    @classmethod
    def issue(cls, kafka: Kafka) -> Ticket:
        """Called on the driver, for each batch anew."""
        prefix, properties = kafka.transactional_prefix or "", kafka.properties
        timeout = transaction_timeout(properties)
        topics = _topics(kafka)
        place, before = Markers.find(properties, prefix, topics)
        tasks, trust = kafka.sink_parallelism or 0, kafka.missing_marker is MissingMarker.WRITE
        return cls(prefix, place or min(topics), timeout, before, uuid.uuid4().hex, tasks, trust)

    def marker(self, task: Task) -> Marker:
        """The marker of this write, before it has any rows."""
        run = task.run if task.query else self.write
        return Marker(task.query, run, self.write, task.batch or 0, self.tasks)


def _topics(kafka: Kafka) -> Sequence[str]:
    if kafka.topic:
        return kafka.topic
    pattern = java_pattern(kafka.topic_pattern or "")
    names = [name for name in topic_names(kafka.properties) if matches(pattern, name)]
    if not names:
        trouble = "no topic matches yet, and exactly-once keeps its markers with one; create it"
        raise OptionError("connector 'kafka'", [Problem("topic-pattern", trouble)])
    return names


# --- may this batch be written? -------------------------------------------------------------


def is_repeated(ours: Marker, before: Marker | None) -> bool:
    """Whether an earlier run has written this batch already, in part or as a whole."""
    return (
        before is not None
        and bool(ours.query)
        and (before.query, before.batch) == (ours.query, ours.batch)
        and not before.same_run(ours)
    )


def brought_up(ours: Marker, ticket: Ticket, now: Marker | None) -> Ticket:
    """The ticket as it would be issued now, if it missed the last commit of a run that was killed.

    Workers and requests outlive the run they belong to, for a moment. Only the batch that a new run
    begins with can be theirs; later, a commit of another run means that it is alive.
    """
    begins = ticket.before is None or not ticket.before.same_run(ours)
    missed = replace(ticket, before=now)
    return missed if begins and now != ticket.before and is_repeated(ours, now) else ticket


def check(ours: Marker, ticket: Ticket, now: Marker | None) -> None:
    """Raise unless this write is the next one in line; `now` is the newest marker there is."""
    prefix, before = ticket.prefix, ticket.before
    stem = f"sink.transactional-id-prefix '{prefix}'"
    if now != before and (now is None or not now.same_run(ours)):
        by = now.by() if now else "somebody who deleted its markers"
        raise TransactionRefused(
            f"{stem}: {by} writes with it at the same time; give every query a prefix of its own"
        )
    if now is not None and now.same_run(ours) and now.batch > ours.batch:
        raise TransactionRefused(f"{stem}: batch {ours.batch} is over; batch {now.batch} is there")
    if not ours.query:
        return
    if before is None:
        if ours.batch > 0 and now is None and not ticket.trust:
            raise TransactionRefused(
                f"{stem}: no marker of an earlier batch, but this is batch {ours.batch}. Either "
                "the query never wrote with this prefix, or its markers expired "
                "('offsets.retention.minutes' of the broker) and this batch may have been "
                "written already. If it was not, set 'sink.missing-marker' to 'write'"
            )
    elif before.query != ours.query:
        if ours.batch > 0:
            raise TransactionRefused(
                f"{stem}: it belongs to {before.by()}, not to query {ours.query}; "
                "give every query a prefix of its own"
            )
    elif not before.same_run(ours) and before.batch > ours.batch:
        raise TransactionRefused(
            f"{stem}: batch {ours.batch} is to be written, but {before.by()} was already there; "
            "the query runs twice, or its checkpoint was turned back"
        )
    elif is_repeated(ours, before) and before.tasks and before.tasks != ours.tasks:
        raise TransactionRefused(
            f"batch {ours.batch} was begun with 'sink.parallelism' = {before.tasks}; "
            f"set it to that again until the batch is done (it is {ours.tasks or 'not set'} now)"
        )


def check_same_rows(ours: Marker, there: Marker, task: int) -> None:
    """Raise unless a repeated task has the rows it had when it committed."""
    if (ours.rows, ours.checksum) != (there.rows, there.checksum):
        what = "other rows" if ours.rows == there.rows else f"{ours.rows} rows"
        raise TransactionRefused(
            f"task {task} of batch {ours.batch} had {there.rows} rows when it was written, and has "
            f"{what} now that the batch is repeated; the query or its parallelism was changed. "
            "Undo that until the batch is done. If rows differ by themselves (uuid(), rand()), set "
            "'sink.parallelism' to the number of tasks: then rows are not compared"
        )


# --- the broker's limit -----------------------------------------------------------------------


def transaction_timeout(properties: Settings) -> int:
    """The timeout for transactions, in ms; raises if the broker would not have it."""
    wanted = text(properties.get("transaction.timeout.ms"))
    most = _most(frozenset(properties.items()))
    if not wanted:
        return min(TIMEOUT, most or TIMEOUT)
    if most is not None and int(wanted) > most:
        raise too_long(int(wanted), most)
    return int(wanted)


def too_long(wanted: int, most: int | None) -> OptionError:
    """Say that a transaction timeout is longer than the broker's limit."""
    limit = f" ({most})" if most else ""
    return OptionError(
        "connector 'kafka'",
        [
            Problem(
                "properties.transaction.timeout.ms",
                f"{wanted} is more than the broker's 'transaction.max.timeout.ms'{limit}; "
                "lower it, or raise the broker's",
            )
        ],
    )


@lru_cache(maxsize=16)
def _most(properties: frozenset[tuple[str, Any]]) -> int | None:
    """The broker's limit; None if we may not ask for it, for the broker checks it once more."""
    settings = dict(properties)
    asking = admin(settings)
    brokers = patiently(
        asking, settings, lambda seconds: asking.list_topics(timeout=seconds)
    ).brokers
    resource = ConfigResource(ResourceType.BROKER, str(min(brokers)))
    try:
        found = asking.describe_configs([resource], request_timeout=10)[resource].result()
    except KafkaException:
        return None
    limit = found.get("transaction.max.timeout.ms")  # brokers of another make may not list it
    return int(limit.value) if limit and limit.value else None
