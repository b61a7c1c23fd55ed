"""The format `table-changes`: rows of any tables as JSON text, out of changelog messages.

What YAML jobs read with: one pass takes a message apart, whatever tables and columns it is about.
Each row comes with its table, its kind and its shape; what its columns mean is decided later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from streamcore import Decoder, Encoder, Format, MetadataKey, Problem, option

if TYPE_CHECKING:
    import pyarrow as pa


class Envelope(Enum):
    """The changelog formats whose messages can be taken apart."""

    DEBEZIUM = "debezium-json"
    CANAL = "canal-json"
    MAXWELL = "maxwell-json"
    OGG = "ogg-json"


class TableChanges(Format):
    """Changes of many tables in one topic: each row as JSON text, with the table it belongs to."""

    identifier = "table-changes"
    changelog = True
    example_columns = ("row_text STRING",)
    metadata_keys = {  # noqa: RUF012 - read only
        "table": MetadataKey("STRING", "The full name of the table, such as 'shop.orders'."),
        "shape": MetadataKey(
            "STRING", "The row's columns as a JSON list: a letter for the JSON type, and the name."
        ),
        "primary-key": MetadataKey(
            "STRING", "The names of the key columns as a JSON list, if messages tell."
        ),
    }

    envelope: Envelope = option(
        "envelope", "Which changelog format the messages have.", default=Envelope.DEBEZIUM
    )
    schema_include: bool = option(
        "schema-include", "Debezium's messages hold their schema beside the payload.", default=False
    )
    ignore_parse_errors: bool = option(
        "ignore-parse-errors", "Drop messages that are no changes.", default=False
    )

    def decoder(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        metadata: Sequence[str] = (),
    ) -> Decoder:
        from .change_decoder import ChangeDecoder

        return ChangeDecoder(self, schema, columns, metadata)

    def encoder(self, schema: pa.Schema) -> Encoder:
        return _LastColumn()

    def schema_problems(self, schema: pa.Schema, *, writing: bool) -> Iterator[Problem | str]:
        if not writing and [str(field.type) for field in schema] != ["string"]:
            yield "'table-changes' reads one column, a STRING: the row as JSON"


class _LastColumn:
    """Writes what was encoded before; columns in front of it only help a partitioner."""

    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
        messages: list[bytes | None] = rows.columns[-1].to_pylist()
        return messages
