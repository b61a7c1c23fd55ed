"""SET and RESET: what each key means here, and which ones mean nothing."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from .results import Done, Listing
from .running import Launch
from .statements import Reset, Set

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Settings:
    """What a session was told, by its caller and by SET."""

    def __init__(
        self, *, name: str = "", checkpoint: str | None = None, once: bool = False
    ) -> None:
        self._name, self._checkpoint, self._once = name, checkpoint, once
        self._values: dict[str, str] = {}

    @property
    def job_name(self) -> str:
        return self._values.get("pipeline.name", self._name)

    @property
    def spark(self) -> dict[str, str]:
        """The keys that are Spark's own."""
        return {key: value for key, value in self._values.items() if key.startswith("spark.")}

    def launch(self, target: str) -> Launch:
        """How a job that writes to `target` is started."""
        name = f"{self.job_name}.{target}" if self.job_name else target
        checkpoint = f"{self._checkpoint}/{target}" if self._checkpoint else None
        return Launch(name, checkpoint or tempfile.mkdtemp(prefix="streamcore-"), self._once)

    def set(self, statement: Set, spark: SparkSession | None) -> Done | Listing:
        if statement.option is None:
            return Listing(("key", "value"), sorted(self._values.items()))
        option = statement.option
        if option.key.startswith("spark.") and spark is not None:
            spark.conf.set(option.key, option.value)
        self._values[option.key] = option.value
        return Done(f"'{option.key}' set")

    def reset(self, statement: Reset, spark: SparkSession | None) -> Done:
        if statement.key is None:
            self._values.clear()
            return Done("all keys reset")
        self._values.pop(statement.key, None)
        return Done(f"'{statement.key}' reset")
