"""What a reader makes of a writer's datums: Avro's resolution rules, worked out once per schema.

Records, enums and fixed types are matched by what they hold, not by name. Beyond Avro's rules, an
enum can be read as STRING and a fixed as BYTES or DECIMAL, because a table cannot say it
otherwise. Units and scales of logical types are converted, never reinterpreted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from .defaults import default_value
from .schema import NO_DEFAULT, Type

_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_SUFFIXES = {"millis": "ms", "micros": "us", "nanos": "ns"}
_PROMOTIONS = {
    "int": {"int", "long", "float", "double"},
    "long": {"long", "float", "double"},
    "float": {"float", "double"},
    "double": {"double"},
    "boolean": {"boolean"},
    "string": {"string", "bytes"},
    "bytes": {"string", "bytes"},
    "enum": {"enum", "string"},
    "fixed": {"fixed", "bytes"},
    "record": {"record"},
    "array": {"array"},
    "map": {"map"},
}


@dataclasses.dataclass(eq=False)
class Plan:
    """How one datum becomes one Arrow value."""

    writer: Type
    arrow: pa.DataType
    nullable: bool


@dataclasses.dataclass(eq=False)
class Whole(Plan):
    """A whole number, or a date or time counted in one: scaled by `up / down`, then bounded."""

    up: int
    down: int
    low: int
    high: int


@dataclasses.dataclass(eq=False)
class Same(Plan):
    """A boolean, float, text or byte string; numbers may become floats, texts bytes."""


@dataclasses.dataclass(eq=False)
class Symbol(Plan):
    """An enum; for each of the writer's symbols the text it becomes, or None."""

    texts: list[str | None]


@dataclasses.dataclass(eq=False)
class Digits(Plan):
    """A decimal of the writer's `scale`."""

    scale: int


@dataclasses.dataclass(eq=False)
class Struct(Plan):
    """A record: each of the writer's fields with its place in the row, or None to skip it."""

    names: list[str]
    steps: list[tuple[str, Type, int, Plan | None]]
    defaults: list[Any]


@dataclasses.dataclass(eq=False)
class Repeated(Plan):
    """An array or a map."""

    item: Plan


@dataclasses.dataclass(eq=False)
class Choice(Plan):
    """A writer's union; None stands for its null."""

    branches: list[Plan | None]


@dataclasses.dataclass(eq=False)
class Nothing(Plan):
    """A writer's bare null."""


@dataclasses.dataclass(eq=False)
class Impossible(Plan):
    """Two types that do not resolve; whoever meets such a datum learns why."""

    reason: str


def resolve_row(writer: Type, reader: Type, fields: Sequence[pa.Field]) -> Plan:
    """Plan reading the wanted `fields` of the reader's record from the writer's datums."""
    record, _ = reader.without_null()
    wanted = {field.name for field in fields}
    kept = [field for field in record.fields if field.name in wanted]
    projected = dataclasses.replace(record, fields=kept)
    return _resolve(writer, projected, pa.field("", pa.struct(fields), nullable=False))


def _resolve(writer: Type, reader: Type, field: pa.Field) -> Plan:
    base = (writer, field.type, field.nullable)
    if writer.kind == "union":
        branches = [
            None if branch.kind == "null" else _resolve(branch, reader, field)
            for branch in writer.branches
        ]
        return Choice(*base, branches)
    if writer.kind == "null":
        return Nothing(*base)
    bare, _ = reader.without_null()
    promoted = bare.kind in _PROMOTIONS[writer.kind] or _both_times(writer, bare)
    if not promoted or _differ_in_meaning(writer, bare):
        return Impossible(*base, f"{writer.label} cannot be read as {bare.label}")
    if writer.kind == "record":
        return _resolve_record(writer, bare, field)
    if writer.kind in ("array", "map"):
        return _resolve_items(writer, bare, field)
    if pa.types.is_decimal(field.type):
        return _resolve_decimal(writer, bare, field)
    if writer.kind == "enum":
        return _resolve_enum(writer, bare, field)
    if writer.kind == "fixed" and bare.kind == "fixed" and writer.size != bare.size:
        reason = f"fixed of {writer.size} bytes cannot be read as fixed of {bare.size}"
        return Impossible(*base, reason)
    if writer.kind in ("int", "long") and not pa.types.is_floating(field.type):
        return _resolve_whole(writer, bare, field)
    return Same(*base)


def _both_times(writer: Type, reader: Type) -> bool:
    return writer.logical.startswith("time-") and reader.logical.startswith("time-")


def _differ_in_meaning(writer: Type, reader: Type) -> bool:
    """Whether the same bytes would be another value: days read as milliseconds, or as text."""
    meanings = {_meaning(writer), _meaning(reader)} - {""}
    return len(meanings) > 1 or (writer.logical == "decimal" and reader.kind == "string")


def _meaning(avro: Type) -> str:
    """What a logical type speaks of, whatever its unit; empty for plain types."""
    return avro.logical.removeprefix("local-").partition("-")[0]


def _resolve_record(writer: Type, reader: Type, field: pa.Field) -> Plan:
    base = (writer, field.type, field.nullable)
    places = {each.name: place for place, each in enumerate(field.type)}
    by_name = {each.name: each for each in writer.fields}
    chosen: dict[str, tuple[int, Plan]] = {}
    defaults: list[Any] = [None] * len(places)
    for each in reader.fields:
        place = places[each.name]
        column = field.type.field(place)
        found = next((n for n in (each.name, *each.aliases) if n in by_name), None)
        if found is not None:
            chosen[found] = (place, _resolve(by_name[found].type, each.type, column))
        elif each.default is NO_DEFAULT:
            reason = f"'{each.name}' is NOT NULL, and {writer.label} does not have it"
            return Impossible(*base, reason)
        else:
            defaults[place] = default_value(each.type, each.default, column)
    steps = [(each.name, each.type, *chosen.get(each.name, (-1, None))) for each in writer.fields]
    return Struct(*base, list(places), steps, defaults)


def _resolve_items(writer: Type, reader: Type, field: pa.Field) -> Plan:
    inside = field.type.value_field if writer.kind == "array" else field.type.item_field
    item = _resolve(writer.items, reader.items, inside)
    return Repeated(writer, field.type, field.nullable, item)


def _resolve_decimal(writer: Type, reader: Type, field: pa.Field) -> Plan:
    base = (writer, field.type, field.nullable)
    if writer.kind not in ("bytes", "fixed"):
        return Impossible(*base, f"{writer.label} cannot be read as decimal")
    scale = writer.scale if writer.logical == "decimal" else field.type.scale
    return Digits(*base, scale)


def _resolve_enum(writer: Type, reader: Type, field: pa.Field) -> Plan:
    texts: list[str | None] = list(writer.symbols)
    if reader.kind == "enum":
        known = set(reader.symbols)
        texts = [text if text in known else reader.symbol_default for text in writer.symbols]
    return Symbol(writer, field.type, field.nullable, texts)


def _resolve_whole(writer: Type, reader: Type, field: pa.Field) -> Plan:
    arrow = field.type
    bits = 64 if pa.types.is_timestamp(arrow) else arrow.bit_width
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    up = down = 1
    if pa.types.is_temporal(arrow) and not pa.types.is_date(arrow):
        up, down = ratio(unit_of(writer) or unit_of(reader), arrow.unit)
        if pa.types.is_time(arrow):
            low, high = 0, 86_400 * _UNITS[arrow.unit] - 1
    if writer.kind == "int":
        low, high = max(low, (-(1 << 31) * up) // down), min(high, ((1 << 31) * up - 1) // down)
    return Whole(writer, arrow, field.nullable, up, down, low, high)


def unit_of(avro: Type) -> str:
    """The unit of a time or timestamp; empty for everything else."""
    return _SUFFIXES.get(avro.logical.rpartition("-")[2], "")


def ratio(have: str, want: str) -> tuple[int, int]:
    """What to multiply with, and then divide by, to get from one unit of time to another."""
    fine, coarse = _UNITS[want], _UNITS[have]
    return (fine // coarse, 1) if fine > coarse else (1, coarse // fine)
