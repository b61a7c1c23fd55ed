"""The options of the tables that a job's file reads, as `streamcore run` had them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from streamcore import Secret

from .options import Given, read_script

if TYPE_CHECKING:
    from ..session import Session

Options = Mapping[str, str]


def source_options(path: str, given: Given) -> dict[str, Options]:
    """By table, secrets and all; nothing is started or kept.

    Raises where the file, or a variable of it, is not there any more.
    """
    text, shown = read_script(path)
    session = given.session(dry=True)
    if shown.lower().endswith((".yaml", ".yml")):
        return _of_job_file(text, shown, session)
    from .. import preflight

    scans = preflight.reads(session.parse(text, shown), session)
    return {scan.bound.table.name: scan.bound.options for scan in scans}


def _of_job_file(text: str, shown: str, session: Session) -> dict[str, Options]:
    from ..ingestion.errors import Problems
    from ..ingestion.reading import read_job
    from ..ingestion.sources import plan_source

    problems = Problems()
    job = read_job(text, shown, session._variables, session._secrets, problems)
    plan = plan_source(job, problems) if job is not None else None
    if plan is None:
        raise problems.together()
    revealed = {
        key: value.reveal() if isinstance(value, Secret) else value
        for key, value in plan.options.items()
    }
    return {plan.table.name: revealed}
