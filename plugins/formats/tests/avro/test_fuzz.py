"""A million broken datums: both paths agree on every one."""

import random

import pyarrow as pa
import pytest
from streamcore.testing.ledger import scenario
from streamcore.types import arrow_schema
from streamcore_formats.avro.flatten import flattener
from streamcore_formats.avro.plain import Avro
from streamcore_formats.avro.reading import PlainDecoder
from streamcore_formats.avro.resolve import resolve_row
from streamcore_formats.avro.schema import parse

TABLES = [
    {"a": "BIGINT", "b": "STRING NOT NULL", "c": "TIMESTAMP(3)", "d": "BOOLEAN"},
    {"a": "INT NOT NULL", "b": "DECIMAL(6, 2)", "c": "DATE", "d": "TIME(3) NOT NULL"},
    {"a": "ARRAY<INT NOT NULL>", "b": "MAP<STRING, BIGINT>", "c": "DOUBLE"},
    {"a": "ROW<x INT NOT NULL, y ROW<z BYTES>>", "b": "ARRAY<ROW<k STRING>>", "c": "TINYINT"},
]


def value(sql, noise):
    """Something of a type, small enough for its neighbours to matter."""
    return {
        "BIGINT": lambda: noise.choice([None, 0, -1, 2**63 - 1, noise.getrandbits(40)]),
        "STRING NOT NULL": lambda: noise.choice(["", "a", "é" * noise.randrange(40)]),
        "TIMESTAMP(3)": lambda: None if noise.random() < 0.2 else noise.getrandbits(41),
        "BOOLEAN": lambda: noise.choice([None, True, False]),
        "INT NOT NULL": lambda: noise.choice([0, 2**31 - 1, -(2**31)]),
        "DECIMAL(6, 2)": lambda: None,
        "DATE": lambda: noise.choice([None, 0, 20_000]),
        "TIME(3) NOT NULL": lambda: noise.randrange(86_400_000),
        "ARRAY<INT NOT NULL>": lambda: [1] * noise.randrange(4) or None,
        "MAP<STRING, BIGINT>": lambda: [(str(n), n) for n in range(noise.randrange(3))],
        "DOUBLE": lambda: noise.choice([None, 0.5, float("inf")]),
        "ROW<x INT NOT NULL, y ROW<z BYTES>>": lambda: noise.choice(
            [None, {"x": 1, "y": None}, {"x": 2, "y": {"z": b"\xff\x00"}}]
        ),
        "ARRAY<ROW<k STRING>>": lambda: [{"k": "v"}, None][: noise.randrange(3)],
        "TINYINT": lambda: noise.choice([None, -128, 127]),
    }[sql]()


def mutated(message, noise):
    out = bytearray(message)
    for _ in range(noise.choice((0, 1, 1, 2, 5))):
        where = noise.randrange(len(out) + 1)
        match noise.randrange(5):
            case 0:
                del out[where : where + noise.randrange(1, 4)]
            case 1:
                out[where:where] = noise.randbytes(noise.randrange(1, 4))
            case 2 if where < len(out):
                out[where] = noise.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFE, 0xFF))
            case 3 if where < len(out):
                out[where] ^= 1 << noise.randrange(8)
            case 4 if noise.random() < 0.1:
                out[where:where] = b"\xff" * 9 + b"\x01"
    return bytes(out)


def judge(columns, batches, size, seed):
    """Decode broken messages on both paths; return how many were good."""
    schema = arrow_schema(columns)
    avro = parse(Avro().derived(schema)[0])
    plan = resolve_row(avro, avro, list(schema))
    fast, exact = PlainDecoder(plan), PlainDecoder(plan)
    exact._reader._native = None
    plain = flattener(pa.struct(list(schema)), avro, bytes_as=pa.binary())
    encoder, noise, good = Avro().encoder(schema), random.Random(seed), 0
    for _ in range(batches):
        arrays = [
            pa.array([value(columns[f.name], noise) for _ in range(size)], f.type) for f in schema
        ]
        sound = encoder.encode(pa.RecordBatch.from_arrays(arrays, schema=schema))
        messages = [mutated(message, noise) for message in sound]
        one, other = fast.decode(messages), exact.decode(messages)
        assert one.rejected == other.rejected
        assert one.rows.num_rows + len(one.rejected) == size
        assert one.origin == other.origin
        rows, same = (repr(plain(d.rows.to_struct_array()).to_pylist()) for d in (one, other))
        assert rows == same
        good += one.rows.num_rows
    return good


@pytest.mark.parametrize("columns", TABLES, ids=lambda columns: "-".join(columns.values()))
def test_broken_datums_are_judged_alike(columns):
    assert 0 < judge(columns, 4, 500, 1) < 2_000


@scenario(24, small={"batches": 4}, full={"batches": 250}, always=False)
@pytest.mark.parametrize("columns", TABLES, ids=lambda columns: "-".join(columns.values()))
def test_a_million_broken_datums_are_judged_alike(columns, scale):
    good = judge(columns, scale.batches, 1_000, scale.seed)
    assert 0 < good < scale.batches * 1_000
    scale.measured["datums"] = f"{scale.batches * 1_000:,}"
