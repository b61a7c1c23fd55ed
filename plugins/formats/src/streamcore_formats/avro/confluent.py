"""The `avro-confluent` format: datums behind the id of the schema they were written with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from streamcore import Decoder, Encoder, Problem

from .registered import RegisteredFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from .schema import Type


class AvroConfluent(RegisteredFormat):
    """Messages in Avro, each with the id of its schema in a Confluent-compatible registry."""

    identifier = "avro-confluent"

    def _codec(self) -> tuple[Callable[..., Decoder], Callable[..., Encoder]]:
        from .framed import FramedDecoder, FramedEncoder

        return FramedDecoder, FramedEncoder

    def _mismatches(self, avro: Type, schema: pa.Schema) -> Iterator[Problem]:
        from .derive import mismatches

        yield from mismatches(avro, schema)

    def _derived(self, schema: pa.Schema) -> tuple[str, list[Problem]]:
        from .derive import Derivation, compact

        derivation = Derivation(legacy_timestamps=True)
        return compact(derivation.record(schema, "record")), derivation.problems
