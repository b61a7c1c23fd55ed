"""What the formats with schemas in a registry share: from a table to its schema, and to a codec."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from streamcore import Decoder, Encoder, OptionError, Problem

from .settings import RegistryFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from .schema import Type


class RegisteredFormat(RegistryFormat):
    """Base of them; not a format of its own."""

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
        wanted = [schema.field(name) for name in (schema.names if columns is None else columns)]
        return self._codec()[0](self.settings(), self._avro(schema)[1], wanted)

    def encoder(self, schema: pa.Schema) -> Encoder:
        text, avro = self._avro(schema)
        return self._codec()[1](self.settings(), self.required_subject(), text, avro, schema)

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
            from .schema import parse

            yield from self._mismatches(parse(self.schema_text), schema)

    def _codec(self) -> tuple[Callable[..., Decoder], Callable[..., Encoder]]:
        """What reads and what writes messages."""
        raise NotImplementedError

    def _mismatches(self, avro: Type, schema: pa.Schema) -> Iterator[Problem]:
        """Where a given schema does not fit the table."""
        raise NotImplementedError

    def _derived(self, schema: pa.Schema) -> tuple[str, list[Problem]]:
        """The schema of a table, and which of its columns have none."""
        raise NotImplementedError
