"""SET and RESET: what each key means here, and which ones mean nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from streamcore.values import masked, parse_duration

from .errors import SqlError, did_you_mean
from .monitoring.scrubbing import SECRETS
from .results import Done, Listing
from .running import Launch
from .statements import Option, Reset, Set

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _one_of(*choices: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value.lower() not in choices:
            raise ValueError(f"is not one of {', '.join(choices)}")
        return value.lower()

    return check


def _number(value: str) -> str:
    if not value.isdecimal() or int(value) < 1:
        raise ValueError("is not a whole number above 0")
    return value


def _duration(value: str) -> str:
    try:
        parse_duration(value)
    except (ValueError, KeyError):
        raise ValueError("is not a duration such as '10 s'") from None
    return value


KEYS: dict[str, tuple[Callable[[str], str], str]] = {
    "pipeline.name": (str, "name of the jobs that follow; checkpoints are kept under it"),
    "execution.checkpointing.dir": (str, "folder for the checkpoints of the jobs that follow"),
    "execution.checkpointing.interval": (_duration, "least time between two batches"),
    "execution.runtime-mode": (_one_of("streaming", "batch", "automatic"), "batch: refuse streams"),
    "parallelism.default": (_number, "tasks of a shuffle (spark.sql.shuffle.partitions)"),
    "table.local-time-zone": (str, "zone of TIMESTAMP_LTZ (spark.sql.session.timeZone)"),
    "table.dml-sync": (_one_of("true", "false"), "wait for each INSERT before going on"),
    "table.exec.distinct": (_one_of("exact", "approx"), "how COUNT(DISTINCT) counts on streams"),
    "sql-client.execution.result-mode": (_one_of("table", "changelog", "tableau"), "SELECT view"),
    "sql-client.execution.max-table-result.rows": (_number, "rows a SELECT shows"),
}
_SYNONYMS = {
    "state.checkpoints.dir": "execution.checkpointing.dir",
    "execution.checkpointing.min-pause": "execution.checkpointing.interval",
    "table.exec.resource.default-parallelism": "parallelism.default",
}
_SPARK = {
    "parallelism.default": "spark.sql.shuffle.partitions",
    "table.local-time-zone": "spark.sql.session.timeZone",
}
_NO_EFFECT = {
    "table.exec.state.ttl": "state is dropped by watermarks only",
    "table.exec.mini-batch.": "every query runs in micro-batches already",
    "table.exec.source.idle-timeout": "a silent partition never holds the watermark back",
    "table.exec.sink.": "sinks take rows as they come",
    "table.optimizer.": "Spark optimizes queries its own way",
    "execution.checkpointing.": "every micro-batch is checkpointed",
    "execution.savepoint.": "a job resumes from its checkpoint folder",
    "state.": "state is kept by Spark, in RocksDB",
    "restart-strategy": "restart the job with whatever started it",
    "taskmanager.": "Spark has executors; set spark.executor.*",
    "jobmanager.": "Spark has a driver; set spark.driver.*",
    "sql-client.": "the display adapts to the terminal",
}


class Settings:
    """What a session was told, by its caller and by SET."""

    def __init__(
        self,
        *,
        name: str = "",
        checkpoint: str | None = None,
        once: bool = False,
        fresh: bool = False,
    ) -> None:
        self._name, self._checkpoint, self.once, self._fresh = name, checkpoint, once, fresh
        self._values: dict[str, str] = {}
        self._before: dict[str, str | None] = {}
        """What Spark's own keys were before they were set."""

    def get(self, key: str, default: str = "") -> str:
        return self._values.get(key, default)

    @property
    def job_name(self) -> str:
        return self.get("pipeline.name", self._name)

    @property
    def waits(self) -> bool:
        """Whether each INSERT is waited for."""
        return self.once or self.get("table.dml-sync") == "true"

    @property
    def spark(self) -> dict[str, str]:
        """What Spark is to be started with."""
        own = {k: v for k, v in self._values.items() if k.startswith("spark.")}
        return {spark: self._values[k] for k, spark in _SPARK.items() if k in self._values} | own

    def launch(self, target: str) -> Launch:
        """How a job that writes to `target` is started."""
        name = f"{self.job_name}.{target}" if self.job_name else target
        interval = self.get("execution.checkpointing.interval")
        seconds = parse_duration(interval).total_seconds() if interval else 0
        every = f"{round(seconds * 1000)} milliseconds" if seconds else None
        return Launch(name, self._folder(target), self.once, every, self._fresh)

    def _folder(self, target: str) -> str | None:
        base = self.get("execution.checkpointing.dir") or self._checkpoint
        part = _as_folder(target)
        if base:
            return f"{base.rstrip('/')}/{part}"
        if self.job_name:
            return str(state_folder() / "jobs" / _as_folder(self.job_name) / part)
        return None

    # --- statements ----------------------------------------------------------------------

    def set(self, statement: Set, spark: SparkSession | None) -> Done | Listing:
        if statement.option is None:
            shown = [(key, _shown(key, value)) for key, value in sorted(self._values.items())]
            return Listing(("key", "value"), shown)
        return self.put(statement.option, spark)

    def put(self, option: Option, spark: SparkSession | None = None) -> Done:
        """Set one key, on a running Spark too."""
        key, note = _SYNONYMS.get(option.key, option.key), ""
        value = option.value
        if key in KEYS:
            try:
                value = KEYS[key][0](value)
            except ValueError as error:
                raise SqlError(f"{key}: '{value}' {error}", option.place) from None
        elif not key.startswith("spark."):
            note = _without_effect(key)
        if spark is not None and (name := _SPARK.get(key, key)).startswith("spark."):
            before = spark.conf.get(name, None)
            _on_spark(lambda: spark.conf.set(name, value), option)
            self._before.setdefault(name, before)
        self._values[key] = value
        return Done(f"'{key}' set to '{_shown(key, value)}'", (note,) if note else ())

    def reset(self, statement: Reset, spark: SparkSession | None) -> Done:
        asked = None if statement.key is None else _SYNONYMS.get(statement.key, statement.key)
        keys = [asked] if asked is not None else list(self._values)
        gone = [key for key in keys if self._values.pop(key, None) is not None]
        for name in dict.fromkeys(_SPARK.get(key, key) for key in gone):
            if spark is None or not name.startswith("spark."):
                continue
            if (before := self._before.pop(name, None)) is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, before)
        return Done("all keys reset" if asked is None else f"'{asked}' reset")


def _shown(key: str, value: str) -> str:
    return SECRETS.scrub(masked(key, value))


def state_folder() -> Path:
    """Where checkpoints and history are kept when nobody says where."""
    if own := os.environ.get("STREAMCORE_STATE"):
        return Path(own)
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "streamcore"


def _without_effect(key: str) -> str:
    for start, reason in _NO_EFFECT.items():
        if key.startswith(start):
            return f"'{key}' has no effect here: {reason}."
    hint = did_you_mean(key, KEYS)
    return f"'{key}' has no effect here." + (f" {hint}" if hint else "")


def _on_spark(change: Callable[[], Any], option: Option) -> None:
    from pyspark.errors import PySparkException

    from .failures import message_of

    try:
        change()
    except PySparkException as error:
        text = message_of(error)
        hint = ""
        if "CANNOT_MODIFY" in str(error):
            text = "is fixed once Spark runs"
            hint = f"Pass it when you start: --set {option.key}=..."
        raise SqlError(f"{option.key}: {text}", option.place, hint) from error


def _as_folder(name: str) -> str:
    """A folder's name that stands for any name, and never for a folder above."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")
