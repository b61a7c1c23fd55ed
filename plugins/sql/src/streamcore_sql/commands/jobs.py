"""`streamcore jobs` and `streamcore stop`: what runs and ran on this machine, and an end to it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from streamcore.cli.output import formats, print_columns, print_json
from streamcore.cli.status import BAD_INPUT, FAILED, OK

if TYPE_CHECKING:
    from ..monitoring.jobfiles import JobFile

_COLOURS = {"running": "green", "failed": "red", "died": "red", "stopped": "yellow"}
_HEAD = ("NAME", "STATE", "PID", "STARTED", "BATCH", "LAG", "CHECKPOINT", "ERROR")
_POLL = 0.1


@click.command()
@formats()
def jobs(output: str) -> int:
    """List the jobs that run and ran on this machine, the latest first."""
    from ..monitoring.jobfiles import every

    found = every()
    if output == "json":
        print_json([{**vars(job), "state": job.state} for job in found])
    elif not found:
        click.echo("no job has run on this machine yet", err=True)
    else:
        print_columns(_HEAD, [_row(job) for job in found], _COLOURS)
    return OK


def _row(job: JobFile) -> list[str]:
    from ..monitoring.wording import short

    batches = [str(int(query["batchId"])) for query in job.queries if "batchId" in query]
    waiting = [
        table["pendingRecords"]
        for query in job.queries
        for table in query["tables"]
        if "pendingRecords" in table
    ]
    folders = [str(query.get("checkpoint") or "") for query in job.queries]
    errors = [query["error"] for query in job.queries if query.get("error")]
    return [
        job.name,
        job.state,
        str(job.pid) if job.alive else "",
        time.strftime("%Y-%m-%d %H:%M", time.localtime(job.started)),
        ",".join(batches),
        short(sum(waiting)) if waiting else "",
        _shared(folders) if folders and all(folders) else "",
        (job.error or next(iter(errors), "")).partition("\n")[0],
    ]


def _shared(folders: Sequence[str]) -> str:
    """The folder that all of these are in, or all of them where there is none."""
    scheme, mark, _ = folders[0].rpartition("://")
    start = scheme + mark
    try:
        common = os.path.commonpath([folder.removeprefix(start) for folder in folders])
    except ValueError:  # some are here and some elsewhere
        common = ""
    alike = all(folder.startswith(start) for folder in folders) and common.strip("/")
    return start + common if alike else ", ".join(folders)


@click.command()
@click.argument("name")
@click.option("--timeout", default=120.0, show_default=True, help="Seconds to wait for the end.")
@formats()
def stop(name: str, timeout: float, output: str) -> int:
    """End the job NAME after the batch it is in, and wait until it has ended."""
    from ..monitoring.jobfiles import find

    job = find(name)
    if job is None or not job.alive:
        _complain(name, job)
        return BAD_INPUT if job is None else FAILED
    as_json = output == "json"
    if not _terminate(job):
        if as_json:
            print_json({"job": name, "pid": job.pid, "ended": "by itself"})
        else:
            click.echo(f"job '{name}' ended by itself", err=True)
        return OK
    deadline = time.monotonic() + timeout
    while job.alive and time.monotonic() < deadline:
        time.sleep(_POLL)
    if job.alive:
        click.echo(
            f"job '{name}' (pid {job.pid}) was told to stop and still finishes its batch after "
            f"{timeout:g} s",
            err=True,
        )
        return FAILED
    if as_json:
        print_json({"job": name, "pid": job.pid, "ended": "stopped"})
    else:
        click.echo(f"job '{name}' stopped")
    return OK


def _complain(name: str, job: JobFile | None) -> None:
    from ..errors import did_you_mean
    from ..monitoring.jobfiles import every

    running = [each.name for each in every() if each.alive]
    if job is not None:
        ended = time.strftime("%Y-%m-%d %H:%M", time.localtime(job.ended or job.updated))
        told = f"job '{name}' does not run: it {job.state} at {ended}"
        told = told.replace("it running", "it was last seen")
    else:
        hint = did_you_mean(name, running)
        told = f"no job '{name}' has run on this machine" + (f". {hint}" if hint else "")
    names = ", ".join(f"'{each}'" for each in running) or "none"
    click.echo(f"streamcore: {told}\nRunning: {names}", err=True)


def _terminate(job: JobFile) -> bool:
    """Ask a process to end, and no other one that has got its pid; False if it is gone."""
    pidfd_open: Any = getattr(os, "pidfd_open", None)
    send: Any = getattr(signal, "pidfd_send_signal", None)
    try:
        if pidfd_open is None or send is None:
            if job.alive:
                os.kill(job.pid, signal.SIGTERM)
            return True
        handle = pidfd_open(job.pid)
        try:
            if not job.alive:  # asked only now: the handle holds on to this very process
                return False
            send(handle, signal.SIGTERM)
        finally:
            os.close(handle)
    except ProcessLookupError:
        return False
    return True
