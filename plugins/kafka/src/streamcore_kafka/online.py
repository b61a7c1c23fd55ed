"""Whether the topics and registries of a table are there for us, asked before a job starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamcore import Problem, StreamcoreError, Table

from .discovery import Cluster

if TYPE_CHECKING:
    from .connector import Kafka


def online_problems(kafka: Kafka, table: Table, *, writing: bool) -> Iterator[Problem | str]:
    """Yield what would keep a job from reading the table, or from writing it."""
    formats = [each for each in (kafka.key_format, kafka.format) if each is not None]
    for form in formats:
        yield from form.online_problems()
    try:
        cluster = Cluster(kafka)
        topics = cluster.topics()
        if not topics:
            yield f"no topic matches '{kafka.topic_pattern}' at {kafka.servers}"
            return
        verb = "write" if writing else "read"
        for name in cluster.forbidden(topics, writing=writing):
            yield f"topic '{name}': we may not {verb} it; ask for an ACL that allows {verb.upper()}"
        if not writing:
            kafka.stream_reader(table).initialOffset()
    except StreamcoreError as error:
        yield str(error)
