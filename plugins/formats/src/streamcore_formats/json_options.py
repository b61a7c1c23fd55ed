"""The options that every JSON format shares, and the columns none of them can carry."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING

from streamcore import Format, Problem, option

if TYPE_CHECKING:
    import pyarrow as pa

    from .json_exact import Rules
    from .json_write import Style


class MapNullKey(Enum):
    """What becomes of a map entry whose key is NULL."""

    FAIL = "FAIL"
    DROP = "DROP"
    LITERAL = "LITERAL"


def _standard(text: str) -> str | None:
    if text in ("SQL", "ISO-8601"):
        return None
    return "is not one of SQL, ISO-8601 (upper and lower case matter)"


class JsonOptions(Format):
    """A format whose payload is JSON text; the base of `json` and of the changelog formats."""

    ignore_parse_errors: bool = option(
        "ignore-parse-errors",
        "Read what cannot be parsed as NULL, and drop messages that are no JSON, instead of "
        "rejecting the message.",
        default=False,
    )
    timestamp_standard: str = option(
        "timestamp-format.standard",
        "How timestamps are written: SQL is '2024-05-06 07:08:09.123', ISO-8601 has a 'T' between.",
        default="SQL",
        check=_standard,
    )
    map_null_key: MapNullKey = option(
        "map-null-key.mode",
        "What Flink does with a NULL key when it writes a map. Maps of Spark and Arrow have none, "
        "so nothing is left to do here.",
        default=MapNullKey.FAIL,
    )
    map_null_literal: str = option(
        "map-null-key.literal", "The key Flink writes for NULL in mode LITERAL.", default="null"
    )
    plain_decimals: bool = option(
        "encode.decimal-as-plain-number",
        "Write decimals with all digits of their scale, never as 1E+2.",
        default=False,
    )
    ignore_null_fields: bool = option(
        "encode.ignore-null-fields", "Leave out fields that are NULL.", default=False
    )

    def schema_problems(self, schema: pa.Schema, *, writing: bool) -> Iterator[Problem | str]:
        for field in schema:
            yield from _problems(field, field.name)

    def rules(self) -> Rules:
        """How values are read; the changelog formats follow Flink's tree parser."""
        from .json_exact import Rules

        return Rules(
            ignoring=self.ignore_parse_errors, iso=self.timestamp_standard != "SQL", tree=True
        )

    def style(self) -> Style:
        """How values are written."""
        from .json_write import Style

        return Style(
            iso=self.timestamp_standard != "SQL",
            plain_decimals=self.plain_decimals,
            ignore_nulls=self.ignore_null_fields,
        )


def _problems(field: pa.Field, path: str) -> Iterator[Problem]:
    import pyarrow as pa

    kind = field.type
    if pa.types.is_map(kind) and not pa.types.is_string(kind.key_type):
        yield Problem(path, "JSON can only carry maps and multisets of STRING keys")
    for position in range(kind.num_fields):
        child = kind.field(position)
        if not pa.types.is_map(kind):
            yield from _problems(child, f"{path}.{child.name}")
            continue
        yield from _problems(kind.item_field, f"{path}.value")
        return
