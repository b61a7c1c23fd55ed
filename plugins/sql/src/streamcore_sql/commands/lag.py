"""`streamcore lag`: how far a job or a table's consumer group is behind."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from streamcore import StreamcoreError
from streamcore.cli.output import print_columns, print_json
from streamcore.cli.status import BAD_INPUT, OK

from .options import Given, session_options

if TYPE_CHECKING:
    from ..monitoring.jobfiles import JobFile
    from ..monitoring.lags import Lag

_REPEAT = "pass --secrets, --var, --env-file and --catalog as 'streamcore run' got them"
_DECLARE = "declare the table in a folder, and ask for its lag with --catalog DIR"
_HEAD = ("JOB", "TABLE", "TOPIC", "PARTITION", "RECORDS", "TIME")


@click.command()
@click.argument("name")
@session_options
def lag(name: str, output: str, given: Given) -> int:
    """Print how far the job NAME is behind, or the consumer group of the table NAME.

    The offsets of the group are compared with the ends of its topics now; where a job has no group,
    its lag is told as of its last batch. Secrets are kept nowhere: they come from the job's file
    again, with --secrets and --var as 'run' got them. A table is looked up in the folder of
    --catalog.
    """
    from ..monitoring.jobfiles import every

    as_json = output == "json"
    jobs = every()
    found = next((job for job in jobs if job.name == name), None) or next(
        (job for job in jobs if any(query["job"] == name for query in job.queries)), None
    )
    if found is not None:
        return _of_job(found, name, given, as_json)
    if given.catalog is None:
        known = ", ".join(f"'{job.name}'" for job in jobs) or "none"
        click.echo(
            f"streamcore: no job '{name}' has run on this machine; there are: {known}.\n"
            "For a table, say where it is declared: --catalog DIR",
            err=True,
        )
        return BAD_INPUT
    return _of_table(given, name, as_json)


def _of_job(job: JobFile, name: str, given: Given, as_json: bool) -> int:
    from ..monitoring.lags import Lag

    queries = [each for each in job.queries if name in (job.name, each["job"])]
    lags: list[tuple[str, str, Lag]] = []
    as_of = time.time()
    for query in queries:
        for table in query["tables"]:
            now = _group_lag(table, job, given)
            if now is None and table.get("lag"):
                as_of = job.updated
            found = [Lag(**each) for each in table.get("lag", ())] if now is None else now
            lags += [(str(query["job"]), str(table["table"]), each) for each in found]
    if as_json:
        print_json({"job": name, "state": job.state, "as_of": as_of, "lag": _plain(lags)})
    else:
        age = max(time.time() - as_of, 0)
        when = "by its group's offsets now"
        if as_of == job.updated:
            when = f"by its own progress as of its last batch, {age:.0f} s ago"
        click.echo(f"job '{name}' is {job.state}; {when}", err=True)
        _print(lags)
    return OK


def _group_lag(table: Mapping[str, Any], job: JobFile, given: Given) -> list[Lag] | None:
    """What a table's group has yet to read; None where there is no group that could be asked."""
    from streamcore.registry import installed

    from ..monitoring.lags import Lag
    from ..monitoring.scrubbing import SECRETS

    kept = {key: text for key, text in table.get("options", {}).items() if key != "connector"}
    if table["side"] != "source" or "properties.group.id" not in kept:
        return None
    try:
        options = {**kept, **_hidden(kept, str(table["table"]), job, given)}
        connector: Any = installed().build("connector", table["connector"], options)
        return [Lag(topic, str(place), rows) for topic, place, rows in connector.group_lag()]
    except (StreamcoreError, AttributeError) as error:
        told = SECRETS.scrub(str(error))
        click.echo(f"the group of '{table['table']}' cannot be asked: {told}", err=True)
        return None


def _hidden(kept: Mapping[str, str], table: str, job: JobFile, given: Given) -> dict[str, str]:
    """The options of a table that hold secrets, which only the job's file can tell again."""
    from ..masking import MASK
    from ..monitoring.scrubbing import SECRETS
    from .job_options import source_options

    keys = [key for key, text in kept.items() if MASK in text]
    if not keys:
        return {}
    if not job.path:
        raise _secret(keys, f"job '{job.name}' was not run from a file; {_DECLARE}")
    try:
        told = source_options(job.path, given).get(table, {})
    except (StreamcoreError, click.UsageError) as error:
        reason = str(error).partition("\n")[0]
        raise _secret(keys, f"{reason}; {_REPEAT}") from error
    SECRETS.options(told)
    if missing := [key for key in keys if key not in told]:
        raise _secret(missing, f"'{job.path}' does not have it; {_REPEAT}")
    return {key: told[key] for key in keys}


def _secret(keys: Sequence[str], reason: str) -> StreamcoreError:
    wanted = ", ".join(f"'{key}'" for key in keys)
    return StreamcoreError(f"a secret is kept nowhere, {wanted} holds one, and {reason}")


def _of_table(given: Given, name: str, as_json: bool) -> int:
    from ..monitoring.lags import Lag
    from ..planner.binding import bind
    from ..statements import CreateTable, Name

    if given.catalog is not None and not given.catalog.is_dir():
        raise click.UsageError(f"--catalog: there is no folder '{given.catalog}'")
    session = given.session()
    entry = session.catalog.find(Name(tuple(name.split("."))))
    if not isinstance(entry, CreateTable):
        raise StreamcoreError(f"'{name}' is a view: only tables have a lag")
    connector: Any = bind(entry).connector
    if not hasattr(connector, "group_lag"):
        kind = connector.identifier
        raise StreamcoreError(f"table '{name}': connector '{kind}' keeps no group offsets")
    lags = [
        ("", name, Lag(topic, str(place), rows)) for topic, place, rows in connector.group_lag()
    ]
    if as_json:
        print_json({"table": name, "as_of": time.time(), "lag": _plain(lags)})
    else:
        _print(lags)
    return OK


Known = Sequence[tuple[str, str, "Lag"]]
"""The query, the table and one of its places."""


def _plain(lags: Known) -> list[dict[str, Any]]:
    return [
        {"job": job, "table": table, **each.to_json()}
        if job
        else {"table": table, **each.to_json()}
        for job, table, each in lags
    ]


def _print(lags: Known) -> None:
    from ..monitoring.wording import span

    if not lags:
        click.echo("nothing is known of its lag", err=True)
        return
    rows = [
        [
            job,
            table,
            each.topic,
            each.place,
            "" if each.rows is None else f"{each.rows:,}",
            "" if each.seconds is None else span(each.seconds),
        ]
        for job, table, each in lags
    ]
    shown = slice(0 if any(job for job, *_ in lags) else 1, None)
    print_columns(_HEAD[shown], [row[shown] for row in rows])
    known = [each.rows for *_, each in lags if each.rows is not None]
    if known:
        click.echo(f"{sum(known):,} records in all", err=True)
