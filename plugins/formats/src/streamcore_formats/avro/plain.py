"""The `avro` format: bare datums, laid out exactly as the table is declared."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from streamcore import Decoder, Encoder, Format, OptionError, Problem, option

if TYPE_CHECKING:
    import pyarrow as pa

    from .schema import Type


class Encoding(enum.Enum):
    """How a datum is written."""

    BINARY = "binary"
    JSON = "json"


class Avro(Format):
    """Bare Avro datums without framing; their schema is derived from the table's columns."""

    identifier = "avro"
    marks_nulls = True

    encoding: Encoding = option(
        "encoding", "Avro's binary encoding, or its JSON encoding.", default=Encoding.BINARY
    )
    legacy_timestamps: bool = option(
        "timestamp_mapping.legacy",
        "Write TIMESTAMP(3) as timestamp-millis, and no TIMESTAMP_LTZ. With false, TIMESTAMP is "
        "local-timestamp-millis or -micros, and TIMESTAMP_LTZ timestamp-millis or -micros.",
        default=True,
    )
    codec: str = option(
        "codec",
        "Compression of Avro files. Messages are not compressed, so this has no effect.",
        default="snappy",
    )

    def problems(self) -> Iterator[Problem | str]:
        known = ("null", "deflate", "snappy", "bzip2", "xz")
        if self.codec.lower() not in known:
            yield Problem("codec", f"'{self.codec}' is not one of {', '.join(known)}")

    def schema_problems(self, schema: pa.Schema, *, writing: bool) -> Iterator[Problem | str]:
        yield from self.derived(schema)[1]

    def decoder(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        metadata: Sequence[str] = (),
    ) -> Decoder:
        from .reading import PlainDecoder
        from .resolve import resolve_row

        avro = self._schema(schema)
        wanted = [schema.field(name) for name in (schema.names if columns is None else columns)]
        plan = resolve_row(avro, avro, wanted)
        if self.encoding is Encoding.JSON:
            from .jsonic import JsonDecoder

            return JsonDecoder(plan)
        return PlainDecoder(plan)

    def encoder(self, schema: pa.Schema) -> Encoder:
        from .writing import PlainEncoder

        avro = self._schema(schema)
        if self.encoding is Encoding.JSON:
            from .jsonic import JsonEncoder

            return JsonEncoder(schema, avro)
        return PlainEncoder(schema, avro)

    def _schema(self, schema: pa.Schema) -> Type:
        from .schema import parse

        text, problems = self.derived(schema)
        if problems:
            raise OptionError("format 'avro'", problems)
        return parse(text)

    def derived(self, schema: pa.Schema) -> tuple[str, list[Problem]]:
        """The table's Avro schema, and which columns have none."""
        from .derive import Derivation, compact

        derivation = Derivation(legacy_timestamps=self.legacy_timestamps)
        return compact(derivation.record(schema, "record")), derivation.problems
