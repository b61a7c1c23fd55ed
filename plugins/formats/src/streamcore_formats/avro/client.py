"""The schema registry's client: patient with a registry that restarts, careful with what it sends.

The only module here that imports confluent_kafka.
"""

from __future__ import annotations

import importlib
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import OAuthTokenError, SchemaRegistryError
from streamcore import ConnectionFailed, Secret

from .schema import SchemaError, Type, parse
from .settings import Settings, without_userinfo

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds a registry may be away before a batch fails."""
_ONE_CALL = 10.0
_LONGEST_WAIT = 5.0
_LARGEST_ANSWER = 16 << 20
_LONGEST_ANSWER = 30.0
"""Seconds from the head of an answer to its end; the client bounds only each silence in it."""
_FORGET_UNKNOWN = 30.0
_MOST_KNOWN = 10_000
_MOST_REFERENCES = 100
_AWAY = frozenset((408, 429, 500, 502, 503, 504))
_WRONG_TLS = ("CERTIFICATE", "WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
_NO_SUCH_SCHEMA = frozenset((40402, 40403))


class UnknownSchema(Exception):  # noqa: N818 - says what happened
    """The registry answered, and has no usable Avro schema of this id."""


_registries: dict[Settings, Registry] = {}
_lock = threading.Lock()


def registry(settings: Settings) -> Registry:
    """The registry of these settings; one per process, so that each schema is fetched once."""
    with _lock:
        if settings not in _registries:
            _registries[settings] = Registry(settings)
        return _registries[settings]


def _start_afresh() -> None:
    """A forked worker must share neither sockets nor a lock that nobody will release."""
    global _lock
    _lock = threading.Lock()
    _registries.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)


class Registry:
    """Schemas by id, and ids by schema; each is asked for once."""

    def __init__(self, settings: Settings) -> None:
        self.shown_url = ", ".join(map(without_userinfo, settings.url.split(",")))
        try:
            # This module waits and tries again by itself: the client would give up too early.
            configured = {"timeout": _ONE_CALL, **settings.revealed(), "max.retries": 0}
            self._client = SchemaRegistryClient(configured)
        except (OSError, ValueError, TypeError) as error:  # certificates that are no such
            raise ConnectionFailed(
                f"schema registry '{self.shown_url}': its client cannot be set up: {error}"
            ) from None
        self._http = _restrain(self._client, settings.token)
        self._types: dict[int, Type] = {}
        self._unknown: dict[int, tuple[float, str]] = {}
        self._ids: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def schema(self, identifier: int) -> Type:
        """The schema of this id; raises UnknownSchema, or ConnectionFailed after `PATIENCE`."""
        known = self._types.get(identifier)
        if known is not None:  # without the lock: somebody may be waiting for another one
            return known
        with self._lock:
            if identifier in self._types:
                return self._types[identifier]
            since, why = self._unknown.get(identifier, (0.0, ""))
            if time.monotonic() - since > _FORGET_UNKNOWN or not why:
                try:
                    found = self._fetch(identifier)
                except UnknownSchema as unknown:
                    why = str(unknown)
                    _make_room(self._unknown)
                    self._unknown[identifier] = (time.monotonic(), why)
                else:
                    _make_room(self._types)
                    self._types[identifier] = found
                    return found
            raise UnknownSchema(why)

    def register(self, subject: str, text: str) -> int:
        """The id of this schema under this subject, registered if it is new."""
        with self._lock:
            if (subject, text) not in self._ids:
                self._ids[subject, text] = self._register(subject, text)
            return self._ids[subject, text]

    def greet(self) -> None:
        """Ask something small, once; raises ConnectionFailed unless it is answered."""
        try:
            self._patiently(self._client.get_subjects, patience=0)
        except SchemaRegistryError as error:
            raise self._refused(error, "asked for its subjects") from None

    def _fetch(self, identifier: int) -> Type:
        try:
            found = self._patiently(lambda: self._client.get_schema(identifier))
            if (found.schema_type or "AVRO") != "AVRO":
                raise UnknownSchema(f"schema id {identifier} is {found.schema_type}, not Avro")
            return parse(found.schema_str or "", list(self._references(found)))
        except SchemaRegistryError as error:
            if error.error_code in _NO_SUCH_SCHEMA:
                where = f"the registry '{self.shown_url}'"
                raise UnknownSchema(f"schema id {identifier} is not in {where}") from None
            raise self._refused(error, f"asked for schema id {identifier}") from None
        except SchemaError as error:
            raise UnknownSchema(f"schema id {identifier}: {error}") from None

    def _references(self, schema: Schema) -> Iterator[str]:
        """Yield the texts of the schemas this one builds on, each after those it needs itself."""
        todo = [(reference, False) for reference in reversed(schema.references or [])]
        seen: set[tuple[str, int]] = set()
        ready: dict[tuple[str, int], str] = {}
        while todo:
            reference, done = todo.pop()
            key = (str(reference.subject), int(reference.version or -1))
            if done:
                yield ready.pop(key)
                continue
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > _MOST_REFERENCES:
                raise SchemaError(f"builds on more than {_MOST_REFERENCES} other schemas")
            found = self._patiently(partial(self._client.get_version, *key)).schema
            ready[key] = found.schema_str or ""
            todo.append((reference, True))
            todo += [(each, False) for each in reversed(found.references or [])]

    def _register(self, subject: str, text: str) -> int:
        schema = Schema(text, "AVRO")
        try:
            return int(self._patiently(lambda: self._client.register_schema(subject, schema)))
        except SchemaRegistryError as error:
            if error.http_status_code in (409, 422):
                raise ConnectionFailed(
                    f"schema registry '{self.shown_url}' refused this schema for subject "
                    f"'{subject}': {error.error_message}\n  {text}\n"
                    "Change the table, choose another 'subject', or relax the subject's "
                    "compatibility level."
                ) from None
            raise self._refused(error, f"asked to register subject '{subject}'") from None

    def _patiently(self, call: Callable[[], T], patience: float | None = None) -> T:
        """Call until the registry answers; what it answers is the caller's business."""
        patience = PATIENCE if patience is None else patience
        start, wait = time.monotonic(), 0.1
        while True:
            began = time.monotonic()
            try:
                return call()
            except SchemaRegistryError as error:
                if error.http_status_code not in _AWAY:
                    raise
                trouble = f"HTTP status {error.http_status_code}"
            except _BadAnswer as error:
                raise ConnectionFailed(f"schema registry '{self.shown_url}' {error}") from None
            except (self._http.HTTPError, OAuthTokenError) as error:
                trouble = f"{type(error).__name__}: {error}"
                if any(word in trouble for word in _WRONG_TLS):
                    raise ConnectionFailed(
                        f"schema registry '{self.shown_url}': {trouble}. Check that 'url' has the "
                        "right scheme, and 'ssl.truststore.location' the registry's certificate "
                        "authority in PEM."
                    ) from None
            except ValueError as error:  # an answer that is not JSON
                raise ConnectionFailed(
                    f"schema registry '{self.shown_url}' did not answer in JSON ({error}). "
                    "Check that 'url' is the base of the registry's API."
                ) from None
            now = time.monotonic()
            away, took = now - start, now - began
            if away + wait + took > patience:  # silence is likely to last as long again
                waited = f" for {away:.0f} s" if patience else ""
                raise ConnectionFailed(
                    f"schema registry '{self.shown_url}' did not answer{waited} "
                    f"({trouble}). Check that it runs, that 'url' is right, and that this host "
                    "may reach it."
                )
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(wait * 2, _LONGEST_WAIT)

    def _refused(self, error: SchemaRegistryError, asked: str) -> ConnectionFailed:
        status = error.http_status_code
        if status in (401, 403):
            advice = "Check 'basic-auth.user-info', 'bearer-auth.token' and what they may do."
        elif 300 <= status < 400:
            advice = "It redirects elsewhere, which is not followed: set 'url' to where it lives."
        else:
            advice = "Check that 'url' is the base of the registry's API."
        said = f"HTTP status {status}: {str(error.error_message)[:2000]}"
        return ConnectionFailed(f"schema registry '{self.shown_url}', {asked}: {said}. {advice}")


def _make_room(known: dict[int, Any]) -> None:
    if len(known) >= _MOST_KNOWN:
        known.clear()


class _BadAnswer(Exception):  # noqa: N818 - says what the answer was
    """An answer nobody should keep in memory, or wait for."""


def _restrain(client: SchemaRegistryClient, token: Secret | None) -> Any:
    """Bound what the client accepts and whom it tells secrets; return its HTTP library.

    Which of httpx and its successor that is, depends on the client's version.
    """
    session = client._rest_client.session
    library = importlib.import_module(type(session).__module__.partition(".")[0])
    session.follow_redirects = False  # what we send, credentials included, stays with 'url'
    session.headers["Accept-Encoding"] = "identity"  # so that the bound below means what it says
    if token is not None:
        session.headers["Authorization"] = f"Bearer {token.reveal()}"

    class Capped(library.SyncByteStream):  # type: ignore[misc,name-defined] # chosen at run time
        """The body of an answer, cut off where it gets too large or takes too long."""

        def __init__(self, stream: Any) -> None:
            self.stream = stream

        def __iter__(self) -> Iterator[bytes]:
            size, end = 0, time.monotonic() + _LONGEST_ANSWER
            for chunk in self.stream:
                size += len(chunk)
                if size > _LARGEST_ANSWER:
                    raise _BadAnswer(f"sent more than {_LARGEST_ANSWER >> 20} MiB in one answer")
                if time.monotonic() > end:
                    raise _BadAnswer(f"took more than {_LONGEST_ANSWER:g} s to send one answer")
                yield chunk

        def close(self) -> None:
            self.stream.close()

    def bound(response: Any) -> None:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise _BadAnswer("sent a compressed answer, though asked not to")
        response.stream = Capped(response.stream)

    session.event_hooks = {"response": [bound]}
    return library
