"""`python -m benchmarks [--only NAME...] [--quick] [--json FILE]`, and what `--help` tells.

A name is that of a group or of a case. A case that fails is told and left out; the others go on.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from . import (
    assembly,
    command_line,
    consumer_loop,
    copying,
    format_cases,
    ingestion,
    kafka_sink,
    kafka_source,
    kinesis,
    latency,
    monitoring,
    page_views,
    scaling,
    sql,
    upsert,
)
from .figures import Figures
from .measure import Case, Plan
from .setting import Setting, sitting

GROUPS: dict[str, Callable[[Setting], Iterator[Plan]]] = {
    "kafka-source": kafka_source.cases,
    "consumer-loop": consumer_loop.cases,
    "kafka-sink": kafka_sink.cases,
    "copying": copying.cases,
    "page-views": page_views.cases,
    "upsert": upsert.cases,
    "latency": latency.cases,
    "sql": sql.cases,
    "kinesis": kinesis.cases,
    "formats": format_cases.cases,
    "scaling": scaling.cases,
    "ingestion": ingestion.cases,
    "monitoring": monitoring.cases,
    "assembly": assembly.cases,
    "command-line": command_line.cases,
}

FIRST = {
    *("source-json", "source-csv", "source-avro", "consumer-loop", "sink-json"),
    *("sink-exactly-once", "page-views", "latency-10", "command-list-plugins"),
    *("length-1000000", "length-10000000", "length-50000000"),
}
"""The cases that have figures to reach: should time run out, others are left out."""
CLOSER = {
    *("upsert-buffer", "upsert-normalize-50000", "upsert-normalize-1000000"),
    *("upsert-sink", "upsert-source", "upsert-restart", "sql-overhead", "sql-2-of-8"),
    *("ingestion", "ingestion-transform", "monitoring"),
    *("format-json-decode-uneven", "format-csv-decode-quoted", "format-csv-encode"),
    *("command-describe", "command-help"),
}
"""The cases without a peer or beside another of their kind: measured when asked for."""
QUICK = {
    *("source-json", "consumer-loop", "sink-json", "sink-exactly-once", "page-views"),
    *("upsert-sink", "latency-10", "sql-parse", "kinesis-source", "kinesis-sink"),
    *("format-json-decode", "format-csv-decode", "format-avro-decode", "format-json-encode"),
    *("scaling-16-partitions", "assembly", "command-list-plugins"),
}
"""The cases of a quick sitting, some of each kind."""


def main(arguments: list[str]) -> int:
    """Run the chosen cases, print their tables, and keep the figures; 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help=f"cases, or groups of them: {', '.join(GROUPS)}"
    )
    parser.add_argument(
        "--quick", action="store_true", help="smaller topics, fewer runs, some cases of each kind"
    )
    parser.add_argument(
        "--all", action="store_true", help="also the cases that compare ours with ours: an hour"
    )
    parser.add_argument("--no-flink", action="store_true", help="leave Flink SQL out")
    parser.add_argument(
        "--runs", type=int, help="how often each side is measured; 5, or 3 if quick"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        help="begin no case in the last tenth of this time; 45, or 8 if quick; none with --only "
        "or --all",
    )
    parser.add_argument("--rows", type=int, help="messages of the largest topic")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the figures to this file; those of cases that are not run are kept in it",
    )
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    began = time.monotonic()
    minutes = chosen.minutes or (
        math.inf if chosen.only or chosen.all else 8 if chosen.quick else 45
    )
    failed: dict[str, str] = {}
    late: list[str] = []
    with sitting(
        chosen.runs, chosen.rows, quick=chosen.quick, with_flink=not chosen.no_flink
    ) as setting:
        plans = every_plan(setting)
        wanted = list(_wanted(parser, plans, chosen))
        names = [[plan.name for plan in some] for some in (plans, wanted)]
        figures = Figures(arguments, chosen.json, *names)
        for plan in sorted(wanted, key=_turn):
            start = time.monotonic()
            if start - began > minutes * 60 * 0.93:  # what is last is short
                late.append(plan.name)
                figures.failed(plan, f"left out, because its {minutes:g} minutes were over")
                continue
            try:
                case = plan.measured()
            except Exception as failure:
                traceback.print_exc()
                failed[plan.name] = f"{type(failure).__name__}: {failure}"
                figures.failed(plan, failed[plan.name])
                setting.forget_the_dead()
                continue
            case.took = time.monotonic() - start
            print(table(case), flush=True)
            figures.add(case, time.monotonic() - began)
    whole, seconds = divmod(round(time.monotonic() - began), 60)
    print(f"\n{len(wanted) - len(late)} cases in {whole} min {seconds} s")
    if late:
        print(f"Left out, because {minutes:g} minutes were over: --only {' '.join(late)}")
    for name, reason in failed.items():
        print(f"FAILED {name}: {reason}")
    return 1 if failed else 0


def every_plan(setting: Setting) -> list[Plan]:
    """All cases in their order, each knowing its group."""
    found = []
    for name, group in GROUPS.items():
        for plan in group(setting):
            plan.group = name
            found.append(plan)
    return found


def _turn(plan: Plan) -> int:
    return 0 if plan.name in FIRST else 2 if plan.name in CLOSER else 1


def _wanted(
    parser: argparse.ArgumentParser, plans: list[Plan], chosen: argparse.Namespace
) -> Iterator[Plan]:
    known = {plan.name for plan in plans} | set(GROUPS)
    if unknown := sorted(set(chosen.only or ()) - known):
        parser.error(f"--only: no case or group is called {', '.join(unknown)}")
    for plan in plans:
        if chosen.only:
            wanted = plan.name in chosen.only or plan.group in chosen.only
        elif chosen.quick:
            wanted = plan.name in QUICK
        else:
            wanted = chosen.all or plan.name not in CLOSER
        if wanted:
            yield plan


def table(case: Case) -> str:
    """One case as text: a line per side."""
    lines = [f"\n{case.name}: {case.what} ({case.took:,.0f} s)"]
    for outcome in case.outcomes:
        against = ""
        if outcome is not case.outcomes[0]:
            by_cpu = case.cpu_ratio(outcome)
            against = f"ours is {case.ratio(outcome)}" + (f", by CPU {by_cpu}" if by_cpu else "")
        pace = f"{outcome.rate:>12,.0f} rows/s"
        cost = f"{outcome.cpu_per_million:8.2f} CPU s/M"
        if case.unit == "ms":
            pace = f"{outcome.milliseconds:>12,.1f} ms    "
            cost = f"{outcome.cpu_per_million / 1000:8.1f} CPU ms "
        more = "".join(f"  {name} {value:,.0f}" for name, value in outcome.extra.items())
        lines.append(
            f"  {outcome.side:22} {pace}  ±{outcome.spread:4.0%}  "
            f"{cost}  {outcome.peak_mb:6.0f} MB  {against}{more}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
