"""`streamcore infer`: a CREATE TABLE for a topic or stream, from a sample of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click
from streamcore.cli.output import formats, print_json
from streamcore.cli.status import FAILED, OK

from .options import pairs

_START = {
    "kafka": {"scan.startup.mode": "earliest-offset"},
    "kinesis": {"source.init.position": "TRIM_HORIZON"},
    "kinesis-legacy": {"scan.stream.initpos": "TRIM_HORIZON"},
}
"""Where each connector is told to begin; 'upsert-kafka' always does so."""


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
    help="An option of the table, such as aws.region=eu-west-1.",
)
@formats()
def infer(
    source: str,
    servers: str | None,
    connector: str,
    registry: str | None,
    sample: int,
    table: str | None,
    options: Sequence[tuple[str, str]],
    output: str,
) -> int:
    """Print a CREATE TABLE that reads SOURCE, judging by a sample of it.

    SOURCE is a topic; a stream's name for 'kinesis-legacy', its ARN for 'kinesis'. What is not
    certain stands behind as a comment.
    """
    from ..inference.detection import detect
    from ..inference.registry import registry_at
    from ..inference.sampling import address
    from ..inference.sampling import sample as take
    from ..inference.statement import create_table

    given = {"connector": connector, **_named(connector, source, dict(options)), **dict(options)}
    if servers:
        given["properties.bootstrap.servers"] = servers
    is_kafka = "kafka" in connector
    if is_kafka and "properties.bootstrap.servers" not in given:
        raise click.UsageError("which brokers to ask is missing: give --servers HOST:PORT.")
    kept = {**_START.get(connector, {}), **given}
    read = {key: value for key, value in kept.items() if key != "connector"}
    if connector == "upsert-kafka":
        read = {"topic": given["topic"], **address(given)}
    if is_kafka:
        read = {**_START["kafka"], **read, "scan.bounded.mode": "latest-offset"}
    messages = take("kafka" if is_kafka else connector, read, sample)
    if not messages:
        click.echo(f"'{source}' has no messages to judge by", err=True)
        return FAILED
    if connector == "upsert-kafka" and any(message.key is None for message in messages):
        text = f"'{source}' has messages without a key, which 'upsert-kafka' cannot read"
        click.echo(f"{text}. Leave --connector out.", err=True)
        return FAILED
    known = registry_at(registry, given) if registry else None
    guess = detect([m.value for m in messages], known)
    if registry and guess.format.endswith("avro-confluent"):
        guess.options[f"{guess.format}.url"] = registry
    for key in [key for key in kept if key.startswith(f"{guess.format}.")]:
        guess.options[key] = kept.pop(key)
    name = table or source.rpartition("/")[2].replace(".", "_")
    text = create_table(name, kept, guess, messages)
    if output == "json":
        print_json({"table": name, "messages": len(messages), "statement": text})
    else:
        click.echo(f"-- from {len(messages)} messages of {source!a}")
        click.echo(text)
    return OK


def _named(connector: str, source: str, given: Mapping[str, str]) -> dict[str, str]:
    """The option that says what a connector reads, unless it was given."""
    if "stream.arn" in given:
        return {}
    if connector == "kinesis":
        if not source.startswith("arn:"):
            raise click.UsageError(
                f"'{source}' is not the ARN of a stream, which connector 'kinesis' reads by; write "
                f"arn:aws:kinesis:REGION:ACCOUNT:stream/{source}, or --connector kinesis-legacy"
            )
        return {"stream.arn": source}
    return {"topic" if "kafka" in connector else "stream": source}
