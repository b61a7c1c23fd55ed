"""The format `canal-json`: changes as Alibaba's Canal writes them to Kafka."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamcore import Decoder, Encoder, MetadataKey, option

from .json_options import JsonOptions

if TYPE_CHECKING:
    import pyarrow as pa


def _pattern(text: str) -> str | None:
    try:
        re.compile(text)
    except re.error as error:
        return f"is not a regular expression: {error}"
    return None


class CanalJson(JsonOptions):
    """Inserts, updates and deletes in Canal's envelope of `data`, `old` and `type`."""

    identifier = "canal-json"
    changelog = True
    metadata_keys = {  # noqa: RUF012 - read only
        "database": MetadataKey("STRING", "The database of the change."),
        "table": MetadataKey("STRING", "The table of the change."),
        "sql-type": MetadataKey("MAP<STRING, INT>", "The JDBC type of every column."),
        "pk-names": MetadataKey("ARRAY<STRING>", "The columns of the table's primary key."),
        "ingestion-timestamp": MetadataKey("TIMESTAMP_LTZ(3)", "When Canal processed the change."),
        "event-timestamp": MetadataKey(
            "TIMESTAMP_LTZ(3)", "When the change was made in the database."
        ),
    }

    databases: str | None = option(
        "database.include",
        "Read only changes of databases whose whole name matches this regular expression.",
        default=None,
        check=_pattern,
    )
    tables: str | None = option(
        "table.include",
        "Read only changes of tables whose whole name matches this regular expression.",
        default=None,
        check=_pattern,
    )

    def decoder(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        metadata: Sequence[str] = (),
    ) -> Decoder:
        from .changelog_formats import canal
        from .changelog_read import changelog_decoder

        envelope = canal(self.databases, self.tables)
        return changelog_decoder(self, envelope, schema, columns, metadata, self.rules())

    def encoder(self, schema: pa.Schema) -> Encoder:
        from .changelog_write import ChangelogEncoder

        insert, delete = ('{"data":[', '],"type":"INSERT"}'), ('{"data":[', '],"type":"DELETE"}')
        return ChangelogEncoder(schema, self.style(), insert, delete)
