"""What the driver asks the brokers: which topics there are, and how far their partitions reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamcore import ConnectionFailed

from . import client
from .asking import Asking
from .progress import Partition, Positions
from .topics import is_chosen, java_pattern, matches
from .validation import text

if TYPE_CHECKING:
    from concurrent.futures import Future

    from .connector import Kafka

_UNKNOWN = {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "_NOENT"}


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
        self._asking = Asking(kafka.properties)
        self._consumer: Any = None
        self.on_commit: Callable[[Any, Any], None] = lambda error, places: None
        """Called with an error or None, and the partitions with errors of their own."""

    @property
    def _member(self) -> Any:
        """A consumer that never joins its group, but may read and commit the group's offsets.

        The admin client could, too, but crashes when the coordinator has just moved.
        """
        if self._consumer is None:
            self._consumer = client.consumer(
                self._properties,
                **{"enable.auto.commit": False, "on_commit": lambda *told: self.on_commit(*told)},
            )
        return self._consumer

    def topics(self, *, tolerant: bool = False) -> dict[str, Topic]:
        """The topics of the table; a listed one must exist unless we are `tolerant`."""
        names = set(self._kafka.topic)
        if self._kafka.topic_pattern is not None:
            pattern = java_pattern(self._kafka.topic_pattern)
            names = {name for name in self._names() if matches(pattern, name)}
        listed = self._kafka.topic_pattern is None
        answers = self._described(names, self._missing if listed and not tolerant else _left_out)
        return {
            name: Topic(_id(topic), self._wanted(each.id for each in topic.partitions))
            for name, topic in answers.items()
            if listed or not topic.is_internal
        }

    def ids(self, names: Iterable[str]) -> dict[str, str]:
        """The ids of those of these topics that are there."""
        return {name: _id(topic) for name, topic in self._described(names, _left_out).items()}

    def forbidden(self, names: Iterable[str], *, writing: bool) -> list[str]:
        """Those of these topics that we may not read, or not write."""
        answers = self._described(names, self._missing, include_authorized_operations=True)
        enough = {"WRITE" if writing else "READ", "ALL"}
        # An old broker does not say, which is no reason to complain.
        told = {name: topic.authorized_operations for name, topic in answers.items()}
        return [
            name
            for name, may in told.items()
            if may is not None and not enough & {operation.name for operation in may}
        ]

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
        if not wanted or not self._kafka.group:
            return {}

        def ask(seconds: float) -> Any:
            try:
                return self._member.committed(wanted, timeout=seconds)
            except client.KafkaException:
                if reason := self.poll(0):  # a group that is not ours looks like silence
                    raise client.KafkaException(reason) from None
                raise

        found = client.patiently(self._member, self._properties, ask)
        return {
            Partition(each.topic, each.partition): each.offset for each in found if each.offset >= 0
        }

    def commit(self, positions: Positions) -> None:
        """Start committing the group's next offsets; `on_commit` is told the outcome by `poll`."""
        places = [client.TopicPartition(*each, offset) for each, offset in positions.items()]
        self._member.commit(offsets=places, asynchronous=True)

    def poll(self, seconds: float) -> Any:
        """Wait at most so long for the outcome of a commit; returns why there can be none."""
        event = self._member.poll(seconds)
        return None if event is None else event.error()

    def _wanted(self, numbers: Iterable[int]) -> tuple[int, ...]:
        only = self._kafka.only_partitions
        return tuple(sorted(number for number in numbers if is_chosen(only, number)))

    def _names(self) -> list[str]:
        found = self._asking.ask(lambda admin, wait: admin.list_topics(timeout=wait))
        return list(found.topics)

    def _offsets(
        self, partitions: Iterable[Partition], spec: Any, stable: bool = False
    ) -> Positions:
        wanted = {client.TopicPartition(*partition): spec for partition in partitions}
        if not wanted:
            return {}
        levels = client.IsolationLevel
        level = levels.READ_COMMITTED if stable else levels.READ_UNCOMMITTED

        def ask(admin: Any, wait: float) -> dict[Any, Any]:
            futures = admin.list_offsets(wanted, isolation_level=level, request_timeout=wait)
            return _known(_answers(futures, lambda place: _absent(admin, place, wait)))

        answers = self._asking.ask(ask)
        return {Partition(tp.topic, tp.partition): each.offset for tp, each in answers.items()}

    def _described(
        self, names: Iterable[str], missing: Callable[[Any], None], **more: bool
    ) -> dict[str, Any]:
        if not (wanted := sorted(names)):
            return {}

        def ask(admin: Any, wait: float) -> dict[str, Any]:
            topics = client.TopicCollection(wanted)
            return _answers(admin.describe_topics(topics, request_timeout=wait, **more), missing)

        return self._asking.ask(ask)

    def _missing(self, name: str) -> None:
        raise TopicGone(
            f"topic '{name}' does not exist at {self._kafka.servers}; create it or correct 'topic'."
        )


def _answers(futures: Mapping[Any, Future[Any]], missing: Callable[[Any], None]) -> dict[Any, Any]:
    answers = {}
    for about, future in futures.items():
        try:
            answers[about] = future.result()
        except client.KafkaException as error:
            if error.args[0].name() not in _UNKNOWN:
                raise
            missing(about)
    return answers


def _left_out(name: Any) -> None:
    """What is missing is none of the answers."""


def _known(answers: dict[Any, Any]) -> dict[Any, Any]:
    """The same; raises if a leader did not answer, of which the client says only 'no offset'.

    Taken for an offset, that would be kept for as long as the query lives.
    """
    for place, answer in answers.items():
        if answer.offset == client.OFFSET_INVALID:
            raise _leaderless(place)
    return answers


def _absent(admin: Any, place: Any, wait: float) -> None:
    """Raise for a partition that the client cannot find: it is gone, or has no leader for now."""
    named = client.TopicCollection([place.topic])
    described = admin.describe_topics(named, request_timeout=wait)
    for topic in _answers(described, _left_out).values():
        if place.partition in {each.id for each in topic.partitions}:
            raise _leaderless(place)
    raise TopicGone(f"{Partition(place.topic, place.partition)} does not exist.")


def _leaderless(place: Any) -> Exception:
    told = f"{Partition(place.topic, place.partition)} has no leader that answers"
    code: int = client.KafkaError.LEADER_NOT_AVAILABLE
    error: Exception = client.KafkaException(client.KafkaError(code, told))
    return error


def _id(topic: Any) -> str:
    text = str(topic.topic_id or "")
    return "" if set(text) <= {"A"} else text  # all zero bits: the broker has no ids
