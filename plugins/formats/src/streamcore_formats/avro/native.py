"""A whole batch in one native call, taken only where it is proven to equal the exact path.

The messages are joined into one Avro array of records, each closed by eight random bytes. The
native reader checks neither what follows a datum nor where the next one starts; these marks do:
they can only come out right if every datum ended exactly where its message ended.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyruhvro import deserialize_array

from . import resolve
from .arrays import Doubt, Unsupported, columns_of, converter
from .cursor import MOST_CELLS
from .schema import Type, least_bytes

_MOST_TYPES = 5_000
MOST_BYTES = 1 << 28
"""Arrow's offsets end at 2 GiB, and each step holds its own copy: pieces stay well below that."""
MARK = ("e", "double")
# No block count but the most negative one starts so, and the native reader takes that for zero.
_ENDLESS = b"\xff" * 9


class NativeReader:
    """Reads batches of datums by a plan, each behind a header of 0 or 5 bytes."""

    def __init__(self, plan: resolve.Plan, header: int = 0) -> None:
        rewriting = Rewriting()
        fields: list[tuple[str, Any]] = [("h", "boolean"), ("i", "float")] if header else []
        if isinstance(plan, resolve.Struct):  # flat, which saves a level of arrays
            self._columns = columns_of(plan, len(fields))
            fields += rewriting.fields(plan.writer)
        else:
            self._columns = _columns_of_nested(plan, len(fields))
            fields.append(("r", rewriting.of(plan.writer)))
        item = record_schema("m", [*fields, MARK])
        self._schema = json.dumps(record_schema("b", [("m", _array(item))]))
        self._mark, self._place_of_mark = os.urandom(8), len(fields)
        self._has_blocks = rewriting.has_blocks
        self._cells_per_byte = rewriting.cells_per_byte

    def read(self, messages: Sequence[bytes], head: bytes = b"") -> list[pa.Array] | None:
        """Return the columns, with one row per message, or None if the exact path must decide.

        With a `head`, None also means that a message starts otherwise.
        """
        mark, count = self._mark, len(messages)
        joined = b"".join((_block_count(count), mark.join(messages), mark, b"\0"))
        if len(joined) > MOST_BYTES or (self._has_blocks and self._could_explode(joined)):
            return None
        try:
            rows = deserialize_array([joined], self._schema).column(0).values
            if len(rows) != count or not _repeats(rows.field(self._place_of_mark), mark):
                return None
            if head and (rows.field(0).true_count or not _repeats(rows.field(1), head[1:])):
                return None
            return self._columns(rows)
        except (ValueError, Doubt):
            return None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # what Rust raises has no other name here
                raise
            return None

    def _could_explode(self, joined: bytes) -> bool:
        return _ENDLESS in joined or len(joined) * self._cells_per_byte > MOST_CELLS


def _columns_of_nested(plan: resolve.Plan, place: int) -> Callable[[pa.Array], list[pa.Array]]:
    convert = converter(plan)

    def columns(rows: pa.StructArray) -> list[pa.Array]:
        row = rows.field(place)
        if row.null_count:
            raise Doubt
        converted = convert(row)
        return [converted.field(index) for index in range(converted.type.num_fields)]

    return columns


def _repeats(array: pa.Array, value: bytes) -> bool:
    """Tell whether a column of plain numbers holds these bytes again and again."""
    data: bytes = array.buffers()[1].to_pybytes()
    return data[: len(value) * len(array)] == value * len(array)


def _block_count(count: int) -> bytes:
    zigzag, out = count << 1, bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


class Rewriting:
    """Says a writer's schema in the few words the native reader knows, bytes unchanged.

    Bytes become strings; logical types are left out; names are made up anew, because a type may
    be used in several places. With `widen` numbers are long, so that none is cut off silently.
    """

    def __init__(self, *, widen: bool = True) -> None:
        self._int = "long" if widen else "int"
        self._names = (f"t{number}" for number in itertools.count())
        self._inside: list[Type] = []
        self._budget = _MOST_TYPES
        self.has_blocks = False
        self.cells_per_byte = 0

    def of(self, avro: Type) -> Any:
        self._budget -= 1
        if avro in self._inside or self._budget < 0:
            raise Unsupported(avro.label)
        self._inside.append(avro)
        plain = self._plain(avro)
        self._inside.pop()
        return plain

    def _plain(self, avro: Type) -> Any:
        match avro.kind:
            case "boolean" | "float" | "double" | "long":
                return avro.kind
            case "int":
                return self._int
            case "bytes" | "string":
                return "string"
            case "enum":
                return {"type": "enum", "name": next(self._names), "symbols": avro.symbols}
            case "array" | "map":
                return self._repeated(avro)
            case "record":
                return record_schema(next(self._names), self.fields(avro))
            case "union":
                return self._nullable(avro)
            case "fixed" if avro.size and avro.size % 4 == 0 and avro.size <= 64:
                return self._words(avro.size)
        raise Unsupported(avro.label)

    def _repeated(self, avro: Type) -> Any:
        self.has_blocks = True
        least = least_bytes(avro.items)
        if avro.kind == "array" and least == 0:
            raise Unsupported("items without bytes could be declared without end")
        cells = _cells(avro.items, {})
        self.cells_per_byte = max(self.cells_per_byte, cells // max(least, 1) + 1)
        items = self.of(avro.items)
        return _array(items) if avro.kind == "array" else {"type": "map", "values": items}

    def fields(self, avro: Type) -> list[tuple[str, Any]]:
        """The fields of a record, without those that take no bytes."""
        fields = [
            (f"f{place}", self.of(field.type))
            for place, field in enumerate(avro.fields)
            if field.type.kind != "null"
        ]
        if not fields:
            raise Unsupported("a record without fields")
        return fields

    def _nullable(self, avro: Type) -> Any:
        bare, nullable = avro.without_null()
        if bare.kind in ("union", "null") or not nullable or len(avro.branches) != 2:
            raise Unsupported(avro.label)
        plain = self.of(bare)
        return ["null", plain] if avro.branches[0].kind == "null" else [plain, "null"]

    def _words(self, size: int) -> Any:
        kinds = ["double"] * (size // 8) + ["float"] * (size % 8 // 4)
        return record_schema(next(self._names), [(f"w{i}", kind) for i, kind in enumerate(kinds)])


def _cells(avro: Type, known: dict[int, int]) -> int:
    """How many Arrow values one value of this type takes, its arrays and maps left empty."""
    if id(avro) not in known:
        known[id(avro)] = 1
        parts: Iterator[Type] = itertools.chain(
            (field.type for field in avro.fields), avro.branches
        )
        known[id(avro)] = 1 + sum(_cells(part, known) for part in parts)
    return known[id(avro)]


def _array(items: Any) -> Any:
    return {"type": "array", "items": items}


def record_schema(name: str, fields: Sequence[tuple[str, Any]]) -> Any:
    """A record of these fields."""
    plain = [{"name": field, "type": kind} for field, kind in fields]
    return {"type": "record", "name": name, "fields": plain}
