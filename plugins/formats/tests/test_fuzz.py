"""Mutated messages among pristine ones: nothing raises, nobody's row is lost, all paths agree."""

from __future__ import annotations

import json
import random
from unittest import mock

import pyarrow as pa
import pytest
from streamcore import ROW_KINDS
from streamcore.testing.codec import build
from streamcore.types import arrow_field
from streamcore_formats import csv_read, json_layout
from streamcore_formats.decoding import TwoPathDecoder, doubt_everything

BATCH = 400
TABLE = pa.schema(
    [
        arrow_field("id", "BIGINT", nullable=False),
        arrow_field("name", "STRING"),
        arrow_field("price", "DOUBLE"),
        arrow_field("amount", "DECIMAL(10, 2)"),
        arrow_field("at", "TIMESTAMP(3)"),
        arrow_field("on", "DATE"),
        arrow_field("ok", "BOOLEAN"),
        arrow_field("small", "SMALLINT"),
    ]
)
TOKENS = [bytes([code]) for code in b'"\\{}[],:\n\r#T\0\xff']
TOKENS += [b"\xed\xa0\x80", b"\xc2\xa0", b"null", b"NaN", b"1e999", b"-0", b"00", b"0x1", b"1_0"]
TOKENS += [b"9" * 25, b'""', b"\\ud800", b"\\u0000", b"{" * 600, b"[" * 600]
TOKENS += [b'"op":"d"', b'"id":1,', b'"type":"UPDATE"']


def row(number: int, rng: random.Random) -> dict:
    return {
        "id": number,
        "name": rng.choice(["plain", "with, comma", "ünï", "x" * 40, ""]),
        "price": rng.choice([1.5, 100.0, 0.001, -3.25]),
        "amount": rng.choice([1.25, 10, 0.5]),
        "at": f"2024-01-{rng.randrange(1, 29):02} 12:00:00.{rng.randrange(1000):03}",
        "on": "2024-02-29",
        "ok": rng.random() < 0.5,
        "small": rng.randrange(-100, 100),
    }


def compact(value) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def as_json(number, rng):
    return compact(row(number, rng))


def as_csv(number, rng):
    cells = row(number, rng)
    cells["name"] = '"' + cells["name"] + '"' if "," in cells["name"] else cells["name"]
    cells["ok"] = str(cells["ok"]).lower()
    return ",".join(str(cell) for cell in cells.values()).encode()


def as_images(key, insert):
    def make(number, rng):
        told = {"before": None, "after": row(number, rng), key: insert, "source": {"db": "d"}}
        return compact(told)

    return make


def as_maxwell(number, rng):
    return compact({"data": row(number, rng), "type": "insert", "ts": 1700000000})


def as_canal(number, rng):
    told = row(number, rng)
    told = {key: str(value).lower() if key == "ok" else str(value) for key, value in told.items()}
    return compact({"data": [told], "type": "INSERT", "table": "t", "database": "d"})


FORMATS = {
    "json": as_json,
    "csv": as_csv,
    "debezium-json": as_images("op", "c"),
    "ogg-json": as_images("op_type", "I"),
    "maxwell-json": as_maxwell,
    "canal-json": as_canal,
    "raw": lambda number, rng: number.to_bytes(8, "big", signed=True),
}


def mutated(message: bytes, rng: random.Random) -> bytes | None:
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(message) + 1)
        to = min(len(message), at + rng.choice([0, 1, 1, 2, 5, 20]))
        match rng.randrange(8):
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
        reason and "\n" not in reason and len(reason) < 400 for _, reason in decoded.rejected
    )
    ids = decoded.rows["id"].to_pylist()
    found = {}
    for index, number in zip(origin, ids, strict=True):
        found.setdefault(index, []).append(number)
    assert {index: found.get(index) for index in pristine} == {i: [n] for i, n in pristine.items()}
    if decoded.kinds is not None:
        assert set(decoded.kinds.to_pylist()) <= set(range(len(ROW_KINDS)))
    return list(origin), repr(ids), sorted(decoded.rejected), decoded.ignored


def fuzz(identifier: str, seed: int, batches: int) -> int:
    rng = random.Random(f"{identifier} {seed}")
    make = FORMATS[identifier]
    schema = pa.schema([TABLE.field("id")]) if identifier == "raw" else TABLE
    options = [{}] if identifier == "raw" else [{}, {"ignore-parse-errors": "true"}]
    for number in range(batches):
        messages, pristine = [], {}
        for index in range(BATCH):
            message = make(rng.randrange(10**6), rng)
            if index % 4 == 3:
                pristine[index] = index
                message = make(index, rng)
            else:
                message = mutated(message, rng)
            messages.append(message)
        plugin = build(identifier, rng.choice(options))
        many = rng.choice([1, 10**9])
        with (
            mock.patch.object(json_layout, "_MANY", many),
            mock.patch.object(csv_read, "_MANY", many),
        ):
            decoder = plugin.decoder(schema)
            told = check(identifier, decoder, messages, pristine)
        if number % 4 == 0:
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


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("identifier", FORMATS)
def test_a_million_mutated_messages_harm_nobody(identifier):
    """A quarter of the messages are pristine, so that a million over all formats are not."""
    assert fuzz(identifier, seed=2, batches=480) == 192_000
