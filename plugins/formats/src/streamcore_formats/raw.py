"""The format `raw`: the message is the value of the table's only column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from streamcore import Decoder, Encoder, Format, Problem, option

from .escapes import unescaped

if TYPE_CHECKING:
    import pyarrow as pa


class Endianness(Enum):
    """Which byte of a number comes first."""

    BIG = "big-endian"
    LITTLE = "little-endian"


def _charset(name: str) -> str | None:
    try:
        "a".encode(name)
    except (LookupError, ValueError):
        return "is not the name of a charset; common ones are UTF-8, UTF-16, ISO-8859-1, GBK"
    return None


def _delimiter(text: str) -> str | None:
    return None if text else "is empty; leave the option out to read one value per message"


class Raw(Format):
    """Text, bytes, a number or a boolean as they are, in a table of one column."""

    identifier = "raw"
    example_columns = ("message STRING",)

    charset: str = option(
        "charset", "The charset of a STRING column.", default="UTF-8", check=_charset
    )
    endianness: Endianness = option(
        "endianness", "The byte order of a number.", default=Endianness.BIG
    )
    line_delimiter: str | None = option(
        "line-delimiter",
        "Splits a message into one row per part; also written after each value. Escapes such as "
        r"'\n' and '\u0001' are understood.",
        default=None,
        check=_delimiter,
    )

    @property
    def delimiter(self) -> str | None:
        """The line delimiter with its escapes resolved."""
        return None if self.line_delimiter is None else unescaped(self.line_delimiter)

    def decoder(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        metadata: Sequence[str] = (),
    ) -> Decoder:
        from .raw_codec import raw_decoder

        return raw_decoder(self, schema, columns)

    def encoder(self, schema: pa.Schema) -> Encoder:
        from .raw_codec import RawEncoder

        return RawEncoder(self, schema)

    def schema_problems(self, schema: pa.Schema, *, writing: bool) -> Iterator[Problem | str]:
        from streamcore.types import sql_text

        from .raw_codec import carries

        if len(schema) != 1:
            names = ", ".join(f"`{field.name}` {sql_text(field)}" for field in schema)
            yield f"'raw' carries exactly one column, the table has {len(schema)}: {names}"
        for field in schema:
            if not carries(field):
                yield Problem(field.name, f"'raw' does not carry {sql_text(field)}")
