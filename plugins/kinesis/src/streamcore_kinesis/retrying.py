"""Calls that are tried again: throttling and passing faults, with pauses of half jitter."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from .client import code_of, explain
from .settings import Backoff, Endpoint

T = TypeVar("T")

PASSING = {
    "ProvisionedThroughputExceededException",
    "LimitExceededException",
    "InternalFailure",
    "InternalFailureException",
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "ThrottlingException",
    "KMSThrottlingException",
    "RequestTimeout",
    "RequestTimeoutException",
}

_MOST_SILENCES = 3
"""Calls without an answer, each as long as the read timeout, before nothing is to be expected."""


def is_passing(error: Exception) -> bool:
    """Whether the same call may go through a moment later."""
    code = code_of(error)
    if code:
        status = getattr(error, "response", {}).get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return code in PASSING or int(status) >= 500
    from botocore.exceptions import (
        ConnectionClosedError,
        HTTPClientError,
        IncompleteReadError,
        ReadTimeoutError,
    )

    return isinstance(
        error, ConnectionClosedError | ReadTimeoutError | IncompleteReadError | HTTPClientError
    )


def is_silence(error: Exception) -> bool:
    """Whether the service took the call and never answered."""
    from botocore.exceptions import ReadTimeoutError

    return isinstance(error, ReadTimeoutError)


def pause(backoff: Backoff, attempt: int) -> float:
    """Seconds to wait after this attempt: between half of the full pause and all of it."""
    full = min(backoff.most, backoff.base * backoff.factor**attempt).total_seconds()
    return full * (0.5 + random.random() / 2)


class Caller:
    """Makes calls for one stream, counts retries, and words what finally fails."""

    def __init__(self, client: Any, endpoint: Endpoint, backoff: Backoff) -> None:
        self.client, self._endpoint, self._backoff = client, endpoint, backoff
        self.retries = 0

    def call(self, what: str, make: Callable[[], T], final: tuple[str, ...] = ()) -> T:
        """Make the call; errors with a code in `final` are raised as they are, for the caller."""
        silences = 0
        for attempt in range(self._backoff.attempts):
            try:
                return make()
            except Exception as error:
                if code_of(error) in final:
                    raise
                silences += is_silence(error)
                last = attempt + 1 == self._backoff.attempts or silences == _MOST_SILENCES
                if last or not is_passing(error):
                    raise explain(error, what, self._endpoint.region, self._endpoint.url) from error
                self.retries += 1
                time.sleep(pause(self._backoff, attempt))
        raise AssertionError("a backoff has at least one attempt")
