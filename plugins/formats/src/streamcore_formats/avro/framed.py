"""Messages that name their schema: grouped by it, read with it, put back in order."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from streamcore import Decoded, Rejected

from .client import Registry, UnknownSchema, registry
from .reading import Assembler, DatumReader, Piece, without_nulls
from .resolve import resolve_row
from .schema import SchemaError, Type
from .settings import Settings
from .writing import DatumWriter

HEADER = 5
_MOST_READERS = 1_000


class FramedReader:
    """Reads the wanted fields of the reader's record from messages of any registered schema."""

    def __init__(self, settings: Settings, reader: Type, fields: Sequence[pa.Field]) -> None:
        self._settings, self._reader, self._fields = settings, reader, fields
        self._readers: dict[bytes, DatumReader] = {}
        self._mixed = False

    def read(self, messages: Sequence[bytes], indexes: Sequence[int]) -> list[Piece]:
        """Read messages whose places in the batch are `indexes`; pieces come in any order."""
        if not self._mixed:  # grouping costs as much as reading: see first whether it is needed
            head = messages[0][:HEADER]
            reader = self._known(head)
            columns = None if isinstance(reader, str) else reader.read_all(messages, head)
            if columns is not None:
                return [Piece(columns, indexes)]
        groups: dict[bytes, tuple[list[bytes], list[int]]] = {}
        for index, message in zip(indexes, messages, strict=True):
            group = groups.setdefault(message[:HEADER], ([], []))
            group[0].append(message)
            group[1].append(index)
        self._mixed = len(groups) > 1
        return [piece for head, group in groups.items() for piece in self._read_group(head, *group)]

    def _read_group(self, head: bytes, messages: list[bytes], indexes: list[int]) -> list[Piece]:
        reader = self._known(head)
        if isinstance(reader, str):
            nothing = [pa.array([], field.type) for field in self._fields]
            return [Piece(nothing, [], [Rejected(index, reader) for index in indexes])]
        return reader.read(messages, indexes)

    def _known(self, head: bytes) -> DatumReader | str:
        """The reader for messages that start so, or why there is none."""
        reader = self._readers.get(head)
        if reader is None:
            try:
                reader = self._reader_for(head)
            except UnknownSchema as unknown:
                return str(unknown)
            if len(self._readers) >= _MOST_READERS:
                self._readers.clear()
            self._readers[head] = reader
        return reader

    def _reader_for(self, head: bytes) -> DatumReader:
        if len(head) < HEADER:
            raise UnknownSchema(f"{len(head)} bytes; the header with the schema id takes {HEADER}")
        if head[0] != 0:
            raise UnknownSchema(f"starts with 0x{head[0]:02x} instead of the magic byte 0x00")
        identifier = int.from_bytes(head[1:], "big")
        writer = registry(self._settings).schema(identifier)
        try:
            plan = resolve_row(writer, self._reader, self._fields)
        except SchemaError as error:
            raise UnknownSchema(f"schema id {identifier}: {error}") from None
        return DatumReader(plan, HEADER, f"schema id {identifier}: ")


class FramedDecoder:
    """Decodes framed messages to rows."""

    def __init__(self, settings: Settings, reader: Type, fields: Sequence[pa.Field]) -> None:
        self._reader = FramedReader(settings, reader, fields)
        self._assembler = Assembler(fields)

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        present, indexes = without_nulls(messages)
        pieces = self._reader.read(present, indexes) if present else []
        return self._assembler.decoded(pieces, len(messages))


class FramedWriter:
    """Writes rows behind the id of their schema, which is registered before the first of them."""

    def __init__(
        self, settings: Settings, subject: str, text: str, avro: Type, schema: pa.Schema
    ) -> None:
        self._settings, self._subject, self._text = settings, subject, text
        self._avro, self._schema = avro, schema
        self._writer: DatumWriter | None = None

    def write(self, rows: pa.RecordBatch) -> list[bytes]:
        """Encode each row."""
        if not rows.num_rows:
            return []
        if self._writer is None:
            known: Registry = registry(self._settings)
            identifier = known.register(self._subject, self._text)
            header = b"\x00" + identifier.to_bytes(4, "big")
            self._writer = DatumWriter(self._schema, self._avro, header)
        return self._writer.write(rows)


class FramedEncoder:
    """Encodes rows to framed messages."""

    def __init__(
        self, settings: Settings, subject: str, text: str, avro: Type, schema: pa.Schema
    ) -> None:
        self._writer = FramedWriter(settings, subject, text, avro, schema)

    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
        return self._writer.write(rows)
