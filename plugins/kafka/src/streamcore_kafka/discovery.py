"""What the driver asks the brokers: which topics there are, and how far their partitions reach."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamcore import ConnectionFailed

from . import client
from .progress import Partition, Positions
from .topics import java_pattern, matches
from .validation import text

if TYPE_CHECKING:
    from concurrent.futures import Future

    from .connector import Kafka

_PAUSE = 0.2
_UNKNOWN = {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "_NOENT"}
_PASSING = {
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "LEADER_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "NOT_LEADER_FOR_PARTITION",
    "OFFSET_NOT_AVAILABLE",
}


@dataclass(frozen=True)
class Topic:
    """A topic as it is now; `id` is empty for brokers that have none."""

    id: str
    partitions: tuple[int, ...]


class TopicGone(ConnectionFailed):
    """A topic or partition we knew does not exist any more."""


def reads_committed(properties: Mapping[str, Any]) -> bool:
    """Whether records of open and aborted transactions stay unseen; the Java client shows them."""
    return text(properties.get("isolation.level")).lower() == "read_committed"


class Cluster:
    """One connection to the brokers for all questions of a query; opened when first used."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka, self._properties = kafka, kafka.properties
        self._patience = client.patience(kafka.properties)
        self._client: Any = None

    @property
    def _admin(self) -> Any:
        if self._client is None:
            self._client = client.admin(self._properties)
        return self._client

    def topics(self) -> dict[str, Topic]:
        """The topics of the table; a listed one must exist, a pattern may match nothing."""
        names = set(self._kafka.topic)
        if self._kafka.topic_pattern is not None:
            pattern = java_pattern(self._kafka.topic_pattern)
            names = {name for name in self._names() if matches(pattern, name)}
        if not names:
            return {}
        listed = self._kafka.topic_pattern is None
        answers = self._ask(
            lambda wait: self._admin.describe_topics(
                client.TopicCollection(sorted(names)), request_timeout=wait
            ),
            missing=self._missing if listed else lambda name: None,
        )
        return {
            name: Topic(_id(topic), tuple(sorted(p.id for p in topic.partitions)))
            for name, topic in answers.items()
            if listed or not topic.is_internal
        }

    def earliest(self, partitions: Iterable[Partition]) -> Positions:
        return self._offsets(partitions, client.OffsetSpec.earliest())

    def latest(self, partitions: Iterable[Partition], *, stable: bool = False) -> Positions:
        """The end of each log; with `stable`, the end of what no open transaction can change."""
        return self._offsets(partitions, client.OffsetSpec.latest(), stable)

    def at_time(self, partitions: Iterable[Partition], millis: int) -> Positions:
        """The first record at or after a time; partitions without one are left out."""
        found = self._offsets(partitions, client.OffsetSpec.for_timestamp(millis))
        return {partition: offset for partition, offset in found.items() if offset >= 0}

    def committed(self, partitions: Iterable[Partition]) -> Positions:
        """What the group has committed; partitions without a commit are left out."""
        wanted = [client.TopicPartition(*partition) for partition in partitions]
        group = self._kafka.group
        if not wanted or not group:
            return {}
        request = [client.ConsumerGroupTopicPartitions(group, wanted)]
        answers = self._ask(
            lambda wait: self._admin.list_consumer_group_offsets(request, request_timeout=wait)
        )
        return {
            Partition(each.topic, each.partition): each.offset
            for each in answers[group].topic_partitions
            if each.offset >= 0
        }

    def commit(self, positions: Positions) -> Future[Any]:
        """Start committing the next offsets of the group; the caller looks at the outcome."""
        wanted = [client.TopicPartition(*each, offset) for each, offset in positions.items()]
        group = self._kafka.group
        request = [client.ConsumerGroupTopicPartitions(group, wanted)]
        answers = self._admin.alter_consumer_group_offsets(request, request_timeout=self._patience)
        future: Future[Any] = answers[group]
        return future

    def _names(self) -> list[str]:
        found = client.patiently(
            self._admin, self._properties, lambda seconds: self._admin.list_topics(timeout=seconds)
        )
        return list(found.topics)

    def _offsets(
        self, partitions: Iterable[Partition], spec: Any, stable: bool = False
    ) -> Positions:
        wanted = {client.TopicPartition(*partition): spec for partition in partitions}
        if not wanted:
            return {}
        levels = client.IsolationLevel
        level = levels.READ_COMMITTED if stable else levels.READ_UNCOMMITTED
        answers = self._ask(
            lambda wait: self._admin.list_offsets(
                wanted, isolation_level=level, request_timeout=wait
            )
        )
        return {Partition(tp.topic, tp.partition): each.offset for tp, each in answers.items()}

    def _ask(
        self,
        question: Callable[[float], Mapping[Any, Future[Any]]],
        missing: Callable[[Any], None] | None = None,
    ) -> dict[Any, Any]:
        """Collect every answer; what passes by itself is asked again until patience ends."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return client.patiently(
                    self._admin,
                    self._properties,
                    lambda seconds: _answers(question(seconds), missing or _gone),
                )
            except _MayPass as error:
                if time.monotonic() + _PAUSE > deadline:
                    raise client.explain(error.cause, self._properties) from error
                time.sleep(_PAUSE)

    def _missing(self, name: str) -> None:
        raise TopicGone(
            f"topic '{name}' does not exist at {self._kafka.servers}; create it or correct 'topic'."
        )


class _MayPass(Exception):  # noqa: N818 - never leaves this module
    """The broker asks for a little time."""

    def __init__(self, cause: Any) -> None:
        super().__init__(cause)
        self.cause = cause


def _answers(futures: Mapping[Any, Future[Any]], missing: Callable[[Any], None]) -> dict[Any, Any]:
    answers = {}
    for about, future in futures.items():
        try:
            answers[about] = future.result()
        except client.KafkaException as error:
            name = error.args[0].name()
            if name in _UNKNOWN:
                missing(about)
            elif name in _PASSING:
                raise _MayPass(error) from error
            else:
                raise
    return answers


def _gone(partition: Any) -> None:
    place = Partition(partition.topic, partition.partition)
    raise TopicGone(f"{place} does not exist, or has no leader.")


def _id(topic: Any) -> str:
    text = str(topic.topic_id or "")
    return "" if set(text) <= {"A"} else text  # all zero bits: the broker has no ids
