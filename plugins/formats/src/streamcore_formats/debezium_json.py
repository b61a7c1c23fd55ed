"""The format `debezium-json`: changes as Debezium writes them to Kafka."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from streamcore import Decoder, Encoder, MetadataKey, Problem, option

from .json_options import JsonOptions

if TYPE_CHECKING:
    import pyarrow as pa


class DebeziumJson(JsonOptions):
    """Inserts, updates and deletes in Debezium's envelope of `before`, `after` and `op`."""

    identifier = "debezium-json"
    changelog = True
    metadata_keys = {  # noqa: RUF012 - read only
        "schema": MetadataKey("STRING", "The schema of the payload, where messages include it."),
        "ingestion-timestamp": MetadataKey(
            "TIMESTAMP_LTZ(3)", "When the connector processed the change."
        ),
        "source.timestamp": MetadataKey(
            "TIMESTAMP_LTZ(3)", "When the change was made in the database."
        ),
        "source.database": MetadataKey("STRING", "The database of the change."),
        "source.schema": MetadataKey("STRING", "The database schema of the change."),
        "source.table": MetadataKey("STRING", "The table of the change."),
        "source.properties": MetadataKey(
            "MAP<STRING, STRING>", "Everything the connector tells of the source, as text."
        ),
    }

    schema_include: bool = option(
        "schema-include",
        "Messages hold their schema beside the payload, as Kafka Connect's JSON converter writes "
        "them by default. For reading only.",
        default=False,
    )

    def schema_problems(self, schema: pa.Schema, *, writing: bool) -> Iterator[Problem | str]:
        yield from super().schema_problems(schema, writing=writing)
        if writing and self.schema_include:
            yield Problem("debezium-json.schema-include", "cannot be true for writing")

    def decoder(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        metadata: Sequence[str] = (),
    ) -> Decoder:
        from .changelog_formats import debezium
        from .changelog_read import changelog_decoder

        envelope = debezium(self.schema_include)
        return changelog_decoder(self, envelope, schema, columns, metadata, self.rules())

    def encoder(self, schema: pa.Schema) -> Encoder:
        from .changelog_write import ChangelogEncoder, images

        around = images("op", "c", "d", self.ignore_null_fields)
        return ChangelogEncoder(schema, self.style(), *around)
