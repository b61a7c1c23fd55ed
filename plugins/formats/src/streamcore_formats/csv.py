"""The format `csv`: one record per message, columns by position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from streamcore import Decoder, Encoder, Format, Problem, option

from .escapes import unescaped

if TYPE_CHECKING:
    import pyarrow as pa


def _one_character(text: str) -> str | None:
    return None if len(text) == 1 else "must be a single character"


def _one_unescaped(text: str) -> str | None:
    return _one_character(unescaped(text))


class Csv(Format):
    """Comma-separated values, one row per message, without a header."""

    identifier = "csv"

    field_delimiter: str = option(
        "field-delimiter",
        r"The character between fields; escapes such as '\t' and '\u0001' are understood.",
        default=",",
        check=_one_unescaped,
    )
    no_quotes: bool = option(
        "disable-quote-character", "Neither read nor write quotes.", default=False
    )
    quote_character: str | None = option(
        "quote-character",
        "The character around a field that holds delimiters; the double quote unless set.",
        default=None,
        check=_one_character,
    )
    allow_comments: bool = option(
        "allow-comments", "Skip lines that start with '#' when reading.", default=False
    )
    ignore_parse_errors: bool = option(
        "ignore-parse-errors",
        "Read fields that cannot be parsed as NULL, and drop records that are malformed, instead "
        "of rejecting the message.",
        default=False,
    )
    array_delimiter: str = option(
        "array-element-delimiter",
        "The character between the elements of an ARRAY and the fields of a ROW.",
        default=";",
        check=_one_character,
    )
    escape_character: str | None = option(
        "escape-character",
        "The character that takes away the meaning of the next one.",
        default=None,
        check=_one_character,
    )
    null_literal: str | None = option(
        "null-literal", "The text that stands for NULL, read and written.", default=None
    )
    scientific_decimals: bool = option(
        "write-bigdecimal-in-scientific-notation",
        "Write decimals without trailing zeros, 100000 as 1E+5; else with all digits of their "
        "scale.",
        default=False,
    )
    trim_spaces: bool = option(
        "trim-spaces", "Take blanks off both ends of unquoted fields when reading.", default=False
    )
    ignore_extra: bool = option(
        "ignore-trailing-unmappable", "Ignore fields beyond the last column.", default=False
    )
    allow_trailing_comma: bool = option(
        "allow-trailing-comma", "Let a record end with a delimiter.", default=True
    )
    fail_on_missing: bool = option(
        "fail-on-missing-columns",
        "Treat a record with too few fields as malformed even when parse errors are ignored.",
        default=False,
    )
    empty_is_null: bool = option(
        "empty-string-as-null", "Read an empty field as NULL.", default=False
    )

    @property
    def delimiter(self) -> str:
        """The field delimiter with its escapes resolved."""
        return unescaped(self.field_delimiter)

    @property
    def quote(self) -> str | None:
        """The quote character in force."""
        return None if self.no_quotes else self.quote_character or '"'

    def problems(self) -> Iterator[Problem | str]:
        if self.no_quotes and self.quote_character is not None:
            yield Problem("quote-character", "cannot be set while quotes are disabled")

    def decoder(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        metadata: Sequence[str] = (),
    ) -> Decoder:
        from .csv_read import csv_decoder

        return csv_decoder(self, schema, columns)

    def encoder(self, schema: pa.Schema) -> Encoder:
        from .csv_write import CsvEncoder

        return CsvEncoder(self, schema)

    def schema_problems(self, schema: pa.Schema, *, writing: bool) -> Iterator[Problem | str]:
        for field in schema:
            yield from _problems(field, field.name, nested=False)


def _problems(field: pa.Field, path: str, *, nested: bool) -> Iterator[Problem]:
    import pyarrow as pa
    from streamcore.types import sql_text

    kind = field.type
    if pa.types.is_map(kind):
        yield Problem(path, f"CSV cannot carry {sql_text(field).split('<')[0]}")
    elif pa.types.is_nested(kind):
        if nested:
            yield Problem(path, "CSV carries ARRAY and ROW of simple types only, one level deep")
            return
        for position in range(kind.num_fields):
            child = kind.field(position)
            yield from _problems(child, f"{path}.{child.name}", nested=True)
    elif pa.types.is_time64(kind):
        yield Problem(path, f"CSV carries TIME up to precision 3, not {sql_text(field)}")
