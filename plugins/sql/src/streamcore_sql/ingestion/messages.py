"""Changes to messages: key, value and headers, in the envelope that the sink writes."""

from __future__ import annotations

import csv
import io
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from .errors import RowRefused
from .routing import TableId

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_quoted = msgspec.json.encode


@dataclass(frozen=True)
class Target:
    """A table at the sink, and the topic its rows go to."""

    table: TableId
    topic: str


@dataclass(frozen=True)
class RowPlan:
    """How the rows of one source table are written."""

    table: TableId
    targets: tuple[Target, ...]
    key: tuple[str, ...]
    partition_keys: tuple[str, ...] = ()
    keep: tuple[str, ...] | None = None
    """The columns to write; None: as they come."""


class Row(NamedTuple):
    """A row on its way."""

    table: str
    text: bytes
    kind: str


class Message(NamedTuple):
    """What is written: `kind` is '-D' for a message that deletes."""

    target: Target
    key: bytes | None
    value: bytes | None
    place: str | None
    kind: str


class Columns:
    """Reads some columns of rows, and nothing else of them."""

    def __init__(self, table: TableId, names: Sequence[str], what: str) -> None:
        self._table, self._names, self._what = table, names, what
        fields = [(f"c{at}", Raw, Raw()) for at in range(len(names))]
        rename = {f"c{at}": name for at, name in enumerate(names)}
        self._attributes = [f"c{at}" for at in range(len(names))]
        self._decode = msgspec.json.Decoder(
            msgspec.defstruct("Columns", fields, rename=rename, gc=False)
        ).decode

    def of(self, row: bytes) -> list[bytes]:
        """The columns' JSON texts; raises RowRefused where one has no value."""
        found = self._decode(row)
        texts = [bytes(getattr(found, attribute)) for attribute in self._attributes]
        for name, text in zip(self._names, texts, strict=True):
            if text in (b"", b"null"):
                raise RowRefused(
                    f"table '{self._table}': a row has no value for '{name}', a column of its "
                    f"{self._what}"
                )
        # One text may be escaped in several ways, and equal keys must be equal bytes.
        return [_quoted(msgspec.json.decode(t)) if b"\\" in t else t for t in texts]


class Keys:
    """The key of a message, made of the primary key's columns."""

    def __init__(self, plan: RowPlan, style: str) -> None:
        self._style, self._names = style, [_quoted(name) for name in plan.key]
        self._columns = Columns(plan.table, plan.key, "primary key") if plan.key else None

    def parts(self, row: bytes) -> list[bytes] | None:
        """The key columns' texts; None for a table without a key."""
        return None if self._columns is None else self._columns.of(row)

    def text(self, parts: list[bytes] | None, target: Target) -> bytes | None:
        """The key as bytes."""
        if parts is None:
            return None
        if self._style == "csv":
            line = io.StringIO()
            values = [msgspec.json.decode(part) for part in parts]
            csv.writer(line, lineterminator="").writerow([str(target.table), *values])
            return line.getvalue().encode()
        pairs = [b"%s:%s" % pair for pair in zip(self._names, parts, strict=True)]
        if self._style == "table-json":
            pairs.insert(0, b'"TableId":' + _quoted(str(target.table)))
        return b"{" + b",".join(pairs) + b"}"


Envelope = Callable[["Target", "RowPlan", bytes | None, bytes | None], bytes | None]


def upsert(
    target: Target, plan: RowPlan, before: bytes | None, after: bytes | None
) -> bytes | None:
    """The row itself, or nothing for a delete."""
    return after


def debezium(target: Target, plan: RowPlan, before: bytes | None, after: bytes | None) -> bytes:
    """The row before and after, and the table."""
    operation = "d" if after is None else "c" if before is None else "u"
    source = _quoted({"db": target.table.schema, "table": target.table.table})
    return b'{"before":%s,"after":%s,"op":"%s","source":%s}' % (
        before or b"null",
        after or b"null",
        operation.encode(),
        source,
    )


def canal(target: Target, plan: RowPlan, before: bytes | None, after: bytes | None) -> bytes:
    """The new row and the old one, the table and its key."""
    change = "DELETE" if after is None else "INSERT" if before is None else "UPDATE"
    old = b"[%s]" % before if before is not None and after is not None else b"null"
    told = {"type": change, "database": target.table.schema, "table": target.table.table}
    rest = _quoted({**told, "pkNames": list(plan.key) or None})
    row = after if after is not None else before
    return b'{"old":%s,"data":[%s],%s' % (old, row or b"", rest[1:])


ENVELOPES: dict[str, Envelope] = {"upsert": upsert, "debezium-json": debezium, "canal-json": canal}


class Packer:
    """Packs the rows of one task, in their order, holding back only the first half of an update.

    Where a filter has taken one half away, the other half meets a stranger: with another key both
    are told on their own, and with the same key they are an update all the same.
    """

    def __init__(
        self,
        plans: Iterable[RowPlan],
        envelope: str,
        key_style: str,
        *,
        always_place: bool = False,
    ) -> None:
        self._always_place = always_place
        self._plans = {str(plan.table): plan for plan in plans}
        self._keys = {name: Keys(plan, key_style) for name, plan in self._plans.items()}
        self._places = {
            name: Columns(plan.table, plan.partition_keys, "'partition-keys'")
            for name, plan in self._plans.items()
            if plan.partition_keys
        }
        self._keeps = {
            name: dict.fromkeys(plan.keep)
            for name, plan in self._plans.items()
            if plan.keep is not None
        }
        self._envelope, self._is_upsert = ENVELOPES[envelope], envelope == "upsert"
        self._waiting: Row | None = None

    def pack(self, rows: Iterable[Row]) -> Iterator[Message]:
        """The messages of some rows; the next ones may belong to the last of them."""
        for row in rows:
            waiting, self._waiting = self._waiting, None
            if waiting is not None and (row.kind != "+U" or row.table != waiting.table):
                yield from self._messages(waiting, waiting.text, None)
                waiting = None
            if row.kind == "-U":
                self._waiting = row
            elif row.kind == "-D":
                yield from self._messages(row, row.text, None)
            elif waiting is not None:
                yield from self._messages(row, waiting.text, row.text)
            else:
                yield from self._messages(row, None, row.text)

    def end(self) -> Iterator[Message]:
        """What is left when no more rows come: a row that left its filter."""
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            yield from self._messages(waiting, waiting.text, None)

    def _messages(self, row: Row, before: bytes | None, after: bytes | None) -> Iterator[Message]:
        plan, keys = self._plans[row.table], self._keys[row.table]
        before, after = self._kept(row.table, before), self._kept(row.table, after)
        parts = keys.parts(after if after is not None else before or b"{}")
        if before is not None and after is not None:
            old = keys.parts(before)
            if old != parts:  # another key: the old row is gone, and the new one is new
                yield from self._written(plan, keys, old, before, None)
                before = None
        yield from self._written(plan, keys, parts, before, after)

    def _written(
        self,
        plan: RowPlan,
        keys: Keys,
        parts: list[bytes] | None,
        before: bytes | None,
        after: bytes | None,
    ) -> Iterator[Message]:
        place = None
        if self._places and (columns := self._places.get(str(plan.table))):
            row = after if after is not None else before or b"{}"
            place = "|".join(_plain(text) for text in columns.of(row))
        elif self._always_place:
            place = uuid.uuid4().hex if parts is None else b"|".join(parts).decode()
        kind = "-D" if after is None else "+U"
        for target in plan.targets:
            value = self._envelope(target, plan, before, after)
            yield Message(target, keys.text(parts, target), value, place, kind)

    def _kept(self, table: str, row: bytes | None) -> bytes | None:
        names = self._keeps.get(table)
        if row is None or names is None:
            return row
        members: dict[str, Any] = _members(row)
        return _quoted({name: value for name, value in members.items() if name in names})


def _plain(text: bytes) -> str:
    value = msgspec.json.decode(text)
    return value if isinstance(value, str) else text.decode()
