"""The format `ogg-json`: changes as Oracle GoldenGate writes them to Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamcore import Decoder, Encoder, MetadataKey

from .json_options import JsonOptions

if TYPE_CHECKING:
    import pyarrow as pa


class OggJson(JsonOptions):
    """Inserts, updates and deletes in GoldenGate's envelope of `before`, `after` and `op_type`."""

    identifier = "ogg-json"
    changelog = True
    metadata_keys = {  # noqa: RUF012 - read only
        "table": MetadataKey("STRING", "The table of the change, with its schema."),
        "primary-keys": MetadataKey("ARRAY<STRING>", "The columns of the table's primary key."),
        "ingestion-timestamp": MetadataKey(
            "TIMESTAMP_LTZ(6)", "When GoldenGate processed the change."
        ),
        "event-timestamp": MetadataKey(
            "TIMESTAMP_LTZ(6)", "When the change was made in the database."
        ),
    }

    def decoder(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        metadata: Sequence[str] = (),
    ) -> Decoder:
        from .changelog_formats import ogg
        from .changelog_read import changelog_decoder

        return changelog_decoder(self, ogg(), schema, columns, metadata, self.rules())

    def encoder(self, schema: pa.Schema) -> Encoder:
        from .changelog_write import ChangelogEncoder, images

        around = images("op_type", "I", "D", self.ignore_null_fields)
        return ChangelogEncoder(schema, self.style(), *around)
