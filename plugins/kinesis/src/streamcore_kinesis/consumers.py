"""The life of a registered consumer: found or registered, waited for, and removed again."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from typing import Any

from streamcore import ConnectionFailed

from .retrying import Caller, pause
from .settings import FanOut, Lifecycle, SourceSettings

log = logging.getLogger("streamcore.kinesis")

_LOOK_AGAIN = 0.2
"""Seconds between two looks for a consumer that is being removed."""


class Consumer:
    """The consumer a job reads with; lives in the driver."""

    def __init__(self, caller: Caller, settings: SourceSettings, fan_out: FanOut) -> None:
        self._caller, self._settings, self._fan_out = caller, settings, fan_out
        self._stream_arn = settings.stream.get("StreamARN", "")
        self._arn: str | None = fan_out.arn
        self._ready = fan_out.arn is not None
        self._removed = False

    @property
    def arn(self) -> str:
        """The consumer's ARN, once it can be subscribed with."""
        self.prepare()
        assert self._arn is not None
        return self._arn

    def prepare(self) -> None:
        """Register or find the consumer; at the start of a query, where trouble is seen."""
        if not self._ready:
            if self._fan_out.removed:
                _leave_in_order()
            if self._fan_out.lifecycle is Lifecycle.JOB_MANAGED:
                self._register()
            self._arn = self._wait_until_active()
            self._ready, self._removed = True, False

    def remove(self) -> None:
        """Deregister the job's own consumer; one that cannot be removed is only named."""
        if not self._fan_out.removed or self._removed:
            return
        self._ready, self._removed = False, True
        try:
            # By its name: a run that was killed may have left it to one that had nothing to read.
            found = self._describe()
            if found is not None and found["ConsumerStatus"] != "DELETING":
                self._deregister(str(found["ConsumerARN"]))
        except Exception as error:  # the job has ended; what is left behind is said, not raised
            log.warning("consumer '%s' was not removed: %s", self._fan_out.name, error)

    def _deregister(self, arn: str) -> None:
        client = self._caller.client
        self._caller.call(
            f"removing consumer '{self._fan_out.name}'",
            lambda: client.deregister_stream_consumer(ConsumerARN=arn),
            backoff=self._fan_out.removing,
        )
        deadline = time.monotonic() + self._fan_out.removal_timeout.total_seconds()
        while self._describe() is not None:
            if time.monotonic() >= deadline:
                log.warning("consumer '%s' is still being removed", self._fan_out.name)
                return
            time.sleep(_LOOK_AGAIN)

    def _register(self) -> None:
        client = self._caller.client
        try:
            self._caller.call(
                f"registering consumer '{self._fan_out.name}'",
                lambda: client.register_stream_consumer(
                    StreamARN=self._arn_of_stream(), ConsumerName=self._fan_out.name
                ),
                final=("ResourceInUseException",),
                backoff=self._fan_out.registering,
            )
        except client.exceptions.ResourceInUseException:
            # Left by an earlier run that had no time to remove it: ours again.
            log.info("consumer '%s' exists already and is used", self._fan_out.name)

    def _wait_until_active(self) -> str:
        backoff, timeout = self._fan_out.describing, self._fan_out.active_timeout
        deadline = float("inf") if timeout is None else time.monotonic() + timeout.total_seconds()
        looks, status = 0, ""
        while looks < backoff.attempts and (not looks or time.monotonic() < deadline):
            found = self._describe()
            status = str(found["ConsumerStatus"]) if found else "gone"
            if found and status == "ACTIVE":
                return str(found["ConsumerARN"])
            if found is None:
                if self._fan_out.lifecycle is Lifecycle.SELF_MANAGED:
                    raise ConnectionFailed(
                        f"consumer '{self._fan_out.name}' of '{self._settings.stream_name}' does "
                        "not exist. Register it, or set 'source.efo.lifecycle' to 'JOB_MANAGED'."
                    )
                if looks:  # it was on its way out when we came, and has gone
                    self._register()
            time.sleep(pause(backoff, looks))
            looks += 1
        raise ConnectionFailed(
            f"consumer '{self._fan_out.name}' of stream '{self._settings.stream_name}' did not "
            f"become active in {looks} looks, the last of which found it {status}. Start the query "
            "again, or remove the consumer first."
        )

    def _describe(self) -> Any:
        client = self._caller.client
        try:
            answer = self._caller.call(
                f"describing consumer '{self._fan_out.name}'",
                lambda: client.describe_stream_consumer(
                    StreamARN=self._arn_of_stream(), ConsumerName=self._fan_out.name
                ),
                final=("ResourceNotFoundException",),
                backoff=self._fan_out.describing,
            )
        except client.exceptions.ResourceNotFoundException:
            return None
        return answer["ConsumerDescription"]

    def _arn_of_stream(self) -> str:
        if not self._stream_arn:
            answer = self._caller.call(
                f"describing stream '{self._settings.stream_name}'",
                lambda: self._caller.client.describe_stream_summary(**self._settings.stream),
                backoff=self._settings.describing,
            )
            self._stream_arn = answer["StreamDescriptionSummary"]["StreamARN"]
        return self._stream_arn


def _leave_in_order() -> None:
    """Turn SIGTERM into an exit: with it Spark ends the process that plans a stopped query, whose
    reader would never be told to stop otherwise. Spark sends it twice.
    """

    def leave(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit()

    ours = threading.current_thread() is threading.main_thread()
    if ours and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, leave)
