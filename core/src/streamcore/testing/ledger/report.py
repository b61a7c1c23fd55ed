"""A pytest plugin: one line for each test of a soak, and its row in docs/reliability.md.

Tests may be shared out among processes (pytest-xdist): the one that collects the results tells.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Generator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from .scenario import Scale

FILE = "STREAMCORE_RELIABILITY_REPORT"
BEGIN, END = "<!-- soak: begin -->", "<!-- soak: end -->"
HEAD = "| # | test | scale | result | seed | date |\n|---|---|---|---|---|---|\n"


@dataclass(frozen=True)
class Line:
    """What is told about one test."""

    number: int
    name: str
    scale: str
    result: str
    seed: int
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.name} · {self.scale} · {self.result} · seed {self.seed}"


_PROPERTY = "streamcore.soak"


def pytest_configure(config: pytest.Config) -> None:
    """Collect the lines, except where only a share of the tests is run."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Collector())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Generator[None, Any, Any]:
    """Note each scenario that has run, or that a service would not start for."""
    report = yield
    scale = getattr(item, "funcargs", {}).get("scale") or _asked_for(item)
    if isinstance(scale, Scale) and (call.when == "call" or report.failed):
        details = "; ".join(f"{name} {value}" for name, value in scale.measured.items())
        outcome = "passed" if report.passed else "FAILED"
        if call.when != "call":
            outcome += f" ({call.when})"
        result = f"{outcome} in {call.duration:.0f} s" + (f": {details}" if details else "")
        line = Line(scale.number, name_of(item), str(scale), result, scale.seed, call.duration)
        report.user_properties.append((_PROPERTY, asdict(line)))
    return report


class _Collector:
    """Writes each line when its test has ended: whoever stops a soak early keeps what was seen."""

    def __init__(self) -> None:
        self._lines: list[Line] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take the line of this phase of a test, if it has one."""
        for name, told in report.user_properties:
            if name == _PROPERTY:
                line = Line(**told)
                self._lines.append(line)
                if target := os.environ.get(FILE):
                    write(Path(target), [line])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the lines."""
        if not self._lines:
            return
        terminalreporter.section("reliability")
        for line in sorted(self._lines, key=lambda line: line.number):
            terminalreporter.write_line(str(line))
        together = sum(line.seconds for line in self._lines)
        terminalreporter.write_line(f"{len(self._lines)} tests in {together:.0f} s, services apart")


def _asked_for(item: Any) -> Any:
    """The scale of a test whose services did not start: it may not have been drawn yet."""
    return getattr(item, "callspec", None) and item.callspec.params.get("scale")


def name_of(item: Any) -> str:
    """The test's sentence, and of what it is told if there are several."""
    name = str(item.originalname).removeprefix("test_").replace("_", " ")
    others = re.sub(r"(^|-)(small|full)(?=-|$)", "", item.callspec.id).strip("-")
    return f"{name} ({others})" if others else name


def write(target: Path, lines: list[Line]) -> None:
    """Replace the rows of these tests between the markers; rows of others stay."""
    text = target.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    rows = _rows(table)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    for line in lines:
        cells = [str(line.number), line.name, line.scale, line.result, str(line.seed), today]
        row = "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"
        rows[_identity(row)] = row
    ordered = sorted(rows.items(), key=lambda item: (int(item[0][0]), item[0][1]))
    body = HEAD + "".join(f"{row}\n" for _, row in ordered)
    machine = f"Machine of the last run: {os.cpu_count()} cores, {_memory()}, {_system()}.\n"
    target.write_text(f"{before}{BEGIN}\n{body}\n{machine}{END}{after}", encoding="utf-8")


def seconds(target: Path) -> dict[str, int]:
    """How long each test took when it was last run, by its sentence."""
    table = target.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    told = {name: re.search(r"in (\d+) s", row) for (_, name), row in _rows(table).items()}
    return {name: int(found[1]) for name, found in told.items() if found}


def _rows(table: str) -> dict[tuple[str, str], str]:
    return {_identity(row): row for row in re.findall(r"^\| \d.*$", table, re.M)}


def _identity(row: str) -> tuple[str, str]:
    cells = [cell.strip() for cell in row.strip("|").split(" | ")]
    return cells[0], cells[1]


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def _system() -> str:
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
