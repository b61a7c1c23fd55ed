"""`streamcore run`: the statements of a script, as jobs one can watch."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from streamcore import StreamcoreError
from streamcore.cli.status import BAD_INPUT, FAILED, INTERRUPTED, OK

from ..errors import SqlError
from .interrupts import Interrupts
from .options import WEB_PORT, Given, place, read_script, session_options

if TYPE_CHECKING:
    from ..display import Display
    from ..launching import Planned
    from ..live import LiveRows
    from ..monitoring.surfaces import Surfaces
    from ..progress import Progress
    from ..session import Session
    from ..statements import Statement

_LOOK = 0.5


@click.command()
@click.argument("script", type=click.Path(allow_dash=True))
@click.option("--once", is_flag=True, help="Read what is there now, then end.")
@click.option("--dry-run", is_flag=True, help="Check and show the plan; start and keep nothing.")
@click.option(
    "--sample",
    "samples",
    metavar="TABLE",
    multiple=True,
    help="With --dry-run of a YAML job: show where this table would go.",
)
@click.option("--fresh", is_flag=True, help="Start over; old checkpoints are moved aside.")
@click.option("--name", default="", help="The job's name; by default the script's.")
@click.option(
    "--metrics-port",
    "metrics",
    metavar="[HOST:]PORT",
    callback=place,
    help="Serve metrics for Prometheus here, on loopback unless a host is given.",
)
@click.option(
    "--web",
    metavar="[[HOST:]PORT]",
    is_flag=False,
    flag_value=str(WEB_PORT),
    callback=place,
    help=f"Serve a page about the job here; port {WEB_PORT} on loopback if none is given.",
)
@click.option("--otel", is_flag=True, help="Export metrics to where OTEL_* variables say.")
@session_options
def run(
    script: str,
    once: bool,
    dry_run: bool,
    samples: Sequence[str],
    fresh: bool,
    name: str,
    metrics: str | None,
    web: str | None,
    otel: bool,
    output: str,
    given: Given,
) -> int:
    """Run the statements of SCRIPT, and watch the jobs it starts.

    Everything is checked before the first job starts. A job goes on where it stopped the last
    time. Ctrl-C lets the batch at hand finish, then stops; a second one stops at once.
    """
    text, shown = read_script(script)
    if name:  # wins over what a job file says
        given = replace(given, settings=[("pipeline.name", name), *given.settings])
    name = name or Path(shown).stem
    return run_script(
        text,
        shown,
        name,
        given,
        path="" if script == "-" else str(Path(script).resolve()),
        as_json=output == "json",
        once=once,
        dry_run=dry_run,
        samples=samples,
        fresh=fresh,
        metrics=metrics,
        web=web,
        otel=otel,
    )


def run_script(
    text: str,
    shown: str,
    name: str,
    given: Given,
    *,
    path: str = "",
    as_json: bool = False,
    once: bool = False,
    dry_run: bool = False,
    samples: Sequence[str] = (),
    fresh: bool = False,
    metrics: str | None = None,
    web: str | None = None,
    otel: bool = False,
) -> int:
    """Run the statements of a text and return the exit status."""
    from ..display import display_for
    from ..monitoring.surfaces import Surfaces

    display = display_for(as_json=as_json, terminal=sys.stderr.isatty())
    session = given.session(name=name, once=once, fresh=fresh, dry=dry_run)
    interrupts = Interrupts()
    interrupts.install()
    try:
        planned = _prepare(session, text, shown, given, display, dry_run, samples)
        interrupts.install()
        if dry_run:
            return OK
        title = session.settings.job_name or name
        surfaces = Surfaces(title, shown, lambda: session.jobs, metrics, web, otel=otel, path=path)
        with surfaces.shown(display.say, display.note):
            return surfaces.ended(_run(session, planned, display, interrupts, surfaces))
    except StreamcoreError as error:
        display.close()
        session.stop()
        display.error(traceback.format_exc() if given.verbose else str(error))
        return BAD_INPUT if isinstance(error, SqlError) else error.exit_code
    except KeyboardInterrupt:
        return _stop(session, display, interrupts)
    finally:
        display.close()


def _prepare(
    session: Session,
    text: str,
    shown: str,
    given: Given,
    display: Display,
    dry: bool,
    samples: Sequence[str] = (),
) -> list[Planned]:
    """Check and plan everything; nothing is kept, started or said to be done if any is wrong."""
    from ..results import Text

    outcomes: list[Any] = []

    def start() -> None:
        given.start_spark(session, session.settings.job_name or shown, display.say)

    with session.catalog.held():
        if shown.lower().endswith((".yaml", ".yml")):
            from ..ingestion.planning import prepare_job

            job = prepare_job(session, text, shown, start, dry=dry, samples=samples)
            planned: list[Planned] = [job]
            notes: list[str] = []
        else:
            from .. import preflight

            statements = session.parse(text, shown)
            notes = preflight.check(statements, given.session(dry=True))
            planned = _plan(session, statements, start, outcomes)
        for each in planned:
            notes += each.check()
    if not (planned or outcomes):
        display.say("nothing to run")
    for outcome in outcomes:
        display.result(outcome)
    if dry:
        for each in planned:
            display.result(Text(each.text(details=given.verbose, options=True)))
    for note in dict.fromkeys(notes):
        display.note(note)
    return planned


def _plan(
    session: Session,
    statements: Sequence[Statement],
    start_spark: Callable[[], None],
    outcomes: list[Any],
) -> list[Planned]:
    """Run what only changes the session, and plan the rest as far as it can be planned."""
    from ..statements import CreateTable, needs_spark

    planned: list[Planned] = []
    problems: list[SqlError] = []
    started = False
    for statement in statements:
        if not started and needs_spark(statement):
            start_spark()
            started = True
        try:
            if (found := session.prepare(statement)) is not None:
                planned.append(found)
            else:
                outcomes.append(session.run_statement(statement))
        except SqlError as problem:
            problems.append(problem)
            if isinstance(statement, CreateTable):  # what follows would miss it
                break
    if problems:
        raise SqlError.together(problems)
    return planned


def _run(
    session: Session,
    planned: list[Planned],
    display: Display,
    interrupts: Interrupts,
    surfaces: Surfaces,
) -> int:
    from ..jobs import Job
    from ..live import LiveRows

    for each in planned:
        outcome = session.start(each)
        if isinstance(outcome, Job):
            surfaces.look(session.jobs)
        if isinstance(outcome, LiveRows):
            _print(outcome, display)
        elif not isinstance(outcome, Job):
            display.result(outcome)
        elif session.settings.waits:
            status = _watch(session, [outcome], display, interrupts, surfaces)
            if status:
                return status
    return _watch(session, session.jobs, display, interrupts, surfaces)


def _print(rows: LiveRows, display: Display) -> None:
    """Print the changes of a SELECT on a stream, as they come."""
    for change in rows:
        display.change(change)


def _watch(
    session: Session,
    jobs: list[Any],
    display: Display,
    interrupts: Interrupts,
    surfaces: Surfaces,
) -> int:
    """Show how jobs go until all are over, or one fails and takes the others with it."""
    interrupts.jobs_run()
    while not interrupts.count:
        over = all(job.status != "running" for job in jobs)  # before the look, which tells of it
        if looks := _looks(jobs):
            display.progress(looks)
            surfaces.look(session.jobs)
        failed = next((job for job in jobs if job.status == "failed"), None)
        if failed is not None:
            display.close()
            session.stop()
            display.error(f"job '{failed.name}' failed: {failed.error}")
            return FAILED
        if over:
            for job in jobs:
                job.wait()
            return OK
        time.sleep(_LOOK)
    return _stop(session, display, interrupts)


def _looks(jobs: Sequence[Any]) -> list[Progress]:
    from ..progress import Watch

    watch = Watch()
    return [look for job in jobs for look in watch.look(job)]


def _stop(session: Session, display: Display, interrupts: Interrupts) -> int:
    display.close()
    interrupts.jobs_run()
    if any(job.status == "running" for job in session.jobs):
        display.say("stopping after the batch at hand; Ctrl-C again stops at once")
    session.stop(interrupts.twice)
    if session.jobs:  # the batch at hand has finished since they were looked at
        display.progress(_looks(session.jobs))
        display.close()
    display.say("stopped")
    return INTERRUPTED
