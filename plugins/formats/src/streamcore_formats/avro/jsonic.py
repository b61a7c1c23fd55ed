"""Avro's JSON encoding: unions say which branch they hold, bytes are one character each."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from streamcore import Decoded, RecordError, Rejected

from ..numbers import FLOAT_LIMIT
from . import resolve
from .cursor import BadDatum
from .exact import decimal_from, sql
from .flatten import flattener
from .puts import BadValue, branch_for, symbol_index
from .reading import Assembler, Piece, without_nulls
from .schema import Type

Read = Callable[[Any], Any]
_ANY_DEPTH = re.compile(r"(\[[^\]]*\]){5,}`$")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class JsonDecoder:
    """Reads datums in JSON, one message at a time."""

    def __init__(self, plan: resolve.Plan) -> None:
        self._read, self._assembler = _reader(plan), Assembler(list(plan.arrow))
        self._arrow = plan.arrow

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        rows, origin, rejected = [], [], []
        for index, message in zip(*reversed(without_nulls(messages)), strict=True):
            try:
                rows.append(self._read(msgspec.json.decode(message)))
                origin.append(index)
            except BadDatum as bad:
                rejected.append(Rejected(index, str(bad)))
            except msgspec.DecodeError as bad:  # which tells the place of a value level by level
                rejected.append(Rejected(index, _ANY_DEPTH.sub("[...]...`", str(bad))))
            except (RecursionError, UnicodeDecodeError) as error:
                why = "not UTF-8" if isinstance(error, ValueError) else "nested too deeply"
                rejected.append(Rejected(index, why))
        columns = [pa.array([row[field.name] for row in rows], field.type) for field in self._arrow]
        return self._assembler.decoded([Piece(columns, origin, rejected)], len(messages))


def _reader(plan: resolve.Plan) -> Read:
    match plan:
        case resolve.Struct():
            return _struct(plan)
        case resolve.Choice():
            return _choice(plan)
        case resolve.Repeated():
            return _repeated(plan)
        case resolve.Whole():
            return lambda value: _whole(plan, value)
        case resolve.Digits():
            return lambda value: decimal_from(_latin(value), plan.scale, plan.arrow, _quoted(value))
        case _:
            return _simple(plan)


def _expect(value: Any, kind: type | tuple[type, ...], what: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BadDatum(f"expected {what}, found {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 60 else text[:57] + "..."


def _quoted(text: str) -> str:
    return f"'{text}'" if len(text) < 60 else f"'{text[:57]}...'"


def _latin(value: Any) -> bytes:
    try:
        data: bytes = _expect(value, str, "bytes as text").encode("latin-1")
    except UnicodeEncodeError:
        raise BadDatum("bytes have only the characters from U+0000 to U+00FF") from None
    return data


def _whole(plan: resolve.Whole, value: Any) -> int:
    number: int = _expect(value, int, plan.writer.kind) * plan.up // plan.down
    if plan.low <= number <= plan.high:
        return number
    raise BadDatum(f"{_shown(value)} does not fit {sql(plan.arrow)}")


def _simple(plan: resolve.Plan) -> Read:
    kind = plan.writer.kind
    if kind == "boolean":
        return lambda value: _expect(value, bool, "true or false")
    if kind == "bytes":
        return _latin
    if kind == "string":
        return lambda value: _expect(value, str, "text")

    limit = FLOAT_LIMIT if pa.types.is_float32(plan.arrow) else math.inf

    def read_float(value: Any) -> float:
        if isinstance(value, str) and value in _SPECIAL:
            return _SPECIAL[value]
        try:
            number = float(_expect(value, (int, float), "a number"))
        except OverflowError:  # a whole number of hundreds of digits
            number = math.inf
        if abs(number) < limit:
            return number
        raise BadDatum(f"{_shown(value)} does not fit {sql(plan.arrow)}")

    return read_float


def _struct(plan: resolve.Struct) -> Read:
    steps = [
        (name, place, None if each is None else _reader(each))
        for name, _, place, each in plan.steps
    ]
    known = {name for name, _, _ in steps}

    def read(value: Any) -> dict[str, Any]:
        _expect(value, dict, "an object")
        values = plan.defaults.copy()
        for name, place, step in steps:
            if name not in value:
                raise BadDatum(f"'{name}' is missing")
            if step is None:
                continue
            try:
                values[place] = step(value[name])
            except BadDatum as bad:
                bad.path.append(name)
                raise
        if len(value) > len(steps):
            unknown = next(name for name in value if name not in known)
            raise BadDatum(f"{_quoted(unknown)} is unknown")
        return dict(zip(plan.names, values, strict=True))

    return read


def _repeated(plan: resolve.Repeated) -> Read:
    item = _reader(plan.item)
    if plan.writer.kind == "array":
        return lambda value: [item(each) for each in _expect(value, list, "an array")]
    return lambda value: [
        (key, item(each)) for key, each in _expect(value, dict, "an object").items()
    ]


def _choice(plan: resolve.Choice) -> Read:
    reads = {
        _tag(avro): None if branch is None else _reader(branch)
        for avro, branch in zip(plan.writer.branches, plan.branches, strict=True)
    }
    kinds = " or ".join(reads)

    def read(value: Any) -> Any:
        if value is None and "null" in reads:
            return None
        if not isinstance(value, dict) or len(value) != 1:
            raise BadDatum(f"a union is null or an object that names its type: {kinds}")
        tag, inner = next(iter(value.items()))
        step = reads.get(tag)
        if step is None:
            raise BadDatum(f"{_quoted(tag)} is no branch of the union; there are {kinds}")
        return step(inner)

    return read


def _tag(avro: Type) -> str:
    return avro.name or avro.kind


class JsonEncoder:
    """Writes datums in JSON."""

    def __init__(self, schema: pa.Schema, avro: Type) -> None:
        self._avro = avro
        self._flatten = [
            flattener(schema.field(place).type, field.type, bytes_as=pa.binary())
            for place, field in enumerate(avro.fields)
        ]

    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
        columns = [
            flatten(column).to_pylist()
            for flatten, column in zip(self._flatten, rows.columns, strict=True)
        ]
        return [self._one(n, row) for n, row in enumerate(zip(*columns, strict=True))]

    def _one(self, number: int, values: tuple[Any, ...]) -> bytes:
        try:
            plain = _fields(self._avro, values)
        except BadValue as bad:
            raise RecordError(f"row {number}: {bad}") from None
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()


def _fields(avro: Type, values: Sequence[Any]) -> dict[str, Any]:
    plain = {}
    for field, value in zip(avro.fields, values, strict=True):
        try:
            plain[field.name] = _plain(field.type, value)
        except BadValue as bad:
            bad.path.append(field.name)
            raise
    return plain


def _plain(avro: Type, value: Any) -> Any:
    if avro.kind == "union":
        branch = avro.branches[branch_for(avro, value)]
        return None if value is None else {_tag(branch): _plain(branch, value)}
    if value is None:
        raise BadValue("null, but it is NOT NULL")
    match avro.kind:
        case "record":
            return _fields(avro, list(value.values()))
        case "array":
            return [_plain(avro.items, item) for item in value]
        case "map":
            return {key: _plain(avro.items, item) for key, item in value}
        case "bytes" | "fixed":
            return value.decode("latin-1")
        case "enum":
            return avro.symbols[symbol_index(avro, value)]
        case "float" | "double" if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case "float":
            return _shortest(value)
    return value


def _shortest(value: float) -> float:
    """The double with the fewest digits that is still the same 32-bit float."""
    for digits in range(6, 9):
        short = float(f"{value:.{digits}g}")
        if struct.unpack("<f", struct.pack("<f", short))[0] == value:
            return short
    return value
