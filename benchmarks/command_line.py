"""`python -m benchmarks.command_line`: what the command line costs before it does anything.

The budget is 0.5 s of CPU for listing every plugin. Bytecode is kept, as pip leaves it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial

from .measure import Plan, Run
from .setting import Setting

BUDGET = 0.5
COMMANDS = (
    ["list-plugins"],
    ["describe", "partitioner", "fixed"],
    ["--help"],
)
RUNS = 7


def cases(setting: Setting) -> Iterator[Plan]:
    """Each command alone; the time is CPU time."""
    for command in COMMANDS:
        what = f"`streamcore {' '.join(command)}`, CPU time"
        name = f"command-{command[0].strip('-')}"
        yield Plan(name, what, partial(_side, command), runs=RUNS, warmups=2, unit="ms")


def _side(command: list[str]) -> dict[str, Callable[[], Run]]:
    return {"streamcore": partial(_run, command)}


def _run(command: list[str]) -> Run:
    cpu = cpu_seconds(command, dict(os.environ))
    return Run(cpu, 1, cpu)


def main() -> int:
    """Print the least CPU time of several runs of each command; fail beyond the budget."""
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        costs = {
            " ".join(command): min(cpu_seconds(command, environment) for _ in range(RUNS))
            for command in COMMANDS
        }
    for command, cost in costs.items():
        print(f"streamcore {command:30} {cost:5.2f} s of CPU")
    listing = max(cost for command, cost in costs.items() if command.startswith("list-plugins"))
    verdict = "kept" if listing <= BUDGET else "missed"
    print(f"the budget of list-plugins is {BUDGET} s: {verdict}")
    return 0 if listing <= BUDGET else 1


def cpu_seconds(command: list[str], environment: dict[str, str]) -> float:
    """User and system time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "streamcore.cli", *command],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
