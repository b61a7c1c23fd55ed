"""Thousands of batches leave nothing behind, and a full disk loses nothing."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path

import pytest
from streamcore.testing.ledger import scenario
from streamcore.testing.services.listening import family

# --- leaks ----------------------------------------------------------------------------------


def usage(session):
    """Of its Python processes megabytes and threads; open files of all; threads of its JVM.

    Spark's pools grow to more than a hundred threads before they are used again.
    """
    memory = files = threads = java = 0
    for pid in family(session):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            status = Path(f"/proc/{pid}/status").read_text()
            fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
            files += len(os.listdir(f"/proc/{pid}/fd"))
            if "java" in fields["Name"]:
                java += int(fields["Threads"])
            else:
                threads += int(fields["Threads"])
                memory += int(fields.get("VmRSS", "0").split()[0])
    return memory / 1024, files, threads, java


@scenario(31, small={"batches": 40}, full={"batches": 10_000}, always=False)
def test_batch_after_batch_leaves_memory_files_and_threads_as_they_were(broker, bench, scale):
    """The first fifth is for warming up; garbage of a moment is told from growth by minima."""
    bench = bench(broker)
    bench.copy.start()
    samples, began = [], 0.0
    for batch in range(scale.batches):
        bench.ledger.send(20)
        bench.live.wait_for(bench.ledger.rows, 300, bench.copy.check)
        if batch == scale.batches // 5:
            began = time.monotonic()
        if batch >= scale.batches // 5:
            samples.append(usage(bench.copy.process.pid))
    hours = (time.monotonic() - began) / 3600
    bench.verdict()
    third = len(samples) // 3
    early, late = samples[:third], samples[-third:]
    grown = [min(row[at] for row in late) - min(row[at] for row in early) for at in range(4)]
    scale.measured["memory"] = f"{grown[0]:+.1f} MB in {hours:.2f} h"
    scale.measured["files and threads"] = f"{grown[1]:+d}, {grown[2]:+d}"
    scale.measured["threads of the JVM"] = f"{grown[3]:+d} to {max(row[3] for row in late)}"
    assert grown[0] <= max(10.0, hours), samples[:: max(1, len(samples) // 20)]
    assert grown[1] <= 5
    assert grown[2] <= 5
    assert max(row[3] for row in late) <= 500


# --- a full disk ----------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path):
    """A small disk of our own: how to enter where it is mounted, its path there, and from here."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = f"mount -t tmpfs -o size=64m none {place} && exec sleep 7200"
    holder = subprocess.Popen(["unshare", "-Urm", "sh", "-c", mount])
    outside = Path(f"/proc/{holder.pid}/root{place}")
    deadline = time.monotonic() + 30
    while not os.path.ismount(outside) and outside.stat().st_dev == tmp_path.stat().st_dev:
        assert holder.poll() is None, "a disk can be mounted in a namespace of one's own"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    enter = ["nsenter", "-t", str(holder.pid), "-U", "-m", "--preserve-credentials"]
    yield enter, place, outside
    holder.kill()
    holder.wait(10)


def fill(folder):
    with contextlib.suppress(OSError), (folder / "ballast").open("wb", buffering=0) as ballast:
        while ballast.write(b"x" * 4096):
            pass


@scenario(33, small={"rows": 2_000, "fills": 1}, full={"rows": 40_000, "fills": 20}, always=False)
def test_a_full_disk_ends_the_job_with_the_reason_and_loses_nothing(broker, bench, disk, scale):
    enter, place, outside = disk
    bench = bench(broker)
    bench.copy.wrapper, bench.copy.checkpoint = enter, place / "checkpoint"
    bench.ledger.send(scale.rows // 2)
    for _ in range(scale.fills):
        bench.copy.start()
        bench.wait_for_all(600)
        fill(outside)
        bench.ledger.send(scale.rows // 2 // scale.fills)
        assert bench.copy.wait(600) == 1, "a job that cannot keep its checkpoint ends"
        assert "No space left on device" in bench.copy.said()
        (outside / "ballast").unlink()
    bench.copy.start()
    bench.wait_for_all(600)
    bench.verdict()
