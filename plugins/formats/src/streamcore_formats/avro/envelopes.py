"""Debezium's envelopes to rows with their kinds, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from streamcore import ROW_KINDS, Decoded, Rejected

from .framed import FramedReader, FramedWriter
from .reading import Assembler, without_nulls
from .schema import Field, Type
from .settings import Settings

INSERT, BEFORE, AFTER, DELETE = (ROW_KINDS.index(kind) for kind in ("+I", "-U", "+U", "-D"))

_KINDS = {"": (), "c": (INSERT,), "r": (INSERT,), "u": (BEFORE, AFTER), "d": (DELETE,)}
_PARTS = {"": (), "c": (1,), "r": (1,), "u": (0, 1), "d": (0,)}
"""Where the rows of an operation are: 0 is 'before', 1 is 'after'."""
_NAMES = ("db", "schema", "table")
_SOURCE = pa.field("source", pa.struct([(name, pa.string()) for name in _NAMES]))
_TEXT = Type("union", branches=[Type("null"), Type("string")])
_READ = Type("record", name="source", fields=[Field(n, _TEXT, default=None) for n in _NAMES])
_READ_SOURCE = Field("source", Type("union", branches=[Type("null"), _READ]), default=None)


def envelope(fields: Iterable[pa.Field]) -> pa.Schema:
    """The columns of an envelope around rows of these fields."""
    row = pa.struct(list(fields))
    return pa.schema([("before", row), ("after", row), ("op", pa.string())])


class EnvelopeDecoder:
    """Decodes envelopes: an update is two rows, -U before +U; an empty message is a tombstone."""

    def __init__(
        self,
        settings: Settings,
        reader: Type,
        fields: Sequence[pa.Field],
        metadata: Sequence[str] = (),
    ) -> None:
        around = envelope(fields)
        narrow = _narrowed(reader.without_null()[0], {field.name for field in fields})
        self._tells_tables = "table" in metadata
        if self._tells_tables:
            around = around.append(_SOURCE)
            own = [field for field in narrow.fields if field.name != _SOURCE.name]
            narrow = dataclasses.replace(narrow, fields=[*own, _READ_SOURCE])
        self._reader = FramedReader(settings, narrow, list(around))
        self._envelopes, self._rows = Assembler(list(around)), Assembler(fields)

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        if b"" in messages:
            messages = [message or None for message in messages]
        present, indexes = without_nulls(messages)
        pieces = self._reader.read(present, indexes) if present else []
        found = self._envelopes.decoded(pieces, len(messages))
        origin = range(len(messages)) if found.origin is None else found.origin.to_pylist()
        return self._changes(found, origin)

    def _changes(self, found: Decoded, origin: Sequence[int]) -> Decoded:
        before, after, column = found.rows.columns[:3]
        tables = _tables(found.rows.columns[3]) if self._tells_tables else None
        ops = column.to_pylist()
        rejected = list(found.rejected)
        has_before, has_after = before.is_valid().to_pylist(), after.is_valid().to_pylist()
        reasons = list(map(_unusable, ops, has_before, has_after))
        if tables is not None:
            named = tables.is_valid().to_pylist()
            nameless = "the message does not tell its table"
            reasons = [
                why or ("" if has else nameless) for why, has in zip(reasons, named, strict=True)
            ]
        if any(reasons):
            rejected += [Rejected(i, why) for i, why in zip(origin, reasons, strict=True) if why]
            rejected.sort()
            ops = ["" if why else op for op, why in zip(ops, reasons, strict=True)]
        count = len(ops)
        # Picks count through the befores first, then through the afters.
        picks = [
            place + count * is_after for place, op in enumerate(ops) for is_after in _PARTS[op]
        ]
        kinds = [kind for op in ops for kind in _KINDS[op]]
        origins = [index for index, op in zip(origin, ops, strict=True) for _ in _KINDS[op]]
        rows = pa.concat_arrays([before, after]).take(pa.array(picks, pa.int32()))
        batch = self._rows.batch(rows.flatten(), len(picks))
        if tables is not None:
            places = pa.array([pick % count for pick in picks], pa.int32())
            batch = batch.append_column("table", tables.take(places))
        return Decoded(batch, pa.array(origins, pa.int32()), pa.array(kinds, pa.int8()), rejected)


def _tables(sources: pa.StructArray) -> pa.StringArray:
    """The full names of tables, null where a source does not tell its own."""
    *before, table = (pc.if_else(pc.equal(p, ""), None, p) for p in sources.flatten())
    # Arrow leaves out rows in which every part is null, so the last one is none for now.
    names = pc.binary_join_element_wise(*before, table.fill_null(""), ".", null_handling="skip")
    return pc.if_else(table.is_valid(), names, None)


def _unusable(op: str | None, has_before: bool, has_after: bool) -> str:
    """Why there are no rows in an envelope; empty if there are."""
    if has_after and (op in ("c", "r") or (op == "u" and has_before)):
        return ""
    if op not in ("c", "r", "u", "d"):
        return "'op' is null" if op is None else f"'op' is '{op}', not one of c, r, u, d"
    if op in ("u", "d") and not has_before:
        return (
            f"'before' is null with op '{op}'; a PostgreSQL table needs REPLICA IDENTITY FULL "
            "to send it"
        )
    return "" if op == "d" or has_after else f"'after' is null with op '{op}'"


def _narrowed(record: Type, names: set[str]) -> Type:
    """The envelope's record, with only the wanted columns in its rows."""

    def narrow(field: Field) -> Field:
        row, nullable = field.type.without_null()
        if row.kind != "record":
            return field
        kept = [each for each in row.fields if each.name in names]
        small = dataclasses.replace(row, fields=kept)
        kind = Type("union", branches=[Type("null"), small]) if nullable else small
        return dataclasses.replace(field, type=kind)

    return dataclasses.replace(record, fields=[narrow(field) for field in record.fields])


class EnvelopeEncoder:
    """Encodes +I and +U as created, -U and -D as deleted rows."""

    def __init__(
        self, settings: Settings, subject: str, text: str, avro: Type, schema: pa.Schema
    ) -> None:
        self._fields, self._around = list(schema), envelope(schema)
        self._writer = FramedWriter(settings, subject, text, avro, self._around)

    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
        count = rows.num_rows
        if kinds is None:
            kinds = pa.array([INSERT] * count, pa.int8())
        gone = pc.is_in(kinds, pa.array([BEFORE, DELETE], pa.int8()))
        before = self._struct(rows, pc.invert(gone))
        after = self._struct(rows, gone)
        ops = pc.if_else(gone, "d", "c")
        return self._writer.write(
            pa.RecordBatch.from_arrays([before, after, ops], schema=self._around)
        )

    def _struct(self, rows: pa.RecordBatch, absent: pa.BooleanArray) -> pa.StructArray:
        return pa.StructArray.from_arrays(rows.columns, fields=self._fields, mask=absent)
