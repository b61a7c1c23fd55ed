"""`python -m benchmarks [--only NAME...] [--quick] [--runs N] [--no-flink] [--json FILE]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from . import (
    assembly,
    command_line,
    copying,
    format_cases,
    kafka_sink,
    kafka_source,
    kinesis,
    latency,
    page_views,
    scaling,
    sql,
    upsert,
)
from .measure import Case
from .setting import Setting, sitting

GROUPS: dict[str, Callable[[Setting], Iterator[Case]]] = {
    "kafka-source": kafka_source.cases,
    "kafka-sink": kafka_sink.cases,
    "copying": copying.cases,
    "page-views": page_views.cases,
    "upsert": upsert.cases,
    "latency": latency.cases,
    "sql": sql.cases,
    "kinesis": kinesis.cases,
    "formats": format_cases.cases,
    "scaling": scaling.cases,
    "assembly": assembly.cases,
    "command-line": command_line.cases,
}


def main() -> None:
    """Run the chosen groups, print their tables, and keep the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--only", nargs="*", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--quick", action="store_true", help="smaller topics and fewer runs")
    parser.add_argument("--no-flink", action="store_true", help="leave Flink SQL out")
    parser.add_argument(
        "--runs", type=int, help="how often each side is measured; 5, or 3 if quick"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    chosen = parser.parse_args()
    found: list[Case] = []
    with sitting(chosen.runs, quick=chosen.quick, with_flink=not chosen.no_flink) as setting:
        for name in chosen.only:
            began = time.monotonic()
            for case in GROUPS[name](setting):
                case.took, began = time.monotonic() - began, time.monotonic()
                print(table(case), flush=True)
                found.append(case)
                if chosen.json:  # kept as it grows: a sitting is long
                    chosen.json.write_text(json.dumps(document(found), indent=1) + "\n")


def table(case: Case) -> str:
    """One case as text: a line per side."""
    lines = [f"\n{case.what} ({case.took:,.0f} s)"]
    for outcome in case.outcomes:
        against = "" if outcome is case.outcomes[0] else f"ours is {case.verdict(outcome)}"
        pace = f"{outcome.rate:>12,.0f} rows/s"
        cost = f"{outcome.cpu_per_million:8.2f} CPU s/M"
        if case.unit == "ms":
            pace = f"{outcome.milliseconds:>12,.1f} ms    "
            cost = f"{outcome.cpu_per_million / 1000:8.1f} CPU ms "
        more = "".join(f"  {name} {value:,.0f}" for name, value in outcome.extra.items())
        lines.append(
            f"  {outcome.side:14} {pace}  ±{outcome.spread:4.0%}  "
            f"{cost}  {outcome.peak_mb:6.0f} MB  {against}{more}"
        )
    return "\n".join(lines)


def document(cases: list[Case]) -> dict[str, object]:
    """The figures with what they were measured on."""
    names = ("streamcore", "pyspark", "pyarrow", "confluent-kafka")
    return {
        "command": "python -m benchmarks " + " ".join(sys.argv[1:]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}",
        "versions": {name: version(name) for name in names},
        "cases": [case.as_json() for case in cases],
    }


if __name__ == "__main__":
    main()
