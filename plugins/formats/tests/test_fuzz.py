"""Mutated messages among pristine ones: nothing raises, nobody's row is lost, all paths agree."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Collection
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from streamcore import ROW_KINDS
from streamcore.testing.codec import build
from streamcore.testing.ledger import scenario
from streamcore.types import arrow_schema
from streamcore_formats import csv_read, json_layout
from streamcore_formats.decoding import TwoPathDecoder, doubt_everything

BATCH = 400
FLAT = {
    "id": "BIGINT NOT NULL",
    "name": "STRING",
    "price": "DOUBLE",
    "amount": "DECIMAL(10, 2)",
    "at": "TIMESTAMP(3)",
    "on": "DATE",
    "ok": "BOOLEAN",
    "small": "SMALLINT",
}
NESTED = {
    "id": "BIGINT NOT NULL",
    "tags": "ARRAY<STRING>",
    "place": "ROW<x DOUBLE, y INT NOT NULL>",
}
DEEP = {**NESTED, "sizes": "MAP<STRING, INT>", "days": "ARRAY<ROW<on DATE, at TIME(3)>>"}
TOKENS = [bytes([code]) for code in b'"\\{}[],:\n\r#T\0\xff']
TOKENS += [b"\xed\xa0\x80", b"\xc2\xa0", b"null", b"NaN", b"1e999", b"-0", b"00", b"0x1", b"1_0"]
TOKENS += [b"9" * 25, b'""', b"\\ud800", b"\\u0000", b"{" * 600, b"[" * 600]
TOKENS += [b"0" * 4_400, b'"\xff"', b'["\xff"]', b'"\\ud800"', b'{"x":1,"y":null}', b'"k":', b";"]
TOKENS += [b'"op":"d"', b'"id":1,', b'"type":"UPDATE"']


def row(number: int, rng: random.Random, columns: Collection[str] = FLAT) -> dict:
    made = {
        "id": number,
        "name": rng.choice(["plain", "with, comma", "ünï", "x" * 40, ""]),
        "price": rng.choice([1.5, 100.0, 0.001, -3.25]),
        "amount": rng.choice([1.25, 10, 0.5]),
        "at": f"2024-01-{rng.randrange(1, 29):02} 12:00:00.{rng.randrange(1000):03}",
        "on": "2024-02-29",
        "ok": rng.random() < 0.5,
        "small": rng.randrange(-100, 100),
        "tags": rng.choice([["a", "b" * 30], ["ünï"]]),
        "place": {"x": rng.choice([0.5, -3.25]), "y": rng.randrange(-100, 100)},
        "sizes": rng.choice([{}, {"s": 1, "m": None}, None]),
        "days": [{"on": "2024-02-29", "at": "12:30:00.5"}, None][: rng.randrange(3)],
    }
    return {name: made[name] for name in columns}


def compact(value) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def as_json(row):
    return compact(row)


def as_csv(row):
    return ",".join(map(cell, row.values())).encode()


def cell(value) -> str:
    if isinstance(value, list | dict):
        return ";".join(map(cell, value.values() if isinstance(value, dict) else value))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f'"{text}"' if "," in text else text


def as_images(key, insert):
    return lambda row: compact({"before": None, "after": row, key: insert, "source": {"db": "d"}})


def as_maxwell(row):
    return compact({"data": row, "type": "insert", "ts": 1700000000})


def as_canal(row):
    told = {
        key: value if value is None or isinstance(value, list | dict) else cell(value).strip('"')
        for key, value in row.items()
    }
    return compact({"data": [told], "type": "INSERT", "table": "t", "database": "d"})


TABLES = {"raw": [["id"]], "csv": [FLAT, NESTED]}
NO_ROW = {"raw": re.compile(b"$"), "csv": re.compile(b"$"), "json": re.compile(rb"\s*($|\[|null)")}
"""What rightly holds neither a row nor a reason; a message of changes may always."""
FORMATS = {
    "json": as_json,
    "csv": as_csv,
    "debezium-json": as_images("op", "c"),
    "ogg-json": as_images("op_type", "I"),
    "maxwell-json": as_maxwell,
    "canal-json": as_canal,
    "raw": lambda row: row["id"].to_bytes(8, "big", signed=True),
}


def mutated(message: bytes, rng: random.Random) -> bytes | None:
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(message) + 1)
        to = min(len(message), at + rng.choice([0, 1, 1, 2, 5, 20]))
        match rng.randrange(9):
            case 0:
                message = message[:at] + rng.choice(TOKENS) + message[at:]
            case 1:
                message = message[:at] + rng.choice(TOKENS) + message[to:]
            case 2:
                message = message[:at] + message[to:]
            case 3:
                message = message[:at]
            case 4:
                message = message[:at] + message[at:to] * 2 + message[to:]
            case 5:
                message = message[:at] + bytes([rng.randrange(256)]) + message[at + 1 :]
            case 6:
                message = message + message[:at]
            case 7:
                other = rng.randrange(len(message) + 1)
                message = message[:at] + message[other : other + 15] + message[to:]
            case 8 if digits := [*re.finditer(rb"[0-9]+", message)]:
                found = rng.choice(digits)
                quote = rng.choice([b"", b'"'])
                padded = quote + b"0" * rng.choice([1, 30, 4_400]) + found[0] + quote
                message = message[: found.start()] + padded + message[found.end() :]
    return rng.choice([message] * 30 + [None, b""])


def check(identifier: str, decoder: TwoPathDecoder, messages, pristine: dict[int, int]) -> tuple:
    """Decode, see that the pristine rows are there, and give back all that was told."""
    decoded = decoder.decode(messages)
    decoded.rows.validate(full=True)
    origin = range(len(messages)) if decoded.origin is None else decoded.origin.to_pylist()
    assert list(origin) == sorted(origin)
    assert decoded.rows.num_rows == len(origin)
    assert {index for index, _ in decoded.rejected}.isdisjoint(origin)
    assert all(
        reason.encode() and "\n" not in reason and len(reason) < 400
        for _, reason in decoded.rejected
    )
    told = {*origin, *(index for index, _ in decoded.rejected)}
    if identifier in NO_ROW and not decoded.ignored:
        untold = [each for index, each in enumerate(messages) if index not in told]
        assert [each for each in untold if not NO_ROW[identifier].match(each or b"")] == []
    ids = decoded.rows["id"].to_pylist()
    found = {}
    for index, number in zip(origin, ids, strict=True):
        found.setdefault(index, []).append(number)
    assert {index: found.get(index) for index in pristine} == {i: [n] for i, n in pristine.items()}
    if decoded.kinds is not None:
        assert set(decoded.kinds.to_pylist()) <= set(range(len(ROW_KINDS)))
    values = [comparable(column) for column in decoded.rows.columns]
    kinds = decoded.kinds and decoded.kinds.to_pylist()
    return list(origin), values, kinds, sorted(decoded.rejected), decoded.ignored


def comparable(array: pa.Array) -> str:
    """All values as text: NaN equals itself there, and times and dates are numbers."""
    kind = array.type
    if pa.types.is_list(kind):
        return f"{array.is_valid().to_pylist()} {pc.list_value_length(array).to_pylist()} " + (
            comparable(array.flatten())
        )
    if pa.types.is_struct(kind):
        return f"{array.is_valid().to_pylist()} {[comparable(part) for part in array.flatten()]}"
    if pa.types.is_temporal(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return repr(array.to_pylist())


def schema_of(columns: Collection[str]) -> pa.Schema:
    return arrow_schema({name: {**FLAT, **DEEP}[name] for name in columns})


def fuzz(identifier: str, seed: int, batches: int) -> int:
    rng = random.Random(f"{identifier} {seed}")
    tables = TABLES.get(identifier, [FLAT, DEEP])
    options = [{}] if identifier == "raw" else [{}, {"ignore-parse-errors": "true"}]
    for number in range(batches):
        messages, pristine = [], {}
        columns = tables[number % len(tables)]
        for index in range(BATCH):
            if index % 4 == 3:
                pristine[index] = index
                messages.append(FORMATS[identifier](row(index, rng, columns)))
            else:
                message = FORMATS[identifier](row(rng.randrange(10**6), rng, columns))
                messages.append(mutated(message, rng))
        plugin = build(identifier, rng.choice(options))
        many = rng.choice([1, 10**9])
        with (
            mock.patch.object(json_layout, "_MANY", many),
            mock.patch.object(csv_read, "_MANY", many),
        ):
            decoder = plugin.decoder(schema_of(columns))
            told = check(identifier, decoder, messages, pristine)
        if number % 3 == 0:  # so that each table has its turn
            slow = TwoPathDecoder(
                decoder._schema,
                doubt_everything(decoder._schema),
                decoder._exact,
                ignoring=decoder._ignoring,
                changelog=decoder._changelog,
            )
            assert check(identifier, slow, messages, pristine) == told
    return batches * BATCH


@pytest.mark.parametrize("identifier", FORMATS)
def test_a_few_thousand_mutated_messages_harm_nobody(identifier):
    assert fuzz(identifier, seed=1, batches=6) == 2400


@scenario(24, small={"batches": 6}, full={"batches": 480}, always=False)
@pytest.mark.parametrize("identifier", FORMATS)
def test_a_million_mutated_messages_harm_nobody(identifier, scale):
    """A quarter of the messages are pristine, so that a million over all formats are not."""
    messages = fuzz(identifier, seed=scale.seed, batches=scale.batches)
    assert messages == scale.batches * BATCH
    scale.measured["messages"] = f"{messages:,}"
