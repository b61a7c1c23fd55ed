"""One datum at a time, with every rule checked and every rejection explained."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from streamcore import Rejected
from streamcore.types import sql_text

from . import resolve
from .cursor import BadDatum, Cursor, Read, skipper
from .schema import least_bytes


class ExactReader:
    """Reads datums by a plan, each behind a header of `header` bytes."""

    def __init__(self, plan: resolve.Plan, header: int = 0) -> None:
        self._read, self._header, self._arrow = reader(plan), header, plan.arrow

    def read(self, messages: Sequence[bytes]) -> tuple[list[pa.Array], list[Rejected]]:
        """Return the columns of the good messages, and why each of the others is none."""
        rows, rejected = [], []
        for index, message in enumerate(messages):
            try:
                rows.append(self._one(message))
            except BadDatum as bad:
                rejected.append(Rejected(index, str(bad)))
        return [
            pa.array([row[field.name] for row in rows], field.type) for field in self._arrow
        ], rejected

    def _one(self, message: bytes) -> dict[str, Any]:
        cursor = Cursor(message, self._header)
        try:
            row: dict[str, Any] = self._read(cursor)
        except RecursionError:
            raise BadDatum(f"nested too deeply at byte {cursor.at}") from None
        if cursor.at < cursor.end:
            raise BadDatum(f"{cursor.end - cursor.at} bytes left over at byte {cursor.at}")
        return row


def sql(arrow: pa.DataType) -> str:
    """A type as the table's owner wrote it."""
    return sql_text(pa.field("", arrow))


def reader(plan: resolve.Plan) -> Read:
    """The function that reads one value by this plan."""
    build: Any = _READERS[type(plan)]
    read: Read = build(plan)
    return read


def _whole(plan: resolve.Whole) -> Read:
    up, down, low, high = plan.up, plan.down, plan.low, plan.high

    def read(cursor: Cursor) -> int:
        start = cursor.at
        raw = cursor.read_long()
        value = raw * up // down
        if low <= value <= high:
            return value
        raise BadDatum(f"{raw} at byte {start} does not fit {sql(plan.arrow)}")

    return read


def _same(plan: resolve.Same) -> Read:
    kind, arrow = plan.writer.kind, plan.arrow
    if kind in ("int", "long"):
        return lambda cursor: _as_float(cursor.read_long(), arrow)
    if kind == "fixed":
        return lambda cursor: cursor.take(plan.writer.size, "fixed")
    if kind in ("bytes", "string"):
        return Cursor.read_text if pa.types.is_string(arrow) else Cursor.read_bytes
    return {
        "boolean": Cursor.read_boolean,
        "float": Cursor.read_float,
        "double": Cursor.read_double,
    }[kind]


def _as_float(number: int, arrow: pa.DataType) -> float:
    if pa.types.is_float64(arrow) or abs(number) <= 1 << 53:
        return float(number)
    # Python rounds to 53 bits first; a second rounding to 24 bits can miss the nearest float.
    value: float = pa.scalar(number, pa.int64()).cast(arrow, safe=False).as_py()
    return value


def _symbol(plan: resolve.Symbol) -> Read:
    texts, symbols = plan.texts, plan.writer.symbols

    def read(cursor: Cursor) -> str:
        index = cursor.symbol(len(texts))
        text = texts[index]
        if text is None:
            raise BadDatum(f"symbol '{symbols[index]}' is not in the reader's enum")
        return text

    return read


def _digits(plan: resolve.Digits) -> Read:
    size = plan.writer.size

    def read(cursor: Cursor) -> Decimal:
        start = cursor.at
        data = cursor.take(size, "decimal") if plan.writer.kind == "fixed" else cursor.read_bytes()
        return decimal_from(data, plan.scale, plan.arrow, f"at byte {start}")

    return read


def decimal_from(data: bytes, scale: int, arrow: pa.DataType, where: str) -> Decimal:
    """Read a two's complement number of the writer's scale; digits are never lost silently."""
    if not data:
        raise BadDatum(f"decimal of no bytes {where}")
    unscaled = int.from_bytes(data, "big", signed=True)
    more = arrow.scale - scale
    if more >= 0:
        unscaled, lost = unscaled * 10**more, 0
    else:
        unscaled, lost = divmod(unscaled, 10**-more)
    if lost or abs(unscaled) >= 10**arrow.precision:
        raise BadDatum(f"decimal {where} does not fit {sql(arrow)}")
    return Decimal(f"{unscaled}E{-arrow.scale}")  # the constructor never rounds


def _struct(plan: resolve.Struct) -> Read:
    names = plan.names
    steps = [
        (name, place, skipper(avro) if each is None else reader(each))
        for name, avro, place, each in plan.steps
    ]

    def read(cursor: Cursor) -> dict[str, Any]:
        values = plan.defaults.copy()
        name = ""
        try:
            for name, place, step in steps:  # noqa: B007 - the complaint below names it
                if place < 0:
                    step(cursor)
                else:
                    values[place] = step(cursor)
        except BadDatum as bad:
            bad.path.append(name)
            raise
        return dict(zip(names, values, strict=True))

    return read


def _repeated(plan: resolve.Repeated) -> Read:
    item, cells = reader(plan.item), leaves(plan.item.arrow)
    least = least_bytes(plan.writer.items)

    def read_array(cursor: Cursor) -> list[Any]:
        items = []
        for count in cursor.blocks(least, cells):
            items += [item(cursor) for _ in range(count)]
        return items

    def read_map(cursor: Cursor) -> list[tuple[str, Any]]:
        items = {}
        for count in cursor.blocks(least + 1, cells + 1):
            for _ in range(count):
                key = cursor.read_text()
                items[key] = item(cursor)
        return list(items.items())

    return read_array if plan.writer.kind == "array" else read_map


def leaves(arrow: pa.DataType) -> int:
    """How many Arrow values one value of this type takes, its arrays and maps left empty."""
    if pa.types.is_struct(arrow):
        return 1 + sum(leaves(field.type) for field in arrow)
    return 1


def _choice(plan: resolve.Choice) -> Read:
    nothing = _nothing(plan)
    reads = [nothing if branch is None else reader(branch) for branch in plan.branches]
    return lambda cursor: reads[cursor.branch(len(reads))](cursor)


def _nothing(plan: resolve.Plan) -> Read:
    def read(cursor: Cursor) -> None:
        if not plan.nullable:
            raise BadDatum("null, but it is NOT NULL")

    return read


def _impossible(plan: resolve.Impossible) -> Read:
    def read(cursor: Cursor) -> None:
        raise BadDatum(plan.reason)

    return read


_READERS = {
    resolve.Whole: _whole,
    resolve.Same: _same,
    resolve.Symbol: _symbol,
    resolve.Digits: _digits,
    resolve.Struct: _struct,
    resolve.Repeated: _repeated,
    resolve.Choice: _choice,
    resolve.Nothing: _nothing,
    resolve.Impossible: _impossible,
}
