"""What Kafka clients report about their connections, for the sentence that explains a failure."""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from typing import Any

from streamcore import Secret

from .explain import Report, scrubbed
from .keystores import Settings

LOG = logging.getLogger("streamcore.kafka")
_RECENT = 60.0
_ONLY_LOGGED = {"FAIL": "_TRANSPORT", "FATAL": "_FATAL"}
"""What clients write to their log and tell nobody, and what it amounts to."""
_UNTOLD = "OAuth callback raised exception"
_COUNTED = re.compile(r" \(after \d+ms in state.*")


class Heard:
    """What the clients of one configuration have reported lately, secrets left out."""

    def __init__(self, properties: Settings) -> None:
        self._properties = properties
        self._reports: deque[tuple[float, Report]] = deque(maxlen=50)
        self._logged: dict[str, float] = {}
        self._no_token = ""

    def error(self, error: Any) -> None:
        """Called by a client, while it is polled, about errors of its connections."""
        told = error.str()
        if self._no_token and _UNTOLD in told:
            told = self._no_token
        self._reports.append((time.monotonic(), Report(error.name(), told)))

    def no_token(self, why: str) -> None:
        """Remember why a token could not be renewed; the client only says that it was not."""
        self._no_token = why

    def log(self, level: int, template: str, *arguments: object) -> None:
        """Called by a client, while it is polled, in place of a logger."""
        if arguments and arguments[0] in _ONLY_LOGGED:
            report = Report(_ONLY_LOGGED[str(arguments[0])], str(arguments[-1]))
            self._reports.append((time.monotonic(), report))
        line = scrubbed(template % arguments, self._properties)
        essence = _COUNTED.sub("", line)
        if line.endswith(": retrying"):  # as from a coordinator that has just started
            level = min(level, logging.INFO)
        if self._logged.get(essence, 0.0) < time.monotonic() - _RECENT:  # it reconnects often
            self._logged[essence] = time.monotonic()
            LOG.log(level, "%s", line)

    def recently(self) -> list[Report]:
        since = time.monotonic() - _RECENT
        return [report for at, report in self._reports if at >= since]

    def forget(self) -> None:
        self._reports.clear()


_HEARD: dict[frozenset[tuple[str, str | Secret]], Heard] = {}


def hearing(properties: Settings) -> Heard:
    """Where clients with these properties report; one per configuration and process."""
    key = frozenset(properties.items())
    if key not in _HEARD:
        _HEARD[key] = Heard(properties)
    return _HEARD[key]
