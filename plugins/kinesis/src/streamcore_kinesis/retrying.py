"""Calls that are tried again: throttling and passing faults, with pauses of half jitter."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from .client import code_of, explain, is_passing, is_silence, is_unreached
from .settings import Backoff, Endpoint

T = TypeVar("T")

_MOST_SILENCES = 3
"""Calls without an answer, each as long as the read timeout, before nothing is to be expected."""
_MOST_UNREACHED = 3
"""Calls that reach nobody before the address counts as wrong; one that has answered may be away."""

_GROWTHS = 30
"""Pauses that grow; all are at their longest by then, and numbers stay within bounds."""


class Patience:
    """How long a service that does not answer is waited for: less while it never has answered."""

    def __init__(self) -> None:
        self.answered = False
        self._silences = self._unreached = 0

    def heard(self) -> None:
        """Note an answer, whatever it was."""
        self.answered = True
        self._silences = self._unreached = 0

    def ends(self, error: Exception) -> bool:
        """Note that a call failed, and say whether there is no point in making it again."""
        if code_of(error):
            self.heard()
        self._silences += is_silence(error)
        self._unreached += is_unreached(error)
        return self._silences >= _MOST_SILENCES or (
            self._unreached >= _MOST_UNREACHED and not self.answered
        )


def pause(backoff: Backoff, attempt: int) -> float:
    """Seconds to wait after this attempt: between half of the full pause and all of it."""
    base, most = backoff.base.total_seconds(), backoff.most.total_seconds()
    full = min(most, base * backoff.factor ** min(attempt, _GROWTHS))
    return full * (0.5 + random.random() / 2)


class Caller:
    """Makes calls for one stream, counts retries, and words what finally fails."""

    def __init__(self, client: Any, endpoint: Endpoint, backoff: Backoff) -> None:
        self.client, self._endpoint, self._backoff = client, endpoint, backoff
        self._answered = False
        self.retries = 0

    def call(
        self,
        what: str,
        make: Callable[[], T],
        final: tuple[str, ...] = (),
        backoff: Backoff | None = None,
    ) -> T:
        """Make the call; errors with a code in `final` are raised as they are, for the caller.

        `backoff` is for a call that has pauses of its own.
        """
        pauses, patience = backoff or self._backoff, Patience()
        patience.answered = self._answered
        for attempt in range(pauses.attempts):
            try:
                made = make()
                self._answered = True
                return made
            except Exception as error:
                if code_of(error) in final:
                    raise
                last = patience.ends(error) or attempt + 1 == pauses.attempts
                self._answered = patience.answered
                if last or not is_passing(error):
                    raise explain(error, what, self._endpoint.region, self._endpoint.url) from error
                self.retries += 1
                time.sleep(pause(pauses, attempt))
        raise AssertionError("a backoff has at least one attempt")
