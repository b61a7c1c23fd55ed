"""Asks brokers through an admin client that knows who leads now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .client import KafkaException, admin, patiently
from .explain import SILENCE
from .keystores import Settings

T = TypeVar("T")
_AT_ONCE = 5.0
"""Seconds for one attempt: a leader that is dead takes all of them, and another one may lead."""


class Asking:
    """An admin client for many questions, replaced when it has trouble with leaders.

    The library goes on with those it knows, for minutes, when one of them has no answer or was
    elected again in the meantime; a new client asks who leads now.
    """

    def __init__(self, properties: Settings) -> None:
        self._properties = properties
        self._client: Any = None

    def ask(self, question: Callable[[Any, float], T]) -> T:
        """The answer to a question that takes a timeout, as patiently as any other."""
        return patiently(self, self._properties, lambda seconds: self._once(question, seconds))

    def poll(self, seconds: float) -> None:
        if self._client is not None:
            self._client.poll(seconds)

    def _once(self, question: Callable[[Any, float], T], seconds: float) -> T:
        if self._client is None:
            self._client = admin(self._properties)
        try:
            return question(self._client, min(seconds, _AT_ONCE))
        except KafkaException as error:
            if error.args[0].name() not in SILENCE:  # else it may still be connecting
                self.poll(0)  # what it has heard explains the failure
                self._client = None
            raise
