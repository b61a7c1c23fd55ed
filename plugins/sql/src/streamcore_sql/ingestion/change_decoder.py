"""Takes changelog messages apart into rows as JSON text, each with its table, kind and shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

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


Change = tuple[str, int, bytes, str | None]
"""A row as a message tells it: its table, its kind, its JSON text and the names of its key."""


class _Where(Struct, gc=False):
    db: str | None = None
    schema: str | None = None
    table: str | None = None


class _Debezium(Struct, gc=False):
    op: str | None = None
    before: Raw = _ABSENT
    after: Raw = _ABSENT
    source: _Where | None = None
    payload: Raw = _ABSENT


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


@lru_cache(maxsize=10_000)
def _name(*parts: str | None) -> str:
    name = ".".join(part for part in parts if part)
    if not name:
        raise _Odd("the message does not tell its table")
    return name


def _key(names: list[str] | None) -> str | None:
    return _written(names) if names else None


def _written(names: Iterable[str]) -> str:
    """Names as one text, whatever is in them."""
    return json.dumps(list(names), ensure_ascii=False)


def _object(raw: Raw, what: str) -> bytes:
    text = bytes(raw)
    if text[:1] != b"{":
        raise _Odd(f"{what} is not an object")
    return text


def _images(
    table: str, op: str | None, before: Raw, after: Raw, codes: str, key: str | None = None
) -> list[Change]:
    """Changes told by the row before and after; `codes` are those of insert, update, delete."""
    if op == codes[-2]:
        old, new = _object(before, "'before' of an update"), _object(after, "'after' of an update")
        return [(table, BEFORE, old, key), (table, AFTER, new, key)]
    if op == codes[-1]:
        return [(table, DELETE, _object(before, "'before' of a delete"), key)]
    if op and op in codes:
        return [(table, INSERT, _object(after, "'after' of an insert"), key)]
    if op in ("t", "m", "T"):  # a truncation or a message of its own is no row
        return []
    raise _Odd(f"the operation is '{op}', not one of {', '.join(codes)}")


def _debezium(message: _Debezium) -> list[Change]:
    where = message.source or _Where()
    if message.payload and message.op is None:
        raise _Odd(
            "the message holds its schema beside its 'payload'; set 'debezium-json.schema-include' "
            "to true"
        )
    table = _name(where.db, where.schema, where.table)
    return _images(table, message.op, message.before, message.after, "crud")


def _wrapped(message: _Wrapped) -> list[Change]:
    if message.payload is None:
        raise _Odd("'payload' is missing; set 'debezium-json.schema-include' to false")
    return _debezium(message.payload)


def _ogg(message: _Ogg) -> list[Change]:
    table, key = _name(message.table), _key(message.primary_keys)
    return _images(table, message.op_type, message.before, message.after, "IUD", key)


_EDITS = {"insert": INSERT, "bootstrap-insert": INSERT, "update": AFTER, "delete": DELETE}


def _maxwell(message: _Maxwell) -> list[Change]:
    change = message.type or ""
    if change not in _EDITS:
        if change.startswith(("bootstrap-", "database-", "table-")):
            return []
        raise _Odd(f"'type' is '{change}', not one of insert, update, delete")
    table, key = _name(message.database, message.table), _key(message.primary_key_columns)
    return _edited(table, change, message.data, message.old, key)


def _canal(message: _Canal) -> list[Change]:
    change = (message.type or "").lower()
    if message.isDdl or change in ("create", "alter", "erase", "truncate", "rename", "cindex"):
        return []
    if change not in _EDITS:
        raise _Odd(f"'type' is '{message.type}', not one of INSERT, UPDATE, DELETE")
    rows, olds = message.data or [], message.old or []
    if change == "update" and len(rows) != len(olds):
        raise _Odd(f"'old' has {len(olds)} rows where 'data' has {len(rows)}")
    table, key = _name(message.database, message.table), _key(message.key)
    before = olds if change == "update" else [_ABSENT] * len(rows)
    pairs = zip(rows, before, strict=True)
    return [each for row, old in pairs for each in _edited(table, change, row, old, key)]


def _edited(table: str, change: str, data: Raw, old: Raw, key: str | None) -> list[Change]:
    """A change told by the new row and the former values of what changed."""
    row = _object(data, "'data'")
    if change != "update":
        return [(table, _EDITS[change], row, key)]
    former = _members(row) | _members(_object(old, "'old' of an update"))
    return [(table, BEFORE, msgspec.json.encode(former), key), (table, AFTER, row, key)]


_members = msgspec.json.Decoder(dict[str, Raw]).decode
_values = msgspec.json.Decoder(dict[str, Any]).decode
_SHAPES: dict[Envelope, tuple[type[Struct], Callable[[Any], list[Change]]]] = {
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
        rows: list[Change] = []
        shapes: list[str] = []
        origin: list[int] = []
        rejected: list[Rejected] = []
        ignored = 0
        decode, changes, shape = self._decode, self._changes, self._shape
        for index, message in enumerate(messages):
            if not message:
                continue
            try:
                found = changes(decode(message))
                told = [shape(change[2]) for change in found]
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                if self._ignoring:
                    ignored += 1
                else:
                    rejected.append(Rejected(index, _reason(error)))
                continue
            rows += found
            shapes += told
            origin += [index] * len(found)
        tables, kinds, texts, keys = zip(*rows, strict=True) if rows else ((), (), (), ())
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
            row.decode()  # what is skipped here is not looked at, and it must be a text
            members = {name: _STANDS_FOR[bytes(raw)[:1]] for name, raw in _members(row).items()}
        names, types = tuple(members), tuple(map(type, members.values()))
        found = self._shapes.get((names, types))
        if found is None:
            told = (f"{_LETTERS[kind]}{name}" for name, kind in zip(names, types, strict=True))
            found = self._shapes[names, types] = _written(told)
        return found


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, _Odd) else f"not a change: {error}"
