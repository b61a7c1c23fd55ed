"""The `debezium-avro-confluent` format: Debezium's envelopes, with their schemas in a registry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from streamcore import Decoder, Encoder, OptionError, Problem

from .settings import RegistryFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from .schema import Type


class DebeziumAvroConfluent(RegistryFormat):
    """Changes captured by Debezium, in Avro with schemas in a Confluent-compatible registry."""

    identifier = "debezium-avro-confluent"
    changelog = True

    def schema_problems(self, schema: pa.Schema, *, writing: bool) -> Iterator[Problem | str]:
        yield from self._problems_of(schema)
        if writing:
            yield from self.subject_problems()

    def decoder(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        metadata: Sequence[str] = (),
    ) -> Decoder:
        from .envelopes import EnvelopeDecoder

        wanted = [schema.field(name) for name in (schema.names if columns is None else columns)]
        return EnvelopeDecoder(self.settings(), self._avro(schema)[1], wanted)

    def encoder(self, schema: pa.Schema) -> Encoder:
        from .envelopes import EnvelopeEncoder

        text, avro = self._avro(schema)
        return EnvelopeEncoder(self.settings(), self.required_subject(), text, avro, schema)

    def _avro(self, schema: pa.Schema) -> tuple[str, Type]:
        from .schema import parse

        if problems := list(self._problems_of(schema)):
            raise OptionError(f"format '{self.identifier}'", problems)
        text = self.schema_text or self._derived(schema)[0]
        return text, parse(text)

    def _problems_of(self, schema: pa.Schema) -> Iterator[Problem]:
        if self.schema_text is None:
            yield from self._derived(schema)[1]
        else:
            from .derive import mismatches
            from .envelopes import envelope
            from .schema import parse

            avro = parse(self.schema_text)
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
