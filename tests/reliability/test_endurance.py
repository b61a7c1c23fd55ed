"""Thousands of batches leave nothing behind, and a full disk loses nothing."""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import subprocess
import time
from pathlib import Path

import pytest
from streamcore.testing.ledger import scenario
from streamcore.testing.services.listening import family

# --- leaks ----------------------------------------------------------------------------------


def usage(session):
    """Of its Python processes megabytes and threads; open files of all; threads of its JVM.

    Memory is what they have for themselves: of files that are mapped the system drops pages when
    others need memory, and reads them again. Spark's pools grow to more than a hundred threads
    before they are used again.
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
                memory += int(fields.get("RssAnon", "0").split()[0])
    return memory / 1024, files, threads, java


def live_heap(session):
    """Megabytes of what Spark's JVM cannot let go: its heap after a collection."""
    programs = {}
    for pid in family(session):
        with contextlib.suppress(OSError):  # of those that are gone
            programs[pid] = Path(os.readlink(f"/proc/{pid}/exe"))
    ((jvm, java),) = [each for each in programs.items() if each[1].name == "java"]
    command = [java.with_name("jcmd"), str(jvm), "GC.class_histogram"]  # needs a JDK
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return int(done.stdout.split()[-1]) / 2**20


def hourly(samples):
    """By how much a figure grows in an hour: the middle one of all slopes between two samples."""
    pairs = itertools.combinations(samples, 2)
    return 3600 * statistics.median((b - a) / (then - now) for (now, a), (then, b) in pairs)


def committed(copy):
    """The number of the last batch that is done."""
    return max(int(path.name) for path in (copy.checkpoint / "commits").glob("[0-9]*"))


@scenario(
    31,
    small={"minutes": 1, "batches": 100},
    full={"minutes": 60, "batches": 10_000},
    always=False,
    timeout=6 * 3600,
)
def test_batch_after_batch_leaves_memory_files_and_threads_as_they_were(broker, bench, scale):
    """The figures are those of the minutes after a warm-up, which takes a fifth of them more.

    There are always rows for the next batch, and few enough for it to be a short one.
    """
    bench = bench(broker)
    bench.ledger.keep_producer()
    bench.copy.start()
    bench.ledger.send(20)
    bench.copy.wait_batch()
    length, batches = 60 * scale.minutes, 0
    warm = time.monotonic() + length / 5
    samples, heaps, due, first = [], [], warm, None
    while (now := time.monotonic()) < warm + length or batches < scale.batches:
        bench.ledger.send(10)
        bench.copy.check()
        time.sleep(0.1)
        if now >= due:
            last = committed(bench.copy)
            first = last if first is None else first
            batches = last - first
            samples.append((now, *usage(bench.copy.leader)))
            if len(samples) % 10 == 1:
                heaps.append((now, live_heap(bench.copy.leader)))
            due = now + length / 200
    heaps.append((time.monotonic(), live_heap(bench.copy.leader)))
    bench.live.wait_for(bench.ledger.rows, 300, bench.copy.check)
    bench.verdict()
    third = len(samples) // 3
    early, late = samples[:third], samples[-third:]
    files, threads = (min(s[at] for s in late) - min(s[at] for s in early) for at in (2, 3))
    python, heap = hourly([each[:2] for each in samples]), hourly(heaps)
    scale.measured["batches after the warm-up"] = f"{batches:,}"
    scale.measured["memory of Python"] = f"{python:+.2f} MB/h to {samples[-1][1]:.0f} MB"
    scale.measured["heap of the JVM"] = f"{heap:+.2f} MB/h to {heaps[-1][1]:.0f} MB"
    scale.measured["files and threads"] = f"{files:+d}, {threads:+d}"
    scale.measured["threads of the JVM"] = str(max(each[4] for each in late))
    if scale.minutes >= 60:  # in less, the noise of an allocator looks like a slope
        assert python <= 1
        assert heap <= 1
    assert samples[-1][1] - samples[0][1] <= 10
    assert files <= 5
    assert threads <= 5
    assert max(each[4] for each in late) <= 500


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
        assert bench.copy.wait(scale.bound(60)) == 1, "a job that cannot keep its checkpoint ends"
        assert "No space left on device" in bench.copy.said()
        (outside / "ballast").unlink()
    bench.copy.start()
    bench.wait_for_all(600)
    bench.verdict()
