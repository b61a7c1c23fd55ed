"""Processes break where a test asks for it, and nowhere else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

SCRIPT = "from streamcore.failpoints import reach\nfor _ in range(3): reach('here'); print('on')"


def run(plan):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "STREAMCORE_FAILPOINT": plan},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("plan", "status", "passed"),
    [
        ("", 0, 3),
        ("there:kill", 0, 3),
        ("here:kill@2", -signal.SIGKILL, 1),
        ("there:kill, here:raise@3", 1, 2),
        ("here:sleep=0.01", 0, 3),
    ],
)
def test_a_process_breaks_at_the_named_point(plan, status, passed):
    done = run(plan)
    assert done.returncode == status
    if status >= 0:  # what a killed process had not flushed is gone
        assert done.stdout.count("on") == passed


def test_what_was_raised_names_the_point():
    assert run("here:raise").stderr.endswith("Failpoint: failpoint 'here'\n")
