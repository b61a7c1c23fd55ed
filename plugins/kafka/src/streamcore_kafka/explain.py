"""One sentence for what a Kafka client reports: which broker, what is wrong, what to check."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from streamcore import ConnectionFailed
from streamcore.values import without_logins

from .keystores import Settings, text
from .properties import secrets_of
from .verifying import Doubt, doubt

REFUSALS = frozenset({"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL"})
SILENCE = frozenset({"_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE", "_MSG_TIMED_OUT"})
PASSING = SILENCE | {
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "FENCED_LEADER_EPOCH",
    "LEADER_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "NOT_LEADER_FOR_PARTITION",
    "OFFSET_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "REQUEST_TIMED_OUT",
    "UNKNOWN_LEADER_EPOCH",
    "_WAIT_COORD",
}
"""What goes away while brokers start or hand over to each other."""
_BROKER = re.compile(r"^(?:\[thrd:[^]]*\]: )?(?:\w+://)?([^\s/]+:\d+)/")
_NOISE = re.compile(
    r"^(?:\[thrd:[^]]*\]: )?(?:\w+://)?[^\s/]+:\d+/\w+: |^Failed to get metadata: "
    r"| \(after \d+ms in state \w+(?:, \d+ identical error\(s\) suppressed)?\)"
)
_FATAL = ("_FATAL", "_PURGE_QUEUE")  # a producer that cannot go on drops what it has


class UnknownTopics(ConnectionFailed):
    """Kafka has no topics of these names."""

    def __init__(self, servers: str, *names: str) -> None:
        several = len(names) > 1
        super().__init__(
            f"Kafka broker {servers} does not know the topic{'s' * several}: "
            f"{', '.join(repr(name) for name in names)}. "
            f"Create {'them' if several else 'it'}, or check 'topic'."
        )
        self.servers, self.names = servers, names

    def __reduce__(self) -> Any:
        return type(self), (self.servers, *self.names)


class Report(NamedTuple):
    """One error as the client tells it: its short name and its text."""

    name: str
    text: str

    @property
    def refuses(self) -> bool:
        """Whether a broker has turned us away, which waiting does not change."""
        return (
            self.name in REFUSALS
            or _dislikes_our_certificate(self.text)
            or "wrong version number" in self.text  # what answers speaks no TLS
        )


def _dislikes_our_certificate(said: str) -> bool:
    return "alert" in said and ("certificate" in said or "unknown ca" in said)


def sentence(error: Report, heard: Iterable[Report], properties: Settings) -> str:
    """Say what went wrong; `heard` are the client's own reports, which often know the cause."""
    cause = _cause(error, list(heard))
    match = _BROKER.match(cause.text)
    broker = match[1] if match else text(properties.get("bootstrap.servers"))
    said = scrubbed(_NOISE.sub("", cause.text).strip().rstrip("."), properties)
    if "in state SSL_HANDSHAKE" in cause.text and "handshake" not in said:
        said = f"SSL handshake failed: {said}"
    tell = _SENTENCES.get(cause.name, _unknown)
    return tell(f"Kafka broker {broker}", said, properties)


def scrubbed(told: str, properties: Settings) -> str:
    """The same text without any secret of these properties."""
    for secret in sorted(secrets_of(properties), key=len, reverse=True):
        if len(secret) > 3:  # a shorter one would garble every text without hiding anything
            told = told.replace(secret, "***")
    return without_logins(told)


def _cause(error: Report, heard: list[Report]) -> Report:
    if error.name in _FATAL:
        return next((report for report in reversed(heard) if report.name == "_FATAL"), error)
    if error.name not in SILENCE:
        return error
    if refusals := [report for report in heard if report.refuses]:
        return refusals[-1]
    for wanted in ("_RESOLVE", "_TRANSPORT"):
        if found := [report for report in heard if report.name == wanted]:
            return found[-1]
    return error


def _login(broker: str, said: str, properties: Settings) -> str:
    if said.startswith("credential provider "):
        return f"no login for {broker}: {said}."
    if "handshake failed" in said:
        return (
            f"{broker} does not offer this way to log in: {said}. "
            "Check 'properties.sasl.mechanism' and 'properties.security.protocol'."
        )
    if properties.get("sasl.jaas.config"):
        keys = "the user and password in 'properties.sasl.jaas.config'"
    elif "OAUTHBEARER" in said.upper() or properties.get("sasl.oauthbearer.token.endpoint.url"):
        keys = "the 'properties.sasl.oauthbearer.*' settings"
    else:
        keys = "'properties.sasl.username' and 'properties.sasl.password'"
    return f"{broker} refused the login: {said}. Check {keys}."


def _tls(broker: str, said: str, properties: Settings) -> str:
    if "certificate verify failed" in said:
        return _unverified(broker, doubt(broker.rpartition(" ")[2], properties))
    if _dislikes_our_certificate(said):
        return (
            f"{broker} did not accept our certificate: {said}. Check "
            "'properties.ssl.keystore.location' or 'properties.ssl.certificate.location'."
        )
    return (
        f"no TLS connection to {broker}: {said}. "
        "Check that the port speaks TLS, and 'properties.security.protocol'."
    )


_CHECKS = {
    Doubt.AUTHORITY: "Check 'properties.ssl.truststore.location' or 'properties.ssl.ca.location'.",
    Doubt.DATES: "Have it renewed, or this machine's clock set.",
    Doubt.HOST: "Check the hosts in 'properties.bootstrap.servers'.",
}


def _unverified(broker: str, why: Doubt | None) -> str:
    told = f"the certificate of {broker} cannot be verified"
    if why is not None:
        return f"{told}: {why.value}. {_CHECKS[why]}"
    return f"{told}: {', or '.join(each.value for each in Doubt)}. {' '.join(_CHECKS.values())}"


def _unresolved(broker: str, said: str, properties: Settings) -> str:
    return f"{broker} has no address: {said}. Check 'properties.bootstrap.servers'."


def _silent(broker: str, said: str, properties: Settings) -> str:
    greeted = "Disconnected" in said and "handshake" not in said
    if "SSL" in said and not greeted:
        return _tls(broker, said, properties)
    if greeted:
        return (
            f"{broker} closed the connection before it answered. "
            "Check 'properties.security.protocol': the port may want TLS or a login."
        )
    return (
        f"{broker} does not answer: {said}. Check 'properties.bootstrap.servers', "
        "that the broker is up, and that it can be reached from here."
    )


def _compressed(broker: str, said: str, properties: Settings) -> str:
    return (
        f"{broker} gave a batch that cannot be expanded: {said}. It is damaged, or larger than "
        "'properties.receive.message.max.bytes' once it is expanded; raise that, and give the "
        "workers memory for it."
    )


def _missing_topic(broker: str, said: str, properties: Settings) -> str:
    return f"{broker} does not know the topic: {said}. Create it, or check 'topic'."


def _not_allowed(what: str) -> Callable[[str, str, Settings], str]:
    def tell(broker: str, said: str, properties: Settings) -> str:
        user = text(properties.get("sasl.username"))
        who = f"user '{user}'" if user else "our user"
        return f"{broker} does not allow {who} to {what}: {said}. Have the right granted (ACL)."

    return tell


def _not_on_cluster(broker: str, said: str, properties: Settings) -> str:
    if "idempotence PID" in said:  # what a producer asks for before it writes
        return _no_writing(broker, properties)
    return _not_allowed("do this on the cluster")(broker, said, properties)


def _no_writing(broker: str, properties: Settings) -> str:
    missing = "neither WRITE on a topic nor IDEMPOTENT_WRITE on the cluster is granted"
    return _not_allowed("write")(broker, missing, properties)


def _fatal(broker: str, said: str, properties: Settings) -> str:
    if "Cluster authorization failed" in said:
        return _no_writing(broker, properties)
    return f"{broker} and the producer have lost each other: {said}. Run the batch again."


def _unknown(broker: str, said: str, properties: Settings) -> str:
    return f"{broker}: {said}."


_SENTENCES: dict[str, Callable[[str, str, Settings], str]] = {
    "_BAD_COMPRESSION": _compressed,
    "_AUTHENTICATION": _login,
    "SASL_AUTHENTICATION_FAILED": _login,
    "_SSL": _tls,
    "_RESOLVE": _unresolved,
    **dict.fromkeys(SILENCE - {"_RESOLVE"}, _silent),
    "_UNKNOWN_TOPIC": _missing_topic,
    "UNKNOWN_TOPIC_OR_PART": _missing_topic,
    "_UNKNOWN_PARTITION": _missing_topic,
    "TOPIC_AUTHORIZATION_FAILED": _not_allowed("use the topic"),
    "GROUP_AUTHORIZATION_FAILED": _not_allowed("use the consumer group"),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _not_allowed("use the transactional id"),
    "CLUSTER_AUTHORIZATION_FAILED": _not_on_cluster,
    "_FATAL": _fatal,
}
