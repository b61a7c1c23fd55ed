"""Services end with the process that started them, even when that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from streamcore.testing.services import ServiceError
from streamcore.testing.services.process import Process, free_port, java
from streamcore.testing.services.watchdog import birth

PARENT = """
import sys, time
from streamcore.testing.services.process import Process, Workspace
home = Workspace("orphans")
child = Process("sleeper", ["sleep", "300"], home.path / "log")
print(child.pid, home.path, flush=True)
time.sleep(300)
"""


def until(holds, timeout=10):
    deadline = time.monotonic() + timeout
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_parent_takes_its_services_and_their_files_with_it(ending):
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        pid, home = parent.stdout.readline().split()
        assert birth(int(pid))
        os.kill(parent.pid, ending)
    assert until(lambda: birth(int(pid)) is None)
    assert until(lambda: not Path(home.decode()).exists())


def test_a_process_that_dies_shows_the_end_of_its_log(tmp_path):
    failing = Process("thing", ["sh", "-c", "echo no such luck; exit 3"], tmp_path / "log")
    with pytest.raises(ServiceError) as caught:
        failing.wait_until(lambda: False)
    assert str(caught.value) == "thing ended: status 3. Its log:\n  no such luck"


def test_the_excerpt_of_a_log_has_the_first_trouble_and_the_end(tmp_path):
    lines = [f"INFO {i}" for i in range(100)]
    lines[20] = "ERROR no disk"
    (tmp_path / "log").write_text("\n".join(lines))
    ended = Process("thing", ["true"], tmp_path / "log")
    ended.stop()
    shown = ended.excerpt().split("\n  ")
    assert shown[0] == "  ERROR no disk"
    assert shown[9:12] == ["INFO 29", "...", "INFO 85"]
    assert shown[-1] == "INFO 99"


def test_a_process_that_never_gets_ready_is_ended(tmp_path):
    hanging = Process("thing", ["sleep", "300"], tmp_path / "log")
    with pytest.raises(ServiceError, match=r"thing was not ready in 0\.2 s"):
        hanging.wait_until(lambda: False, timeout=0.2)
    assert not hanging.running


def test_the_preferred_port_is_taken_if_free():
    port = free_port()
    assert free_port(preferred=port) == port


def test_missing_java_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ServiceError) as caught:
        java()
    assert str(caught.value) == (
        "Java 17 or newer is needed to run this service; "
        f"JAVA_HOME is '{tmp_path}', but has no bin/java."
    )
