"""Our datums against the reference implementation, and our two paths against each other."""

import io
import json

import avro.errors
import avro.io
import avro.schema
import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from streamcore.testing import strategies
from streamcore.types import arrow_schema
from streamcore_formats.avro.derive import Derivation
from streamcore_formats.avro.flatten import flattener
from streamcore_formats.avro.reading import DatumReader, PlainDecoder
from streamcore_formats.avro.resolve import resolve_row
from streamcore_formats.avro.schema import parse
from streamcore_formats.avro.writing import DatumWriter

PLAIN = ("BOOLEAN", "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BYTES")
ALL = (*PLAIN, "SMALLINT", "DECIMAL(9, 2)", "DECIMAL(38, 10)", "DATE", "TIME(3)", "TIME(0)")
ALL += ("TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(6)", "MULTISET<STRING>")
PHASES = [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]
RELAXED = settings(
    deadline=None, database=None, phases=PHASES, suppress_health_check=list(HealthCheck)
)


def types(scalars, depth=2):
    found = st.sampled_from(scalars)
    optional = st.sampled_from(["", " NOT NULL"])
    for _ in range(depth):
        item = st.builds(str.__add__, found, optional)
        found = st.one_of(
            st.sampled_from(scalars),
            item.map("ARRAY<{}>".format),
            item.map("MAP<STRING, {}>".format),
            st.lists(item, min_size=1, max_size=3).map(
                lambda texts: "ROW<" + ", ".join(f"f{n} {t}" for n, t in enumerate(texts)) + ">"
            ),
        )
    return st.builds(str.__add__, found, optional)


def tables(scalars, most=5):
    texts = st.lists(types(scalars), min_size=1, max_size=most)
    return texts.map(lambda found: arrow_schema({f"c{n}": text for n, text in enumerate(found)}))


def avro_text(schema):
    derivation = Derivation(legacy_timestamps=False)
    text = json.dumps(derivation.record(schema, "record"))
    assert not derivation.problems
    return text


def batches(schema, most=6):
    rows = st.lists(strategies.rows(schema), min_size=1, max_size=most)
    return rows.map(lambda found: pa.RecordBatch.from_pylist(found, schema=schema))


def write(batch):
    return DatumWriter(batch.schema, parse(avro_text(batch.schema))).write(batch)


def read(schema, messages):
    avro_type = parse(avro_text(schema))
    return PlainDecoder(resolve_row(avro_type, avro_type, list(schema))).decode(messages)


def without_logical(plain):
    if isinstance(plain, dict):
        dropped = ("logicalType", "precision", "scale")
        return {k: without_logical(v) for k, v in plain.items() if k not in dropped}
    return [without_logical(each) for each in plain] if isinstance(plain, list) else plain


def reference_write(text, datum):
    out = io.BytesIO()
    avro.io.DatumWriter(avro.schema.parse(text)).write(datum, avro.io.BinaryEncoder(out))
    return out.getvalue()


def reference_read(message, writer, reader):
    decoder = avro.io.BinaryDecoder(io.BytesIO(message))
    return avro.io.DatumReader(avro.schema.parse(writer), avro.schema.parse(reader)).read(decoder)


@RELAXED
@given(st.data())
def test_the_reference_reads_what_we_write_and_we_what_it_writes(data):
    schema = data.draw(tables(PLAIN))
    batch = data.draw(batches(schema))
    text = avro_text(schema)
    messages = write(batch)
    rows = batch.to_pylist(maps_as_pydicts="strict")
    assert [reference_read(message, text, text) for message in messages] == rows
    again = read(schema, [reference_write(text, row) for row in rows])
    assert again.rows.equals(batch)


@RELAXED
@given(st.data())
def test_logical_types_have_the_bytes_fastavro_gives_them(data):
    schema = data.draw(tables(ALL, 3))
    batch = data.draw(batches(schema))
    parsed = fastavro.parse_schema(json.loads(avro_text(schema)))
    for message, row in zip(write(batch), batch.to_pylist(maps_as_pydicts="strict"), strict=True):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        assert out.getvalue() == message


# --- resolution ---------------------------------------------------------------------------

WIDER = {"INT": ["INT", "BIGINT", "FLOAT", "DOUBLE"], "BIGINT": ["BIGINT", "FLOAT", "DOUBLE"]}
WIDER |= {"TINYINT": ["INT", "BIGINT", "DOUBLE"], "FLOAT": ["FLOAT", "DOUBLE"]}
WIDER |= {"STRING": ["STRING", "BYTES", "INT"], "BYTES": ["BYTES", "STRING"]}


@st.composite
def evolutions(draw, null_if_new):
    """Two versions of a table: columns dropped, added, reordered, widened, made (not) null."""
    kinds = draw(st.lists(st.sampled_from(PLAIN), min_size=1, max_size=5))
    null = st.sampled_from(["", " NOT NULL"])
    shapes = ["{}", "ARRAY<{}>", "MAP<STRING, {}>", "ROW<x {}, y INT>", "ARRAY<ROW<x {}>>"]
    old, new = {}, {}
    for n, kind in enumerate(kinds):
        shape = draw(st.sampled_from(shapes))
        old[f"c{n}"] = shape.format(kind + draw(null))
        if draw(st.integers(0, 4)):
            wide = draw(st.sampled_from(WIDER.get(kind, [kind])))
            new[f"c{n}"] = shape.format(wide + draw(null_if_new))
    for n in range(draw(st.integers(0, 2))):
        new[f"n{n}"] = draw(st.sampled_from(PLAIN)) + draw(st.sampled_from(["", "", " NOT NULL"]))
    assume(new)
    return arrow_schema(old), arrow_schema(dict(draw(st.permutations(list(new.items())))))


def fastavro_read(message, writer, reader):
    schemas = [fastavro.parse_schema(json.loads(text)) for text in (writer, reader)]
    return fastavro.schemaless_reader(io.BytesIO(message), *schemas)


def read_old(oracle, old, new, batch):
    """What an oracle and we make of the old table's datums: rows by message index."""
    writer, reader = avro_text(old), avro_text(new)
    messages = write(batch)
    expected = {}
    for index, message in enumerate(messages):
        try:
            expected[index] = promoted(oracle(message, writer, reader), pa.struct(list(new)))
        except (avro.errors.AvroException, fastavro.read.SchemaResolutionError, UnicodeDecodeError):
            continue
    plan = resolve_row(parse(writer), parse(reader), list(new))
    decoded = PlainDecoder(plan).decode(messages)
    good = range(len(batch)) if decoded.origin is None else decoded.origin.to_pylist()
    assert len(good) + len(decoded.rejected) == len(batch)
    return expected, dict(zip(good, decoded.rows.to_pylist(), strict=True))


@settings(RELAXED, max_examples=150)
@given(data=st.data())
def test_a_changed_table_reads_old_datums_as_fastavro_does(data):
    old, new = data.draw(evolutions(st.sampled_from(["", " NOT NULL"])))
    expected, ours = read_old(fastavro_read, old, new, data.draw(batches(old)))
    assert {index: ours[index] for index in expected} == expected
    # It refuses text for a number even in a list of none; Avro's rules refuse what is there.
    assert all([] in ours[index].values() for index in ours.keys() - expected.keys())


@settings(RELAXED, max_examples=80)
@given(data=st.data())
def test_a_changed_table_reads_whatever_the_reference_reads(data):
    # It refuses more than Avro asks: unions inside arrays that only one side has, for example.
    old, new = data.draw(evolutions(st.sampled_from(["", " NOT NULL"])))
    expected, ours = read_old(reference_read, old, new, data.draw(batches(old)))
    assert {index: ours[index] for index in expected} == expected


def promoted(value, arrow):
    """Both oracles leave promoted values as they were written."""
    if value is None:
        return None
    if pa.types.is_list(arrow):
        return [promoted(each, arrow.value_type) for each in value]
    if pa.types.is_map(arrow):
        return [(key, promoted(each, arrow.item_type)) for key, each in value.items()]
    if pa.types.is_struct(arrow):
        return {field.name: promoted(value[field.name], field.type) for field in arrow}
    if pa.types.is_floating(arrow):
        return pa.scalar(value).cast(arrow, safe=False).as_py()
    if pa.types.is_binary(arrow) and isinstance(value, str):
        return value.encode()
    return value.decode() if pa.types.is_string(arrow) and isinstance(value, bytes) else value


# --- the two paths ------------------------------------------------------------------------


def exact_only(schema):
    avro_type = parse(avro_text(schema))
    decoder = PlainDecoder(resolve_row(avro_type, avro_type, list(schema)))
    decoder._reader._native = None
    return decoder


def shown(batch):
    """Rows as text: NaN equals itself there, and years beyond Python's have their numbers."""
    flatten = flattener(
        pa.struct(list(batch.schema)), parse(avro_text(batch.schema)), bytes_as=pa.binary()
    )
    return [repr(row) for row in flatten(batch.to_struct_array()).to_pylist()]


@st.composite
def mutations(draw, message):
    """A message as it is, or cut, stretched, or with some bytes changed."""
    out = bytearray(message)
    match draw(st.integers(0, 6)):
        case 0:
            del out[draw(st.integers(0, len(out))) :]
        case 1:
            out += draw(st.binary(min_size=1, max_size=5))
        case 2 | 3 if out:
            for _ in range(draw(st.integers(1, 3))):
                out[draw(st.integers(0, len(out) - 1))] = draw(
                    st.sampled_from([0, 1, 2, 3, 0x7F, 0x80, 0xFE, 0xFF])
                )
        case 4 if out:
            at = draw(st.integers(0, len(out)))
            out[at:at] = draw(st.sampled_from([b"\xff" * 9 + b"\x01", b"\x80\x80\x00", b"\x01"]))
    return bytes(out)


@settings(RELAXED, max_examples=200)
@given(st.data())
def test_both_paths_give_the_same_rows_and_the_same_reasons(data):
    schema = data.draw(tables(ALL))
    messages = [data.draw(mutations(message)) for message in write(data.draw(batches(schema)))]
    fast, exact = read(schema, messages), exact_only(schema).decode(messages)
    assert shown(fast.rows) == shown(exact.rows)
    assert fast.rejected == exact.rejected
    assert fast.origin == exact.origin


@settings(RELAXED, max_examples=60)
@given(st.data())
def test_both_paths_write_the_same_bytes(data):
    batch = data.draw(batches(data.draw(tables(ALL))))
    writer = DatumWriter(batch.schema, parse(avro_text(batch.schema)))
    assert writer.write(batch) == writer._one_by_one(batch)


@pytest.mark.parametrize("scalars", [PLAIN, ALL])
def test_tables_of_these_types_take_the_native_path(scalars):
    schema = arrow_schema({f"c{n}": text for n, text in enumerate(scalars)})
    avro_type = parse(avro_text(schema))
    assert DatumReader(resolve_row(avro_type, avro_type, list(schema)))._native is not None
    assert DatumWriter(schema, avro_type)._schema is not None
