"""The life of a registered consumer: found or registered, waited for, and removed again."""

from __future__ import annotations

import logging
import time
from typing import Any

from streamcore import ConnectionFailed

from .retrying import Caller, pause
from .settings import FanOut, Lifecycle, SourceSettings

log = logging.getLogger("streamcore.kinesis")


class Consumer:
    """The consumer a job reads with; lives in the driver."""

    def __init__(self, caller: Caller, settings: SourceSettings, fan_out: FanOut) -> None:
        self._caller, self._settings, self._fan_out = caller, settings, fan_out
        self._stream_arn = settings.stream.get("StreamARN", "")
        self._arn: str | None = fan_out.arn
        self._ready = fan_out.arn is not None

    @property
    def arn(self) -> str:
        """The consumer's ARN, once it can be subscribed with."""
        if not self._ready:
            if self._fan_out.lifecycle is Lifecycle.JOB_MANAGED:
                self._register()
            self._arn = self._wait_until_active()
            self._ready = True
        assert self._arn is not None
        return self._arn

    def remove(self) -> None:
        """Deregister the job's own consumer; one that cannot be removed is only named."""
        if not self._fan_out.deregister or not self._ready:
            return
        client, self._ready = self._caller.client, False
        try:
            client.deregister_stream_consumer(ConsumerARN=self._arn)
            deadline = time.monotonic() + self._fan_out.deregister_timeout.total_seconds()
            while time.monotonic() < deadline:
                client.describe_stream_consumer(ConsumerARN=self._arn)
                time.sleep(0.2)
            log.warning("consumer '%s' is still being removed", self._fan_out.name)
        except client.exceptions.ResourceNotFoundException:
            return
        except Exception as error:  # the job has ended; what is left behind is said, not raised
            log.warning("consumer '%s' was not removed: %s", self._fan_out.name, error)

    def _register(self) -> None:
        client = self._caller.client
        try:
            self._caller.call(
                f"registering consumer '{self._fan_out.name}'",
                lambda: client.register_stream_consumer(
                    StreamARN=self._arn_of_stream(), ConsumerName=self._fan_out.name
                ),
                final=("ResourceInUseException",),
            )
        except client.exceptions.ResourceInUseException:
            # Left by an earlier run that had no time to remove it: ours again.
            log.info("consumer '%s' exists already and is used", self._fan_out.name)

    def _wait_until_active(self) -> str:
        backoff = self._fan_out.describe
        for attempt in range(backoff.attempts):
            found = self._describe()
            if found and found["ConsumerStatus"] == "ACTIVE":
                return str(found["ConsumerARN"])
            if found is None and self._fan_out.lifecycle is Lifecycle.SELF_MANAGED:
                raise ConnectionFailed(
                    f"consumer '{self._fan_out.name}' of '{self._settings.stream_name}' does "
                    "not exist. Register it, or set 'source.efo.lifecycle' to 'JOB_MANAGED'."
                )
            if found and found["ConsumerStatus"] == "DELETING":
                time.sleep(pause(backoff, 0))
                if self._fan_out.lifecycle is Lifecycle.JOB_MANAGED and self._describe() is None:
                    self._register()
                continue
            time.sleep(min(pause(backoff, attempt), 2.0))
        raise ConnectionFailed(
            f"consumer '{self._fan_out.name}' of stream '{self._settings.stream_name}' did not "
            f"become active in {backoff.attempts} looks."
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
            )
        except client.exceptions.ResourceNotFoundException:
            return None
        return answer["ConsumerDescription"]

    def _arn_of_stream(self) -> str:
        if not self._stream_arn:
            answer = self._caller.call(
                f"describing stream '{self._settings.stream_name}'",
                lambda: self._caller.client.describe_stream_summary(**self._settings.stream),
            )
            self._stream_arn = answer["StreamDescriptionSummary"]["StreamARN"]
        return self._stream_arn
