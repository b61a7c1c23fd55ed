"""The file of figures: what each case came to, and in which sitting it was measured."""

from __future__ import annotations

import json
import os
import platform
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from . import peers
from .measure import Case, Plan

PACKAGES = ("streamcore", "pyspark", "pyarrow", "confluent-kafka")


class Figures:
    """Written after every case, because a sitting is long.

    A sitting replaces the cases that it is to run, and no others, so that a file may hold several
    sittings: every case says which is its own.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        file: Path | None,
        order: Sequence[str],
        wanted: Sequence[str],
    ) -> None:
        self._file, self._order = file, list(order)
        found: dict[str, Any] = {}
        if file and file.exists():
            found = json.loads(file.read_text())
        # Figures of another make have no sittings, and nobody could say where they come from.
        self._sittings: dict[str, Any] = found.get("sittings", {})
        others = set(order) - set(wanted)
        kept = found.get("cases", []) if self._sittings else []
        self._cases = {case["name"]: case for case in kept if case["name"] in others}
        failures: dict[str, Any] = found.get("failures", {})
        self._failures = {name: failures[name] for name in failures.keys() & others}
        now = datetime.now(UTC)
        self._name = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        self._sittings[self._name] = {
            "command": shlex.join(["python", "-m", "benchmarks", *arguments]),
            "date": now.strftime("%Y-%m-%d"),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, "
            f"Python {platform.python_version()}",
            "versions": {name: version(name) for name in PACKAGES} | peers.versions(),
            "took_seconds": 0.0,
        }

    def add(self, case: Case, so_far: float) -> None:
        """Keep what was measured, `so_far` seconds after the sitting began."""
        self._cases[case.name] = {**case.as_json(), "sitting": self._name}
        self._sittings[self._name]["took_seconds"] = round(so_far, 1)
        self._write()

    def failed(self, plan: Plan, reason: str) -> None:
        """A case that failed, or had no time left, has no figures, not even older ones."""
        self._failures[plan.name] = {
            "what": plan.what,
            "reason": reason[:2000],
            "sitting": self._name,
        }
        self._write()

    def document(self) -> dict[str, Any]:
        used = {case["sitting"] for case in self._cases.values()} | {self._name}
        return {
            "sittings": {name: told for name, told in self._sittings.items() if name in used},
            "cases": sorted(self._cases.values(), key=lambda case: self._order.index(case["name"])),
            "failures": self._failures,
        }

    def _write(self) -> None:
        if self._file:
            self._file.write_text(json.dumps(self.document(), indent=1) + "\n")
