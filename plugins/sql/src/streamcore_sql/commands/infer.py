"""`streamcore infer`: a CREATE TABLE for a topic or stream, from a sample of it."""

from __future__ import annotations

from collections.abc import Sequence

import click
from streamcore.cli.status import FAILED, OK

from .options import pairs


@click.command()
@click.argument("source")
@click.option("--servers", metavar="HOST:PORT", help="Kafka brokers to ask first.")
@click.option("--connector", default="kafka", show_default=True, help="What SOURCE is read with.")
@click.option("--registry", metavar="URL", help="A schema registry that knows the schemas.")
@click.option("--sample", default=200, show_default=True, help="How many messages to look at.")
@click.option("--table", metavar="NAME", help="The table's name; by default the source's.")
@click.option(
    "--option",
    "options",
    metavar="KEY=VALUE",
    multiple=True,
    callback=pairs,
    help="An option of the connector, such as aws.region=eu-west-1.",
)
def infer(
    source: str,
    servers: str | None,
    connector: str,
    registry: str | None,
    sample: int,
    table: str | None,
    options: Sequence[tuple[str, str]],
) -> int:
    """Print a CREATE TABLE that reads SOURCE, a topic or stream, judging by a sample of it.

    What is not certain stands behind as a comment.
    """
    from ..inference.detection import detect
    from ..inference.registry import registry_at
    from ..inference.sampling import sample as take
    from ..inference.statement import create_table

    is_kafka = "kafka" in connector
    given = {"connector": connector, "topic" if is_kafka else "stream": source, **dict(options)}
    if servers:
        given["properties.bootstrap.servers"] = servers
    start = {"scan.startup.mode": "earliest-offset"} if is_kafka else {}
    reads = {k: v for k, v in {**start, **given}.items() if k != "connector"}
    bounded = {"scan.bounded.mode": "latest-offset"} if is_kafka else {}
    messages = take(connector, {**reads, **bounded}, sample)
    if not messages:
        click.echo(f"'{source}' has no messages to judge by", err=True)
        return FAILED
    guess = detect([m.value for m in messages], registry_at(registry) if registry else None)
    if registry and guess.format.endswith("avro-confluent"):
        guess.options[f"{guess.format}.url"] = registry
    kept = {**given, **start}
    click.echo(f"-- from {len(messages)} messages of '{source}'")
    click.echo(create_table(table or source.replace(".", "_"), kept, guess, messages))
    return OK
