"""SQL: what it costs over the DataFrame it becomes, and what reading fewer columns saves.

`python -m benchmarks.sql` measures the parser alone; its budget is 2 s of CPU for 1,000 tables.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import partial

from .data import COLUMNS
from .measure import Case, Run, alternate
from .setting import Setting

ALL, NARROW = tuple(COLUMNS), ("user_id", "behavior")
TABLES, BUDGET = 1000, 2.0


def cases(setting: Setting) -> Iterator[Case]:
    """All columns through SQL and without it, then two columns of eight and all of them."""
    source = {"servers": setting.servers, "topic": setting.topic("json", setting.fewer)}
    read = partial(setting.ours.run, "sql_jobs.read_sql", **source)
    frame = partial(setting.ours.run, "sql_jobs.read_frame", **source)
    runs = {"runs": setting.runs, "warmups": setting.warmups}
    rows = f"{setting.fewer:,} JSON messages"
    yield alternate(
        "sql-overhead",
        f"SELECT * FROM a topic of {rows}, as SQL and as a DataFrame",
        {"SQL": partial(read, columns=ALL), "DataFrame": partial(frame, columns=ALL)},
        **runs,
    )
    yield alternate(
        "sql-2-of-8",
        f"SELECT 2 of {len(ALL)} columns of {rows}, and all of them",
        {"2 columns": partial(read, columns=NARROW), "SELECT *": partial(read, columns=ALL)},
        **runs,
    )
    yield alternate(
        "sql-parse",
        f"{TABLES:,} CREATE TABLEs parsed, per second of CPU (rows are statements)",
        {"streamcore": _parsed},
        runs=3,
        warmups=1,
    )


def _parsed() -> Run:
    cpu = parsing_cpu()
    return Run(cpu, TABLES, cpu)


def parsing_cpu(tables: int = TABLES) -> float:
    """Seconds of CPU that reading so many CREATE TABLEs takes."""
    from streamcore_sql import parse

    columns = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
    text = "".join(
        f"""CREATE TABLE t{number} ({columns}, p AS PROCTIME(),
          `at` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
          WATERMARK FOR `at` AS `at` - INTERVAL '5' SECOND
        ) WITH ('connector' = 'kafka', 'topic' = 't{number}', 'format' = 'json',
          'properties.bootstrap.servers' = 'localhost:9092',
          'scan.startup.mode' = 'earliest-offset');\n"""
        for number in range(tables)
    )
    start = time.process_time()
    found = parse(text)
    seconds = time.process_time() - start
    if len(found) != tables:
        raise SystemExit(f"{len(found)} of {tables} tables were read")
    return seconds


def main() -> int:
    """Print what parsing costs; fail beyond the budget."""
    seconds = min(parsing_cpu() for _ in range(3))
    verdict = "kept" if seconds <= BUDGET else "missed"
    print(
        f"{TABLES:,} CREATE TABLEs: {seconds:.2f} s of CPU; the budget of {BUDGET} s is {verdict}"
    )
    return 0 if seconds <= BUDGET else 1


if __name__ == "__main__":
    sys.exit(main())
