"""`streamcore schema`: the JSON Schema of YAML jobs."""

from __future__ import annotations

import click
from streamcore.cli.output import formats, print_json


@click.command()
@formats()
def schema(output: str) -> None:
    """Print the JSON Schema of YAML jobs, for editors that complete and check them.

    Save it beside a job, and begin the job with: # yaml-language-server: $schema=FILE
    """
    from streamcore.registry import installed

    from ..ingestion.json_schema import job_schema

    print_json(job_schema(installed()))
