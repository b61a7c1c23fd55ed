"""The format `maxwell-json`: changes as Maxwell writes them to Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamcore import Decoder, Encoder, MetadataKey

from .json_options import JsonOptions

if TYPE_CHECKING:
    import pyarrow as pa


class MaxwellJson(JsonOptions):
    """Inserts, updates and deletes in Maxwell's envelope of `data`, `old` and `type`."""

    identifier = "maxwell-json"
    changelog = True
    metadata_keys = {  # noqa: RUF012 - read only
        "database": MetadataKey("STRING", "The database of the change."),
        "table": MetadataKey("STRING", "The table of the change."),
        "primary-key-columns": MetadataKey(
            "ARRAY<STRING>", "The columns of the table's primary key."
        ),
        "ingestion-timestamp": MetadataKey(
            "TIMESTAMP_LTZ(3)", "When Maxwell processed the change, to the second."
        ),
    }

    def decoder(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        metadata: Sequence[str] = (),
    ) -> Decoder:
        from .changelog_formats import maxwell
        from .changelog_read import changelog_decoder

        return changelog_decoder(self, maxwell(), schema, columns, metadata, self.rules())

    def encoder(self, schema: pa.Schema) -> Encoder:
        from .changelog_write import ChangelogEncoder

        insert, delete = ('{"data":', ',"type":"insert"}'), ('{"data":', ',"type":"delete"}')
        return ChangelogEncoder(schema, self.style(), insert, delete)
