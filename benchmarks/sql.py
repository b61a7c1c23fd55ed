"""SQL: what it costs over the DataFrame it becomes, and what reading fewer columns saves.

`python -m benchmarks.sql` measures the parser alone; its budget is 2 s of CPU for 1,000 tables.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

from .data import COLUMNS
from .measure import BenchmarkError, Plan, Run
from .setting import Setting

ALL, NARROW = tuple(COLUMNS), ("user_id", "behavior")
TABLES, BUDGET = 1000, 2.0
NOTE = (
    "The pace is that of the batches; what it takes to plan and start the query stands beside it."
)


def cases(setting: Setting) -> Iterator[Plan]:
    """All columns through SQL and without it, then two columns of eight and all of them."""
    times = (setting.runs, setting.warmups)

    def read(job: str, columns: tuple[str, ...], rows: int) -> Callable[[], Run]:
        source = {"servers": setting.servers, "topic": setting.topic("json", rows)}
        return partial(setting.ours.run, f"sql_jobs.{job}", **source, columns=columns)

    def overhead(rows: int) -> dict[str, Callable[[], Run]]:
        return {"SQL": read("read_sql", ALL, rows), "DataFrame": read("read_frame", ALL, rows)}

    def narrow(rows: int) -> dict[str, Callable[[], Run]]:
        some, all_of_them = read("read_sql", NARROW, rows), read("read_sql", ALL, rows)
        return {"2 columns": some, "SELECT *": all_of_them}

    some, many = (min(setting.rows, share * setting.fewer) for share in (2, 4))
    for name, what, sides, rows in (
        ("sql-overhead", "SELECT * FROM {:,} messages, as SQL and as a DataFrame", overhead, some),
        ("sql-2-of-8", "SELECT 2 of 8 columns of {:,} messages, and all of them", narrow, many),
    ):
        measured, warming = partial(sides, rows), partial(sides, setting.sample)
        yield Plan(name, what.format(rows), measured, *times, note=NOTE, warming=warming)
    what = f"{TABLES:,} CREATE TABLEs parsed, per second of CPU (rows are statements)"
    yield Plan("sql-parse", what, lambda: {"streamcore": _parsed}, *times)


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
        raise BenchmarkError(f"{len(found)} of {tables} tables were read")
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
