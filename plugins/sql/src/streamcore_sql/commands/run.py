"""`streamcore run`: the statements of a script, as jobs one can watch."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command()
@click.argument("script", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--once", is_flag=True, help="Read what is there now, then end.")
def run(script: Path, once: bool) -> None:
    """Run the statements of SCRIPT."""
    from streamcore import StreamcoreError

    from ..jobs import Job
    from ..session import Session

    try:
        session = Session(name=script.stem, once=once)
        for outcome in session.run(script.read_text(encoding="utf-8"), script.name):
            if isinstance(outcome, Job) and once:
                outcome.wait()
        for job in session.jobs:
            job.wait()
    except StreamcoreError as error:
        click.echo(str(error), err=True)
        sys.exit(1)
