"""Takes changelog messages apart into rows as JSON text, each with its table, kind and shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa
from msgspec import Raw, Struct
from streamcore import Decoded, PluginError, Rejected

from .table_changes import Envelope

if TYPE_CHECKING:
    from .table_changes import TableChanges

INSERT, BEFORE, AFTER, DELETE = range(4)  # the codes of +I, -U, +U and -D
_LETTERS: dict[type, str] = {
    int: "i",
    float: "f",
    bool: "b",
    str: "s",
    dict: "j",
    list: "j",
    type(None): "n",
}
"""JSON types, as a shape tells them."""
_ABSENT = Raw()
_STANDS_FOR: dict[bytes, object] = {
    b'"': "",
    b"t": True,
    b"f": True,
    b"n": None,
    b"{": {},
    b"[": [],
}
_STANDS_FOR |= {b"%c" % digit: 0.0 for digit in b"-0123456789"}


class Change(NamedTuple):
    """A change of one row, as a message tells it; what there was before is `old`."""

    table: str
    kind: int
    row: bytes
    old: bytes | None = None
    key: Sequence[str] | None = None


class _Where(Struct, gc=False):
    db: str | None = None
    schema: str | None = None
    table: str | None = None


class _Debezium(Struct, gc=False):
    op: str | None = None
    before: Raw = _ABSENT
    after: Raw = _ABSENT
    source: _Where | None = None


class _Wrapped(Struct, gc=False):
    payload: _Debezium | None = None


class _Ogg(Struct, gc=False):
    op_type: str | None = None
    before: Raw = _ABSENT
    after: Raw = _ABSENT
    table: str | None = None
    primary_keys: list[str] | None = None


class _Maxwell(Struct, gc=False):
    type: str | None = None
    data: Raw = _ABSENT
    old: Raw = _ABSENT
    database: str | None = None
    table: str | None = None
    primary_key_columns: list[str] | None = None


class _Canal(Struct, gc=False, rename={"key": "pkNames"}):
    type: str | None = None
    data: list[Raw] | None = None
    old: list[Raw] | None = None
    database: str | None = None
    table: str | None = None
    key: list[str] | None = None
    isDdl: bool | None = None  # noqa: N815 - Canal's own spelling


class _Odd(ValueError):  # noqa: N818 - says what the message is
    """A message that is no change; says why."""


def _name(*parts: str | None) -> str:
    name = ".".join(part for part in parts if part)
    if not name:
        raise _Odd("the message does not tell its table")
    return name


def _object(raw: Raw, what: str) -> bytes:
    text = bytes(raw)
    if text[:1] != b"{":
        raise _Odd(f"{what} is not an object")
    return text


def _images(
    table: str, op: str | None, before: Raw, after: Raw, codes: str, key: Any = None
) -> Iterator[Change]:
    """Changes told by the row before and after; `codes` are those of insert, update, delete."""
    inserts, update, delete = codes[:-2], codes[-2], codes[-1]
    if op and op in inserts:
        yield Change(table, INSERT, _object(after, "'after' of an insert"), None, key)
    elif op == update:
        old = _object(before, "'before' of an update")
        yield Change(table, AFTER, _object(after, "'after' of an update"), old, key)
    elif op == delete:
        yield Change(table, DELETE, _object(before, "'before' of a delete"), None, key)
    elif op not in ("t", "m", "T"):  # a truncation or a message of its own is no row
        known = ", ".join(codes)
        raise _Odd(f"the operation is '{op}', not one of {known}")


def _debezium(message: _Debezium) -> Iterator[Change]:
    where = message.source or _Where()
    table = _name(where.db, where.schema, where.table)
    return _images(table, message.op, message.before, message.after, "crud")


def _wrapped(message: _Wrapped) -> Iterator[Change]:
    if message.payload is None:
        raise _Odd("'payload' is missing; is 'schema-include' meant?")
    return _debezium(message.payload)


def _ogg(message: _Ogg) -> Iterator[Change]:
    table = _name(message.table)
    op, before, after = message.op_type, message.before, message.after
    return _images(table, op, before, after, "IUD", message.primary_keys)


_EDITS = {"insert": INSERT, "bootstrap-insert": INSERT, "update": AFTER, "delete": DELETE}


def _maxwell(message: _Maxwell) -> Iterator[Change]:
    change = message.type or ""
    if change not in _EDITS:
        if change.startswith(("bootstrap-", "database-", "table-")):
            return
        raise _Odd(f"'type' is '{change}', not one of insert, update, delete")
    row, old = _object(message.data, "'data'"), None
    if _EDITS[change] == AFTER:
        old = overlaid(row, _object(message.old, "'old' of an update"))
    table = _name(message.database, message.table)
    yield Change(table, _EDITS[change], row, old, message.primary_key_columns)


def _canal(message: _Canal) -> Iterator[Change]:
    change = (message.type or "").lower()
    if message.isDdl or change in ("create", "alter", "erase", "truncate", "rename", "cindex"):
        return
    if change not in _EDITS:
        raise _Odd(f"'type' is '{message.type}', not one of INSERT, UPDATE, DELETE")
    rows, olds = message.data or [], message.old or []
    if change == "update" and len(rows) != len(olds):
        raise _Odd(f"'old' has {len(olds)} rows where 'data' has {len(rows)}")
    table = _name(message.database, message.table)
    for position, raw in enumerate(rows):
        row, old = _object(raw, "'data'"), None
        if change == "update":
            old = overlaid(row, _object(olds[position], "'old' of an update"))
        yield Change(table, _EDITS[change], row, old, message.key)


_members = msgspec.json.Decoder(dict[str, Raw]).decode
_values = msgspec.json.Decoder(dict[str, Any]).decode


def overlaid(row: bytes, old: bytes) -> bytes:
    """The row with the former values in place of those that changed."""
    return msgspec.json.encode({**_members(row), **_members(old)})


_SHAPES: dict[Envelope, tuple[type[Struct], Callable[[Any], Iterator[Change]]]] = {
    Envelope.DEBEZIUM: (_Debezium, _debezium),
    Envelope.OGG: (_Ogg, _ogg),
    Envelope.MAXWELL: (_Maxwell, _maxwell),
    Envelope.CANAL: (_Canal, _canal),
}


class ChangeDecoder:
    """Decodes batches of messages."""

    def __init__(
        self,
        plugin: TableChanges,
        schema: pa.Schema,
        columns: Sequence[str] | None,
        metadata: Sequence[str],
    ) -> None:
        kind, self._changes = _SHAPES[plugin.envelope]
        if plugin.envelope is Envelope.DEBEZIUM and plugin.schema_include:
            kind, self._changes = _Wrapped, _wrapped
        self._decode = msgspec.json.Decoder(kind).decode
        self._ignoring = plugin.ignore_parse_errors
        self._names = list(schema.names if columns is None else columns)
        self._metadata = list(metadata)
        if unknown := [key for key in metadata if key not in plugin.metadata_keys]:
            raise PluginError(f"format '{plugin.identifier}' has no metadata '{unknown[0]}'.")
        self._shapes: dict[tuple[tuple[str, ...], tuple[type, ...]], str] = {}

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        texts: list[bytes] = []
        kinds: list[int] = []
        origin: list[int] = []
        tables: list[str] = []
        keys: list[str | None] = []
        shapes: list[str] = []
        rejected: list[Rejected] = []
        ignored = 0
        for index, message in enumerate(messages):
            if not message:
                continue
            try:
                found = list(self._changes(self._decode(message)))
                rows = [row for each in found for row in (each.old, each.row) if row]
                told = list(map(self._shape, rows))
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                if self._ignoring:
                    ignored += 1
                else:
                    rejected.append(Rejected(index, _reason(error)))
                continue
            texts += rows
            shapes += told
            for change in found:
                key = "\n".join(change.key) if change.key else None
                count = 1 if change.old is None else 2
                kinds += (change.kind,) if change.old is None else (BEFORE, AFTER)
                origin += [index] * count
                tables += [change.table] * count
                keys += [key] * count
        told_of = {"table": tables, "shape": shapes, "primary-key": keys}
        columns = [pa.array(texts, pa.binary()).cast(pa.string()) for _ in self._names]
        columns += [pa.array(told_of[name], pa.string()) for name in self._metadata]
        batch = pa.RecordBatch.from_arrays(columns, [*self._names, *self._metadata])
        return Decoded(
            batch, pa.array(origin, pa.int32()), pa.array(kinds, pa.int8()), rejected, ignored
        )

    def _shape(self, row: bytes) -> str:
        try:
            members = _values(row)
        except msgspec.MsgspecError:  # perhaps only a number too large for Python's own
            members = {name: _STANDS_FOR[bytes(raw)[:1]] for name, raw in _members(row).items()}
        names, types = tuple(members), tuple(map(type, members.values()))
        found = self._shapes.get((names, types))
        if found is None:
            lines = (f"{_LETTERS[kind]}{name}" for name, kind in zip(names, types, strict=True))
            found = self._shapes[names, types] = "\n".join(lines)
        return found


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, _Odd) else f"not a change: {error}"
