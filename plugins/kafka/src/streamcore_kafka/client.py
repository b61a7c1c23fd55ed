"""Kafka clients configured from a table's properties, which explain themselves when they fail.

The only module that imports the client library.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from confluent_kafka import (
    OFFSET_INVALID,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType
from streamcore import (
    ConnectionFailed,
    CredentialProvider,
    Credentials,
    OptionError,
    Problem,
    Secret,
)
from streamcore.values import masked

from . import properties as _properties
from .client_keys import KNOWN, PROVIDER
from .explain import PASSING, Report, UnknownTopics, scrubbed, sentence
from .hearing import hearing
from .idle import Idle
from .keystores import Settings, store_trouble, text
from .properties import Role, client_id, translated

T = TypeVar("T")
PATIENCE = 30.0
_FORGET_TOPICS_AFTER = 60.0

JAVA_DEFAULTS: dict[Role, dict[str, str]] = {
    Role.CONSUMER: {"isolation.level": "read_uncommitted", "enable.auto.commit": "false"},
    Role.PRODUCER: {
        "delivery.timeout.ms": "120000",
        "partitioner": "murmur2_random",
        "message.max.bytes": "1048576",
    },
    Role.ADMIN: {},
}
"""Where the C library would do otherwise than Java's client or Flink."""


def consumer(properties: Settings, **overrides: object) -> Consumer:
    """A consumer; `overrides` are the C library's own names and win over the properties."""
    config = _config(properties, Role.CONSUMER, overrides)
    config["group.id"] = config.get("group.id") or client_id(properties)  # the library insists
    return _made(Consumer, config, properties)


def producer(properties: Settings, **overrides: object) -> Producer:
    """A producer; idempotent, as Java's is, unless the properties rule that out."""
    config = _config(properties, Role.PRODUCER, overrides)
    if "enable.idempotence" not in config and _may_be_idempotent(config):
        config["enable.idempotence"] = "true"
    return _made(Producer, config, properties)


def admin(properties: Settings, **overrides: object) -> AdminClient:
    """An admin client. Asking it for a topic by name may create that topic; a consumer does not."""
    return _made(AdminClient, _config(properties, Role.ADMIN, overrides), properties)


def _config(properties: Settings, role: Role, overrides: dict[str, object]) -> dict[str, Any]:
    credentials: object = properties.get(PROVIDER)
    settings: dict[str, Any] = {**JAVA_DEFAULTS[role], **translated(properties, role), **overrides}
    if role is Role.PRODUCER and {"message.timeout.ms", "request.timeout.ms"} & settings.keys():
        _one_name_each(settings)
    if isinstance(credentials, CredentialProvider):
        settings |= _from_provider(credentials, settings, properties)
    return settings


def _one_name_each(settings: dict[str, Any]) -> None:
    """Of two names for one setting the library takes whichever it sees last; ours must yield."""
    if "message.timeout.ms" in settings:
        settings.pop("delivery.timeout.ms", None)


def _may_be_idempotent(config: dict[str, Any]) -> bool:
    acks = str(config.get("acks", config.get("request.required.acks", "all"))).lower()
    retries = str(config.get("retries", config.get("message.send.max.retries", "1")))
    flying = str(
        config.get("max.in.flight.requests.per.connection", config.get("max.in.flight", 5))
    )
    return acks in ("all", "-1") and retries != "0" and flying.isdigit() and int(flying) <= 5


def _from_provider(
    provider: CredentialProvider, settings: dict[str, Any], properties: Settings
) -> dict[str, Any]:
    """A login by credential provider: a token that is renewed, or a user and a password."""
    scope = {"service": "kafka", "servers": str(settings.get("bootstrap.servers", ""))}
    mechanism = str(settings.get("sasl.mechanism", "")).upper()

    def fetched(*wanted: str) -> Credentials:
        trouble = f"credential provider '{provider.identifier}'"
        try:
            found = provider.fetch(scope)
        except Exception as error:  # whatever it runs into, the sentence is the same
            told = scrubbed(str(error) or type(error).__name__, properties).rstrip(".")
            raise ConnectionFailed(f"{trouble} failed: {told}.") from error
        if missing := [name for name in wanted if name not in found.values]:
            names = ", ".join(f"'{name}'" for name in sorted(found.values)) or "nothing"
            raise ConnectionFailed(
                f"{trouble} gave no '{missing[0]}', which {mechanism} needs, but {names}."
            )
        return found

    if mechanism == "OAUTHBEARER":
        first = [fetched("token")]  # here it may raise; the client would wait in vain, and not say

        def renew(_: str) -> tuple[str, float]:
            try:
                found = first.pop() if first else fetched("token")
            except ConnectionFailed as error:
                hearing(properties).no_token(str(error))
                raise
            expires = found.expires.timestamp() if found.expires else time.time() + 3600
            return found.values["token"].reveal(), expires

        return {"oauth_cb": renew}
    values = fetched("username", "password").values
    return {"sasl.username": values["username"], "sasl.password": values["password"]}


def _made(kind: Callable[..., T], config: dict[str, Any], properties: Settings) -> T:
    heard = hearing(properties)
    plain = {k: v.reveal() if isinstance(v, Secret) else v for k, v in config.items()}
    try:
        return kind({**plain, "error_cb": heard.error}, logger=heard)
    except KafkaException as error:
        raise _bad_setting(error.args[0], properties) from None
    except (ValueError, TypeError) as error:
        trouble = scrubbed(str(error), properties)
        raise OptionError("connector 'kafka'", [Problem("properties", trouble)]) from None


# --- asking, and what to make of no answer ------------------------------------------------


def explain(error: BaseException | KafkaError, properties: Settings) -> ConnectionFailed:
    """One sentence naming the broker, the cause and what to check."""
    raw = error.args[0] if isinstance(error, KafkaException) else error
    report = (
        Report(raw.name(), raw.str()) if isinstance(raw, KafkaError) else Report("", str(error))
    )
    return ConnectionFailed(sentence(report, hearing(properties).recently(), properties))


def patience(properties: Settings) -> float:
    """How many seconds a broker may take to answer before we give up on it."""
    millis = text(properties.get("socket.connection.setup.timeout.ms"))
    return min(int(millis) / 1000, PATIENCE) if millis.isdigit() else PATIENCE


def patiently(client: Any, properties: Settings, call: Callable[[float], T]) -> T:
    """Make a call that takes a timeout, again and again until it succeeds or patience ends.

    The library retries a refused login silently forever; here it ends the wait at once. Polls the
    client to hear its reports, so a consumer must not have partitions assigned yet.
    """
    end, step = time.monotonic() + patience(properties), 1.0
    while True:
        left = end - time.monotonic()
        try:
            answer = call(max(0.1, min(step, left)))
            client.poll(0)  # or what it has to say would pile up, much of it with 'debug'
            hearing(properties).forget()  # whatever was wrong is over
            return answer
        except KafkaException as error:
            client.poll(0)
            waiting_helps = error.args[0].name() in PASSING and not is_refused(properties)
            if not waiting_helps or time.monotonic() >= end:
                raise explain(error, properties) from None
            time.sleep(0.05)  # some answers come at once
            step *= 2


def is_refused(properties: Settings) -> bool:
    """Whether a broker has lately refused us, which waiting does not change."""
    return any(report.refuses for report in hearing(properties).recently())


_Who = frozenset[tuple[str, Any]]
_TOPICS: dict[tuple[_Who, str], tuple[float, tuple[int, ...]]] = {}
_ASKING: Idle[Consumer] = Idle(2, Consumer.close)


def partitions_of(topic: str, properties: Settings) -> tuple[int, ...]:
    """The topic's partition ids, sorted; remembered for a minute.

    Creates no topic, unless 'properties.allow.auto.create.topics' says so.
    """
    who = frozenset(properties.items())
    known = _TOPICS.get((who, topic))
    if known and known[0] > time.monotonic():
        return known[1]
    asking = _ASKING.take(who) or consumer(properties)
    try:
        described = _described(asking, topic, properties)
        if described.error is not None:
            if described.error.name() == "UNKNOWN_TOPIC_OR_PART":
                raise UnknownTopics(text(properties.get("bootstrap.servers")), topic)
            raise explain(_about(topic, described.error), properties)
    except BaseException:
        asking.close()
        raise
    _ASKING.keep(who, asking)  # connecting takes longer than many answers
    ids = tuple(sorted(described.partitions))
    _TOPICS[who, topic] = (time.monotonic() + _FORGET_TOPICS_AFTER, ids)
    return ids


def _described(asking: Consumer, topic: str, properties: Settings) -> Any:
    """The topic's metadata; waits for a topic that the properties allow the broker to create."""
    created = text(properties.get("allow.auto.create.topics")).lower() == "true"
    end = time.monotonic() + patience(properties)
    while True:
        found = patiently(asking, properties, lambda seconds: asking.list_topics(topic, seconds))
        described = found.topics[topic]
        if described.error is None or not created or time.monotonic() > end:
            return described
        time.sleep(0.1)


def topic_names(properties: Settings) -> list[str]:
    """Every topic there is, but for Kafka's own."""
    asking = consumer(properties)
    try:
        found = patiently(asking, properties, lambda seconds: asking.list_topics(timeout=seconds))
    finally:
        asking.close()
    return sorted(name for name in found.topics if not name.startswith("__"))


@lru_cache(maxsize=16)
def _of_group(items: frozenset[tuple[str, Any]], group: str) -> Consumer:
    """A consumer for a group's offsets, kept open; sees them without waiting for open commits."""
    settings = {"group.id": group, "isolation.level": "read_uncommitted"}
    return consumer(dict(items), **settings)


def group_consumer(properties: Settings, group: str) -> Consumer:
    """A consumer that is no member of its group, for reading and committing its offsets.

    The admin client could do the same, but version 2.16 of the library crashes the process when
    the group's coordinator moves or is loading.
    """
    return _of_group(frozenset(properties.items()), group)


def committed(
    properties: Settings, group: str, places: Sequence[TopicPartition]
) -> list[TopicPartition]:
    """What a group has committed; offsets below 0 mean nothing."""
    asking = group_consumer(properties, group)
    found: list[TopicPartition] = patiently(
        asking, properties, lambda seconds: asking.committed(list(places), timeout=seconds)
    )
    return found


def _about(topic: str, error: KafkaError) -> KafkaError:
    return KafkaError(error.code(), f"'{topic}'")


# --- settings the library does not take -----------------------------------------------------

_ALIASES = {
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
    "message.timeout.ms": "delivery.timeout.ms",
    "message.send.max.retries": "retries",
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "max.in.flight.requests.per.connection": "max.in.flight",
    "sasl.mechanisms": "sasl.mechanism",
    "message.max.bytes": "max.request.size",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "socket.timeout.ms": "request.timeout.ms",
}
_WORD = re.compile(r"[a-z][a-z_]*(?:\.[a-z_]+)+")


def check_properties(properties: Settings) -> Iterator[Problem]:
    """Complain about settings and values no client would take; connects to nothing."""
    found = list(_properties.check_properties(properties))
    yield from found
    if not found:
        yield from _value_problems(frozenset(properties.items()))


@lru_cache(maxsize=64)
def _value_problems(items: frozenset[tuple[str, str | Secret]]) -> tuple[Problem, ...]:
    """Have the library itself judge the values, all but security's: files may be elsewhere."""
    plain = {k: v for k, v in items if not k.lower().startswith(("ssl.", "sasl.", "security."))}
    for key in ("bootstrap.servers", PROVIDER):
        plain.pop(key, None)
    found: list[Problem] = []
    for make in (_as_written, consumer):
        while problem := _first_problem(make, plain):
            found.append(problem)
            key = problem.key.removeprefix("properties.")
            if key not in plain:
                break
            del plain[key]
    return tuple(found)


def _as_written(properties: Settings, **overrides: object) -> Producer:
    from .sender import buffers

    return producer(properties, **buffers(properties), **overrides)


def _first_problem(make: Callable[..., Any], settings: Settings) -> Problem | None:
    try:
        make(settings, log_level=0)
    except OptionError as error:
        return error.problems[0]
    return None


def _bad_setting(error: KafkaError, properties: Settings) -> OptionError:
    told = re.sub(r"^Failed to create \w+: ", "", error.str()).strip().rstrip(".")
    key = next((name for name in _WORD.findall(told) if name in KNOWN), "")
    given = {name.lower(): value for name, value in properties.items()}
    if key.startswith("ssl.") and (known := store_trouble(key, told, given)):
        return OptionError("connector 'kafka'", [known])
    written = key if key in given else _ALIASES.get(key, key)
    value = text(given.get(written))
    trouble = scrubbed(told.replace("`", "'"), properties)
    if value and re.match("Invalid value|Expected bool value", told):
        trouble = f"'{masked(written, value)}' is not a value the Kafka client takes"
    elif "greater than `linger.ms`" in told:
        trouble = "must be greater than 'properties.linger.ms', which is 50 unless set"
    elif match := re.search(r"outside allowed range (\S+)\.\.(\S+)", told):
        trouble = f"'{value}' is not between {match[1]} and {match[2]}"
    problem = Problem(f"properties.{written}" if written else "", trouble)
    return OptionError("connector 'kafka'", [problem])


__all__ = [
    "OFFSET_INVALID",
    "TIMESTAMP_NOT_AVAILABLE",
    "ConfigResource",
    "Consumer",
    "IsolationLevel",
    "KafkaError",
    "KafkaException",
    "Message",
    "OffsetSpec",
    "Producer",
    "ResourceType",
    "TopicCollection",
    "TopicPartition",
    "admin",
    "check_properties",
    "committed",
    "consumer",
    "explain",
    "group_consumer",
    "partitions_of",
    "patience",
    "patiently",
    "producer",
    "topic_names",
]
