"""Datums made to hurt: each costs itself, little time and little memory."""

import json
import random
import resource
import time

import pytest
from streamcore.testing import encode
from streamcore.types import arrow_schema
from streamcore_formats.avro.plain import Avro
from streamcore_formats.avro.reading import DatumReader, PlainDecoder
from streamcore_formats.avro.resolve import resolve_row
from streamcore_formats.avro.schema import SchemaError, parse

MOST_SECONDS = 10
MOST_MEGABYTES = 1_500


def long(number):
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*out, rest))


@pytest.fixture(autouse=True)
def bounded():
    """Whatever a test does, it may take neither long nor much."""
    start = time.process_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert time.process_time() - start < MOST_SECONDS
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < MOST_MEGABYTES * 1024


def record(**fields):
    plain = [{"name": name, "type": kind} for name, kind in fields.items()]
    return parse(json.dumps({"type": "record", "name": "r", "fields": plain}))


def decode(writer, columns, messages):
    schema = arrow_schema(columns)
    reader = parse(Avro().derived(schema)[0])
    return PlainDecoder(resolve_row(writer, reader, list(schema))).decode(messages)


MIN = -(1 << 63)
HUGE = [10**9, 2 * 10**8, 2**31, 2**62, 2**63 - 1]


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("sql", ["STRING", "BYTES", "DECIMAL(10, 2)"])
def test_a_declared_length_is_not_believed(sql, size):
    schema = arrow_schema({"a": f"{sql} NOT NULL"})
    decoded = Avro().decoder(schema).decode([b"\x02\x31", long(size) + b"x" * 100, b"\x02\x32"])
    assert decoded.rows.num_rows == 2
    assert "only 100 are left" in decoded.rejected[0].reason


@pytest.mark.parametrize("count", [*HUGE, *(-huge for huge in HUGE), MIN, MIN + 1])
@pytest.mark.parametrize("sql", ["ARRAY<INT>", "MAP<STRING, INT>", "ARRAY<ROW<x INT>>"])
def test_a_declared_item_count_is_not_believed(sql, count):
    schema = arrow_schema({"a": f"{sql} NOT NULL", "b": "INT NOT NULL"})
    [good] = encode("avro", schema, [{"a": [], "b": 7}])
    size = long(5) if count < 0 else b""
    decoded = Avro().decoder(schema).decode([good, long(count) + size + b"\x00" * 50, good])
    assert decoded.rows.to_pylist() == [{"a": [], "b": 7}] * 2
    assert "items declared at byte 0" in decoded.rejected[0].reason


@pytest.mark.parametrize("count", [10_001, 2 * 10**8, 2**62, -(2 * 10**8)])
@pytest.mark.parametrize(
    "item",
    [
        "null",
        {"type": "record", "name": "e", "fields": []},
        {"type": "fixed", "name": "e", "size": 0},
    ],
)
def test_items_without_bytes_are_counted_before_they_are_made(item, count):
    writer = record(a={"type": "array", "items": item}, b="int")
    size = long(0) if count < 0 else b""
    message = long(count) + size + b"\x00\x0e"
    rejected = decode(writer, {"a": "ARRAY<ROW<x INT>>", "b": "INT"}, [message]).rejected
    assert len(rejected) == 1
    skipped = decode(writer, {"b": "INT"}, [message])
    assert skipped.rows.num_rows + len(skipped.rejected) == 1


def test_null_rows_that_would_fill_memory_are_refused():
    wide = ", ".join(f"c{n} BIGINT" for n in range(200))
    schema = arrow_schema({"a": f"ARRAY<ROW<{wide}>> NOT NULL"})
    items = 1_000_000
    bomb = long(items) + b"\x00" * items + b"\x00"
    decoded = Avro().decoder(schema).decode([b"\x00", bomb, b"\x00"])
    assert decoded.rows.num_rows == 2
    assert "expands to more than" in decoded.rejected[0].reason


def test_a_union_of_null_alone_is_always_null():
    writer = record(a=["null"], b="int")
    assert decode(writer, {"a": "INT", "b": "INT"}, [b"\x00\x0e"]).rows.to_pylist() == [
        {"a": None, "b": 7}
    ]
    refused = decode(writer, {"a": "INT NOT NULL", "b": "INT"}, [b"\x00\x0e", b"\x02\x0e"])
    assert [why for _, why in refused.rejected] == [
        "'a': null, but it is NOT NULL",
        "'a': union branch 1 of 1 at byte 0",
    ]


def test_a_type_inside_itself_is_followed_only_so_deep():
    tree = {"type": "record", "name": "t", "fields": [{"name": "next", "type": ["null", "t"]}]}
    writer = record(a=tree, b="int")
    deep, shallow = b"\x02" * 100_000 + b"\x00\x0e", b"\x02\x02\x00\x0e"
    decoded = decode(writer, {"b": "INT"}, [shallow, deep, shallow])
    assert decoded.rows.to_pylist() == [{"b": 7}, {"b": 7}]
    assert "nested too deeply" in decoded.rejected[0].reason


def test_a_record_that_needs_itself_has_no_datums():
    endless = {"type": "record", "name": "t", "fields": [{"name": "next", "type": "t"}]}
    decoded = decode(record(a=endless, b="int"), {"b": "INT"}, [b"\x0e", b"\x0e\x0e"])
    assert [index for index, _ in decoded.rejected] == [0, 1]


def test_a_schema_that_doubles_at_each_level_stays_small():
    fields = [
        {
            "name": "x0",
            "type": {"type": "record", "name": "r0", "fields": [{"name": "v", "type": "int"}]},
        }
    ]
    inner = fields[0]["type"]
    for level in range(1, 60):
        inner = {
            "type": "record",
            "name": f"r{level}",
            "fields": [{"name": "p", "type": inner}, {"name": "q", "type": f"r{level - 1}"}],
        }
    writer = record(b="int", a=inner)
    assert decode(writer, {"b": "INT"}, [b"\x0e\x00"]).rejected


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ('{"type":"array","items":' * 5_000 + '"int"' + "}" * 5_000, "nested deeper than"),
        ("[" * 100_000, "nested deeper than"),
        ("nonsense", "not JSON"),
        ("{}", "unknown type 'None'"),
        ("[]", "a union without branches"),
        ('[["int"]]', "a union directly inside a union"),
        ('{"type":"record","name":"r"}', "has no list of fields"),
        ('{"type":"record","fields":[]}', "record without name"),
        ('{"type":"fixed","name":"f","size":-1}', "size '-1'"),
        ('{"type":"enum","name":"e"}', "has no list of symbols"),
    ],
)
def test_a_hostile_schema_is_an_error_not_a_crash(text, trouble):
    with pytest.raises(SchemaError) as error:
        parse(text)
    assert trouble in str(error.value)


def test_a_ten_megabyte_message_among_small_ones_is_read():
    schema = arrow_schema({"a": "STRING NOT NULL", "b": "ARRAY<INT> NOT NULL"})
    big = {"a": "x" * 10_000_000, "b": list(range(200_000))}
    rows = [{"a": "s", "b": [1]}, big, {"a": "t", "b": []}]
    decoded = Avro().decoder(schema).decode(encode("avro", schema, rows))
    assert decoded.rows.to_pylist() == rows


def test_random_bytes_are_judged_alike_by_both_paths_and_never_crash():
    columns = {"a": "BIGINT NOT NULL", "b": "STRING", "c": "ARRAY<MAP<STRING, INT>>"}
    schema = arrow_schema(columns)
    avro = parse(Avro().derived(schema)[0])
    plan = resolve_row(avro, avro, list(schema))
    exact = DatumReader(plan)
    exact._native = None
    noise = random.Random(7)
    likely = bytes([0, 0, 0, 2, 2, 4, 0x41, 0x80, 0xFF])
    messages = [bytes(noise.choices(likely, k=noise.randrange(12))) for _ in range(20_000)]
    decoded = PlainDecoder(plan).decode(messages)
    [piece] = exact.read(messages, range(len(messages)))
    assert decoded.rejected == piece.rejected
    assert decoded.rows.columns == piece.columns
    assert 0 < decoded.rows.num_rows < len(messages)
