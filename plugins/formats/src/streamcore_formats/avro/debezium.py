"""The `debezium-avro-confluent` format: Debezium's envelopes, with their schemas in a registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from streamcore import Decoder, Encoder, MetadataKey, Problem

from .registered import RegisteredFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from .schema import Type


class DebeziumAvroConfluent(RegisteredFormat):
    """Changes captured by Debezium, in Avro with schemas in a Confluent-compatible registry."""

    identifier = "debezium-avro-confluent"
    changelog = True
    metadata_keys = {  # noqa: RUF012 - read only
        "table": MetadataKey(
            "STRING", "The full name of the changed table, such as 'shop.public.orders'."
        ),
    }

    def decoder(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        metadata: Sequence[str] = (),
    ) -> Decoder:
        from .envelopes import EnvelopeDecoder

        wanted = [schema.field(name) for name in (schema.names if columns is None else columns)]
        return EnvelopeDecoder(self.settings(), self._avro(schema)[1], wanted, metadata)

    def _codec(self) -> tuple[Callable[..., Decoder], Callable[..., Encoder]]:
        from .envelopes import EnvelopeDecoder, EnvelopeEncoder

        return EnvelopeDecoder, EnvelopeEncoder

    def _mismatches(self, avro: Type, schema: pa.Schema) -> Iterator[Problem]:
        from .derive import mismatches
        from .envelopes import envelope

        record, nullable = avro.without_null()
        if record.kind != "record" or not nullable:
            wanted = "a union of null and a record with the fields before, after and op"
            yield Problem("schema", f"is {avro.label}, but must be {wanted}")
        else:
            yield from mismatches(record, envelope(schema))

    def _derived(self, schema: pa.Schema) -> tuple[str, list[Problem]]:
        from .derive import Derivation, compact
        from .envelopes import envelope

        derivation = Derivation(legacy_timestamps=True)
        record = derivation.record(envelope(schema), "record")
        return compact(["null", record]), _about_columns(derivation.problems)


def _about_columns(problems: Sequence[Problem]) -> list[Problem]:
    """Each column is in the envelope twice; one complaint about it is enough."""
    prefix = "before."
    return [
        Problem(problem.key.removeprefix(prefix), problem.trouble)
        for problem in problems
        if problem.key.startswith(prefix)
    ]
