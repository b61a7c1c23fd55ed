"""Changes to messages: key, value and headers, in the envelope that the sink writes."""

from __future__ import annotations

import csv
import io
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
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


Message = tuple[Target, bytes | None, bytes | None, str | None, str]
"""What is written: target, key, value, place and '-D' for a message that deletes."""


# --- parts of rows ------------------------------------------------------------------------------


class Columns:
    """Reads some columns of rows, and nothing else of them."""

    def __init__(self, table: TableId, names: Sequence[str], what: str) -> None:
        self._table, self._names, self._what = table, names, what
        if any(character in '"\\' or character < " " for name in names for character in name):
            self._raws = self._by_name  # names that msgspec does not take for fields
            return
        fields = [f"c{at}" for at in range(len(names))]
        record = msgspec.defstruct(
            "Columns",
            [(field, Raw, Raw()) for field in fields],
            rename=dict(zip(fields, names, strict=True)),
            gc=False,
        )
        self._decode = msgspec.json.Decoder(record).decode
        self._values: Callable[[Any], Any] = attrgetter(*fields)
        self._raws = self._by_field if len(fields) > 1 else self._by_one_field

    def of(self, row: bytes) -> list[bytes]:
        """The columns' JSON texts; raises RowRefused where one has no value."""
        texts = list(map(bytes, self._raws(row)))
        for at, text in enumerate(texts):
            if text in (b"", b"null"):
                raise RowRefused(
                    f"table '{self._table}': a row has no value for '{self._names[at]}', a column "
                    f"of its {self._what}"
                )
            if b"\\" in text:  # a text may be escaped in several ways, and equal keys are bytes
                texts[at] = _quoted(msgspec.json.decode(text))
        return texts

    def _by_field(self, row: bytes) -> Iterable[Raw]:
        found: Iterable[Raw] = self._values(self._decode(row))
        return found

    def _by_one_field(self, row: bytes) -> Iterable[Raw]:
        return (self._values(self._decode(row)),)

    def _by_name(self, row: bytes) -> Iterable[Raw]:
        members = _members(row)
        return [members.get(name, Raw()) for name in self._names]


def _plain(text: bytes) -> str:
    value = msgspec.json.decode(text)
    return value if isinstance(value, str) else text.decode()


Key = Callable[[list[bytes], Target], bytes]


def _key_text(names: Sequence[str], style: str) -> Key:
    """What makes the key of a message of the columns' texts."""
    if style == "csv":
        return _csv_key
    heads = [_quoted(name).replace(b"%", b"%%") for name in names]
    template = b",".join(b"%s:%%b" % head for head in heads) + b"}"
    if style == "table-json":
        template = b'{"TableId":%b,' + template
        return lambda parts, target: template % (_quoted(str(target.table)), *parts)
    template = b"{" + template
    return lambda parts, target: template % tuple(parts)


def _csv_key(parts: list[bytes], target: Target) -> bytes:
    line = io.StringIO()
    values = [msgspec.json.decode(part) for part in parts]
    csv.writer(line, lineterminator="").writerow([str(target.table), *values])
    return line.getvalue().encode()


# --- envelopes ----------------------------------------------------------------------------------

Envelope = Callable[[Target, RowPlan, bytes | None, bytes | None], bytes | None]


def upsert(
    target: Target, plan: RowPlan, before: bytes | None, after: bytes | None
) -> bytes | None:
    """The row itself, or nothing for a delete."""
    return after


def debezium(target: Target, plan: RowPlan, before: bytes | None, after: bytes | None) -> bytes:
    """The row before and after, and the table."""
    operation = b"d" if after is None else b"c" if before is None else b"u"
    source = _quoted({"db": target.table.schema, "table": target.table.table})
    return b'{"before":%s,"after":%s,"op":"%s","source":%s}' % (
        before or b"null",
        after or b"null",
        operation,
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


# --- rows to messages -----------------------------------------------------------------------------


class _Table:
    """Writes the rows of one table."""

    def __init__(self, plan: RowPlan, envelope: str, key_style: str, always_place: bool) -> None:
        self._plan, self._envelope = plan, ENVELOPES[envelope]
        self._key = Columns(plan.table, plan.key, "primary key").of if plan.key else None
        self._key_text = _key_text(plan.key, key_style)
        self._keep = None if plan.keep is None else frozenset(plan.keep)
        self._places = None
        if plan.partition_keys:
            self._places = Columns(plan.table, plan.partition_keys, "'partition-keys'").of
        self._always_place = always_place

    def write(self, before: bytes | None, after: bytes | None, messages: list[Message]) -> None:
        """Add the messages of one change."""
        if self._keep is not None:
            before, after = self._kept(before), self._kept(after)
        row = after if after is not None else before
        assert row is not None
        parts = None
        if self._key is not None:
            parts = self._key(row)
            if before is not None and after is not None and (old := self._key(before)) != parts:
                # Another key: the old row is gone, and the new one is new.
                self._add(before, None, before, old, messages)
                before = None
        self._add(before, after, row, parts, messages)

    def _add(
        self,
        before: bytes | None,
        after: bytes | None,
        row: bytes,
        parts: list[bytes] | None,
        messages: list[Message],
    ) -> None:
        place = None
        if self._places is not None:
            place = "|".join(map(_plain, self._places(row)))
        elif self._always_place:
            place = uuid.uuid4().hex if parts is None else b"|".join(parts).decode()
        kind = "-D" if after is None else "+U"
        plan = self._plan
        for target in plan.targets:
            key = None if parts is None else self._key_text(parts, target)
            messages.append((target, key, self._envelope(target, plan, before, after), place, kind))

    def _kept(self, row: bytes | None) -> bytes | None:
        if row is None:
            return None
        names = self._keep or frozenset()
        return _quoted({name: value for name, value in _members(row).items() if name in names})


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
        self._tables = {
            str(plan.table): _Table(plan, envelope, key_style, always_place) for plan in plans
        }
        self._waiting: Row | None = None

    def pack(self, rows: Iterable[Row]) -> list[Message]:
        """The messages of some rows; the next ones may belong to the last of them."""
        messages: list[Message] = []
        tables, waiting = self._tables, self._waiting
        for row in rows:
            table, text, kind = row
            if waiting is not None and (kind != "+U" or table != waiting.table):
                tables[waiting.table].write(waiting.text, None, messages)
                waiting = None
            if kind == "-U":
                waiting = row
            elif kind == "-D":
                tables[table].write(text, None, messages)
            else:
                before = None if waiting is None else waiting.text
                tables[table].write(before, text, messages)
                waiting = None
        self._waiting = waiting
        return messages

    def end(self) -> list[Message]:
        """What is left when no more rows come: a row that left its filter."""
        messages: list[Message] = []
        if self._waiting is not None:
            self._tables[self._waiting.table].write(self._waiting.text, None, messages)
            self._waiting = None
        return messages
