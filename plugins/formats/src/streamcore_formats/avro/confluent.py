"""The `avro-confluent` format: datums behind the id of the schema they were written with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from streamcore import Decoder, Encoder, OptionError, Problem

from .settings import RegistryFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from .schema import Type


class AvroConfluent(RegistryFormat):
    """Messages in Avro, each with the id of its schema in a Confluent-compatible registry."""

    identifier = "avro-confluent"

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
        from .framed import FramedDecoder

        wanted = [schema.field(name) for name in (schema.names if columns is None else columns)]
        return FramedDecoder(self.settings(), self._avro(schema)[1], wanted)

    def encoder(self, schema: pa.Schema) -> Encoder:
        from .framed import FramedEncoder

        text, avro = self._avro(schema)
        return FramedEncoder(self.settings(), self.required_subject(), text, avro, schema)

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
            from .schema import parse

            yield from mismatches(parse(self.schema_text), schema)

    def _derived(self, schema: pa.Schema) -> tuple[str, list[Problem]]:
        from .derive import Derivation, compact

        derivation = Derivation(legacy_timestamps=True)
        return compact(derivation.record(schema, "record")), derivation.problems
