"""Mutated binary messages among pristine ones: nothing raises, and nobody's row is lost."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from streamcore.testing.ledger import scenario
from streamcore.types import arrow_schema
from streamcore_formats.avro import client
from streamcore_formats.avro.confluent import AvroConfluent
from streamcore_formats.avro.debezium import DebeziumAvroConfluent
from streamcore_formats.avro.plain import Avro, Encoding
from streamcore_formats.avro.schema import parse
from streamcore_formats.protobuf.format import Protobuf

BATCH = 400
TABLE = arrow_schema(
    {
        "id": "BIGINT NOT NULL",
        "name": "STRING",
        "amount": "DECIMAL(10, 2)",
        "at": "TIMESTAMP(3)",
        "tags": "ARRAY<STRING>",
        "sizes": "MAP<STRING, INT>",
        "place": "ROW<x DOUBLE, y SMALLINT>",
    }
)
OPTION = arrow_schema(
    {
        "negative_int_value": "BIGINT",
        "identifier_value": "STRING",
        "positive_int_value": "BIGINT",
        "double_value": "DOUBLE",
        "string_value": "BYTES",
        "name": "ARRAY<ROW<name_part STRING, is_extension BOOLEAN>>",
    }
)
WORDS = [b"9" * 400, b"9" * 4_400, b"1e999", b"1e300", b"NaN", b'"\\ud800"', b'"Infinity"', b"null"]
WORDS += [b'{"int":1}', b'{"' + b"t" * 500 + b'":1}', b'"k":', b"[" * 600, b'{"a":' * 600, b"}"]
URL = "http://127.0.0.1:9"
PLUGINS = {
    "avro": Avro(),
    "avro.encoding=json": Avro(encoding=Encoding.JSON),
    "avro-confluent": AvroConfluent(url=URL, subject="s"),
    "debezium-avro-confluent": DebeziumAvroConfluent(url=URL, subject="d"),
    "protobuf": Protobuf(message="google.protobuf.descriptor_pb2.UninterpretedOption"),
}


class OneSchema:
    """Stands in for a registry that knows what was written, and nothing else."""

    def register(self, subject, text):
        self.text = text
        return 1

    def schema(self, identifier):
        if identifier != 1:
            raise client.UnknownSchema(f"schema id {identifier} is unknown")
        return parse(self.text)


def row(number, rng):
    if rng.random() < 0.1:
        return {"id": number}
    return {
        "id": number,
        "name": rng.choice(["plain", "ünï", "x" * 200, ""]),
        "amount": rng.choice([None, 1, 99999999]),
        "at": rng.randrange(2**41),
        "tags": rng.choice([None, [], ["a", None, "b" * 70]]),
        "sizes": rng.choice([[], [("s", 1), ("m", None)]]),
        "place": rng.choice([None, {"x": 0.5, "y": -3}]),
    }


def option(number, rng):
    return {
        "negative_int_value": number,
        "identifier_value": rng.choice([None, "plain", "ünï", "x" * 200]),
        "positive_int_value": rng.choice([None, 0, 2**62]),
        "double_value": rng.choice([None, 0.5]),
        "string_value": rng.choice([None, b"", b"\xff\x00"]),
        "name": [{"name_part": "a", "is_extension": True}] * rng.randrange(3),
    }


def mutated(message: bytes, rng: random.Random) -> bytes | None:
    out = bytearray(message)
    for _ in range(rng.choice((1, 1, 2, 5))):
        where = rng.randrange(len(out) + 1)
        match rng.randrange(7):
            case 0:
                del out[where : where + rng.randrange(1, 4)]
            case 1:
                out[where:where] = rng.randbytes(rng.randrange(1, 4))
            case 2:
                out[where : where + 1] = bytes([rng.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFE, 0xFF))])
            case 3:
                del out[where:]
            case 4:
                out[where:where] = out[: rng.randrange(20)]
            case 5:
                out[where:where] = b"\xff" * 9 + b"\x01"
            case 6:
                out[where : where + rng.randrange(3)] = rng.choice(WORDS)
    return rng.choice([bytes(out)] * 30 + [None, b""])


def fuzz(identifier: str, seed: int, batches: int) -> int:
    """How many mutated messages were read without harm."""
    rng = random.Random(f"{identifier} {seed}")
    plugin = PLUGINS[identifier]
    if identifier.endswith("confluent"):
        client._registries[plugin.settings()] = OneSchema()
    schema, make = (OPTION, option) if identifier == "protobuf" else (TABLE, row)
    rows = [make(number, rng) for number in range(BATCH)]
    sound = plugin.encoder(schema).encode(pa.RecordBatch.from_pylist(rows, schema=schema))
    decoder, count = plugin.decoder(schema), 0
    for _ in range(batches):
        pristine = set(rng.sample(range(BATCH), rng.choice([BATCH // 4, BATCH - 5])))
        messages = [
            message if index in pristine else mutated(message, rng)
            for index, message in enumerate(sound)
        ]
        decoded = decoder.decode(messages)
        decoded.rows.validate(full=True)
        origin = range(BATCH) if decoded.origin is None else decoded.origin.to_pylist()
        assert list(origin) == sorted(origin)
        assert decoded.rows.num_rows == len(origin)
        told = {*origin, *(index for index, _ in decoded.rejected)}
        assert len(told) == len(origin) + len(decoded.rejected)  # none is both, or twice
        if not identifier.startswith("debezium"):  # whose envelopes may rightly hold no row
            assert told >= {index for index, message in enumerate(messages) if message}
        assert all(reason.encode() and len(reason) < 400 for _, reason in decoded.rejected)
        ids = dict(zip(origin, decoded.rows.column(0).to_pylist(), strict=True))
        assert {index: ids.get(index) for index in pristine} == {index: index for index in pristine}
        count += BATCH - len(pristine)
    return count


@pytest.mark.parametrize("identifier", PLUGINS)
def test_a_few_thousand_mutated_messages_harm_nobody(identifier):
    assert fuzz(identifier, seed=1, batches=12) > 1_000


@scenario(24, small={"batches": 12}, full={"batches": 800}, always=False)
@pytest.mark.parametrize("identifier", PLUGINS)
def test_many_mutated_messages_harm_nobody(identifier, scale):
    mutants = fuzz(identifier, seed=scale.seed, batches=scale.batches)
    assert mutants > scale.batches * BATCH // 8  # half of the batches hold 300 of them
    scale.measured["mutants"] = f"{mutants:,}"
