"""How a change is told: by the row before and after it, or by the new row and what it replaced."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, Literal, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, structs

from .json_tree import kind_of
from .json_typed import TypedRows
from .unreadable import Unreadable, shown

INSERT, BEFORE, AFTER, DELETE = range(4)  # the codes of +I, -U, +U and -D
_UPDATE = bytes((BEFORE, AFTER))
_NO_ROW = 255
_NO_LETTER = 0
_COUNTS = bytes(kind != _NO_ROW for kind in range(256))
_ONE = pa.scalar(1, pa.uint64())

ReadRow = Callable[[Any], list[Any]]
Change = tuple[int, list[Any]]


class Emitted(NamedTuple):
    """Records of changed rows, the kind of each, and the message it came from."""

    records: list[Any]
    kinds: pa.Int8Array
    origin: pa.Int32Array


def _kinds(codes: bytes | bytearray) -> pa.Int8Array:
    return pa.Array.from_buffers(pa.int8(), len(codes), [None, pa.py_buffer(codes)])


class Shape(Protocol):
    """The part of an envelope that says which rows changed, and how."""

    def members(self, rows: TypedRows) -> list[tuple[str, str, Any]]:
        """The envelope's fields as (attribute, JSON name, type), all optional."""
        ...

    def emit(self, envelopes: Sequence[Any], doubtful: set[int]) -> Emitted:
        """The changes of many envelopes; what does not add up is in doubt."""
        ...

    def read(self, tree: dict[str, Any], read: ReadRow) -> list[Change]:
        """The changes of one parsed envelope."""
        ...


class Images:
    """`before` and `after`, with an operation, one letter, that says which of them count."""

    def __init__(self, operation: str, inserts: tuple[str, ...], update: str, delete: str) -> None:
        self._operation = operation
        self._inserts, self._update, self._delete = inserts, update, delete
        every = dict.fromkeys(inserts, INSERT)
        before, after = {update: BEFORE, delete: DELETE}, {**every, update: AFTER}
        self._kinds = [_by_letter(side, _NO_ROW) for side in (before, after)]
        self._operations = [*inserts, update, delete]

    def members(self, rows: TypedRows) -> list[tuple[str, str, Any]]:
        image = rows.type | None
        told = ("op", self._operation, Literal[*self._operations] | None)
        return [("before", "before", image), ("after", "after", image), told]

    def emit(self, envelopes: Sequence[Any], doubtful: set[int]) -> Emitted:
        images: list[Any] = [None] * (2 * len(envelopes))
        images[0::2] = [envelope.before for envelope in envelopes]
        images[1::2] = [envelope.after for envelope in envelopes]
        codes = _letters([envelope.op for envelope in envelopes])
        if _NO_LETTER in codes:
            doubtful.update(index for index, code in enumerate(codes) if code == _NO_LETTER)
        emitted = self._chosen(images, codes)
        if not all(emitted.records):  # an image that counts is null
            nulls = [place for place, record in enumerate(emitted.records) if not record]
            for index in emitted.origin.take(pa.array(nulls)).to_pylist():
                doubtful.add(index)
                codes[index] = _NO_LETTER
            emitted = self._chosen(images, codes)
        return emitted

    def _chosen(self, images: list[Any], codes: bytearray) -> Emitted:
        """The images that count, in the order of their messages, and before ahead of after."""
        kinds = bytearray(len(images))
        kinds[0::2], kinds[1::2] = (codes.translate(side) for side in self._kinds)
        counts = kinds.translate(_COUNTS)
        flags = pa.Array.from_buffers(pa.uint8(), len(images), [None, pa.py_buffer(counts)])
        origin = pc.shift_right(pc.indices_nonzero(flags), _ONE).cast(pa.int32())
        kept = kinds.translate(None, bytes([_NO_ROW]))
        return Emitted(list(compress(images, counts)), _kinds(kept), origin)

    def read(self, tree: dict[str, Any], read: ReadRow) -> list[Change]:
        operation = tree.get(self._operation)
        if operation in self._inserts:
            return [(INSERT, self._image(tree, "after", "an insert", read))]
        if operation == self._update:
            before = self._image(tree, "before", "an update", read)
            return [(BEFORE, before), (AFTER, self._image(tree, "after", "an update", read))]
        if operation == self._delete:
            return [(DELETE, self._image(tree, "before", "a delete", read))]
        known = ", ".join(self._operations)
        raise Unreadable(f"'{self._operation}' is {_told(operation)}, not one of {known}")

    def _image(self, tree: dict[str, Any], side: str, change: str, read: ReadRow) -> list[Any]:
        image = tree.get(side)
        if image is None:
            cure = "; a Postgres table needs REPLICA IDENTITY FULL" if side == "before" else ""
            raise Unreadable(f"'{side}' is null in {change}{cure}")
        return _named(side, image, read)


class Edits:
    """`data`, the new row, and `old`, the former values of what changed; one of each or many."""

    def __init__(
        self, insert: str, update: str, delete: str, *, many: bool, skip: frozenset[str]
    ) -> None:
        self._insert, self._update, self._delete = insert, update, delete
        self._many, self._skip = many, skip

    def members(self, rows: TypedRows) -> list[tuple[str, str, Any]]:
        data: Any = rows.type
        old: Any = rows.changes
        if self._many:
            data, old = list[data], list[old]
        told = ("type", "type", str | None)
        return [("data", "data", data | None), ("old", "old", old | None), told]

    def emit(self, envelopes: Sequence[Any], doubtful: set[int]) -> Emitted:
        records: list[Any] = []
        kinds, origin = bytearray(), array("i")
        plain = {self._insert: INSERT, self._delete: DELETE}
        for index, envelope in enumerate(envelopes):
            change, data = envelope.type, envelope.data
            if data is None:
                if change not in self._skip:
                    doubtful.add(index)
                continue
            rows = data if self._many else [data]
            if change in plain:
                records += rows
                kinds += bytes([plain[change]]) * len(rows)
                origin.extend([index] * len(rows))
            elif change == self._update and envelope.old is not None:
                olds = envelope.old if self._many else [envelope.old]
                if len(olds) != len(rows):
                    doubtful.add(index)
                    continue
                for row, old in zip(rows, olds, strict=True):
                    records += (_overlaid(row, old), row)
                kinds += _UPDATE * len(rows)
                origin.extend([index] * (2 * len(rows)))
            elif change not in self._skip:
                doubtful.add(index)
        places = pa.Array.from_buffers(pa.int32(), len(origin), [None, pa.py_buffer(origin)])
        return Emitted(records, _kinds(kinds), places)

    def read(self, tree: dict[str, Any], read: ReadRow) -> list[Change]:
        change = tree.get("type")
        if type(change) is str and change in self._skip:
            return []
        if change not in (self._insert, self._update, self._delete):
            known = ", ".join((self._insert, self._update, self._delete))
            raise Unreadable(f"'type' is {_told(change)}, not one of {known}")
        rows = self._objects(tree, "data")
        if change != self._update:
            kind = INSERT if change == self._insert else DELETE
            return [(kind, _named(where, row, read)) for where, row in rows]
        olds = self._objects(tree, "old")
        if len(olds) != len(rows):
            raise Unreadable(f"'old' has {len(olds)} rows where 'data' has {len(rows)}")
        changes: list[Change] = []
        for (where, row), (where_old, old) in zip(rows, olds, strict=True):
            if type(row) is not dict or type(old) is not dict:
                _named(where, row, read)
                raise Unreadable(f"'{where_old}' is {kind_of(old)}, not an object")
            changes.append((BEFORE, _named(where_old, {**row, **old}, read)))
            changes.append((AFTER, _named(where, row, read)))
        return changes

    def _objects(self, tree: dict[str, Any], name: str) -> list[tuple[str, Any]]:
        value = tree.get(name)
        if not self._many:
            if value is None:
                raise Unreadable(f"'{name}' is null")
            return [(name, value)]
        if type(value) is not list:
            raise Unreadable(f"'{name}' is {kind_of(value)}, not an array")
        return [(f"{name}[{position}]", each) for position, each in enumerate(value)]


def _letters(operations: Sequence[str | None]) -> bytearray:
    """The operations, one letter each, in a row."""
    try:
        letters = "".join(operations)  # type: ignore[arg-type]
    except TypeError:  # there is a None among them
        letters = "".join(each or chr(_NO_LETTER) for each in operations)
    return bytearray(letters, "latin-1")


def _by_letter(codes: Mapping[str, int], other: int) -> bytes:
    """A table for `translate`; letters without a code become `other`."""
    return bytes(codes.get(chr(letter), other) for letter in range(256))


def _overlaid(row: Any, old: Any) -> Any:
    """The row with the former values in place of those that changed."""
    former = structs.asdict(old)
    return structs.replace(row, **{name: v for name, v in former.items() if v is not UNSET})


def _named(name: str, value: Any, read: ReadRow) -> list[Any]:
    try:
        return read(value)
    except Unreadable as error:
        raise Unreadable(f"in '{name}': {error}") from None


def _told(value: Any) -> str:
    return shown(value) if isinstance(value, str) else kind_of(value)
