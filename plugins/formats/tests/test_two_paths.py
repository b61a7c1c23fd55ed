"""The fast path and the exact path give the same rows, the same rejections and the same reasons."""

from __future__ import annotations

import json
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streamcore.testing.codec import build
from streamcore.types import arrow_field
from streamcore_formats import csv_read, json_layout
from streamcore_formats.decoding import TwoPathDecoder, doubt_everything

COMMON = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def exact_only(decoder: TwoPathDecoder) -> TwoPathDecoder:
    """The same decoder without its fast path."""
    return TwoPathDecoder(
        decoder._schema,
        doubt_everything(decoder._schema),
        decoder._exact,
        ignoring=decoder._ignoring,
        changelog=decoder._changelog,
    )


def told(decoder: TwoPathDecoder, messages) -> tuple:
    """Everything a decoder answers, comparable even where values are NaN."""
    decoded = decoder.decode(messages)
    decoded.rows.validate(full=True)
    origin = decoded.origin
    places = list(range(len(messages))) if origin is None else origin.to_pylist()
    assert decoded.rows.num_rows == len(places)
    kinds = None if decoded.kinds is None else decoded.kinds.to_pylist()
    columns = [repr(_plain(column).to_pylist()) for column in decoded.rows.columns]
    return columns, places, kinds, sorted(decoded.rejected), decoded.ignored


def _plain(column: pa.Array) -> pa.Array:
    """Python's calendar starts with the year 1, Arrow's does not."""
    if pa.types.is_date(column.type):
        return column.cast(pa.int32())
    far = pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)
    return column.cast(pa.int64()) if far else column


def assert_same(
    identifier: str, schema: pa.Schema, messages, options=None, metadata=(), columns=None
) -> None:
    plugin = build(identifier, options)
    exact = told(exact_only(plugin.decoder(schema, columns, metadata)), messages)
    for many in (1, 10**9):  # messages from which on the paths for large batches are taken
        with (
            mock.patch.object(json_layout, "_MANY", many),
            mock.patch.object(csv_read, "_MANY", many),
        ):
            assert told(plugin.decoder(schema, columns, metadata), messages) == exact


# --- values worth trying ----------------------------------------------------------------

SCALARS = [
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "STRING",
    "BYTES",
    "DECIMAL(5, 2)",
    "DECIMAL(38, 18)",
    "DATE",
    "TIME(0)",
    "TIME(3)",
    "TIMESTAMP(0)",
    "TIMESTAMP(3)",
    "TIMESTAMP(6)",
    "TIMESTAMP(9)",
    "TIMESTAMP_LTZ(3)",
    "TIME(2)",
    "TIMESTAMP(4)",
    "TIMESTAMP(8)",
    "TIMESTAMP_LTZ(1)",
    "INTERVAL YEAR TO MONTH",
    "INTERVAL DAY TO SECOND",
]
NESTED = [
    "ARRAY<INT>",
    "ARRAY<STRING NOT NULL>",
    "ARRAY<TIMESTAMP(3)>",
    "MAP<STRING, INT>",
    "MAP<STRING, DECIMAL(5, 2)>",
    "MULTISET<STRING>",
    "ROW<x INT, y STRING>",
    "ROW<x INT NOT NULL, y ROW<z DOUBLE>>",
    "ROW<x FLOAT, y ARRAY<TIME(3)>>",
]
TEXTS = [
    "",
    " ",
    "null",
    "true",
    "FALSE",
    "12",
    " 12 ",
    "+5",
    "-0",
    "007",
    "0x10",
    "1_0",
    "1.5",
    "1.005",
    "1e3",
    "1E400",
    ".5",
    "5.",
    "1d",
    "NaN",
    "nan",
    "inf",
    "Infinity",
    "128",
    "99999999999999999999",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775807000",
    "aGk=",
    "aGk",
    "a_-=",
    "2024-02-29",
    "2024-2-9",
    "2023-02-29",
    "0000-01-01",
    "9999-12-31",
    "12:30:15",
    "12:30",
    "12:30:15.123456789",
    "24:00:00",
    "2024-01-01 00:00:00",
    "2024-01-01T00:00:00",
    "2024-01-01 00:00:00.1",
    "2024-01-01 00:00:00.123",
    "2024-01-01 00:00:00.123456",
    "2024-01-01 00:00:00.123456789",
    "2024-01-01 00:00:00.",
    "2024-01-01 00:00:00Z",
    "2024-01-01 00:00:00.5Z",
    "2024-01-01 24:00:00",
    "2023-02-31 10:00:00",
    "2024-01-01 00:00",
    "2024-13-01 00:00:00",
    "1600-01-01 00:00:00",
    "2024-01-01 00:00:00+01:00",
    "ä",
    "😀",
    "a,b",
    'a"b',
    "a\\b",
    "a\tb",
    "a\nb",
    "\u0000",
    "x" * 30,
]
NUMBERS = [
    "0",
    "-0",
    "1",
    "-1",
    "127",
    "128",
    "-129",
    "32768",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "9223372036854775",
    "1.0",
    "1.5",
    "-1.005",
    "999.995",
    "0.1",
    "1e3",
    "1E-3",
    "1e39",
    "3.4028235677973366e38",
    "3.4028235e38",
    "1e308",
    "1e400",
    "-1e400",
    "5e-324",
    "1e-400",
    "123456789012345678901234567890",
    "0.30000000000000004",
    "100000000000000000000000000000000000000.5",
    "1" + "0" * 400,
    "9" * 39,
    "9" * 77,
    "9" * 5000,
]
BROKEN = [
    "NaN",
    "Infinity",
    "-",
    "01",
    "1.",
    ".5",
    "+1",
    "tru",
    "nul",
    "'a'",
    '"\\x"',
    '"\\ud800"',
    '"',
    "{",
    "[1,",
    "[1]]",
    "{]",
]

texts = st.sampled_from(TEXTS) | st.text(max_size=6)
quoted = texts.map(lambda text: json.dumps(text, ensure_ascii=False)) | texts.map(json.dumps)
leaves = quoted | st.sampled_from([*NUMBERS, "true", "false", "null"])
blanks = st.sampled_from(["", "", "", " ", "\n", "\t "])


def objects(values, keys):
    pair = st.tuples(keys.map(json.dumps), blanks, values)
    members = st.lists(pair, max_size=5)
    return st.tuples(members, blanks).map(
        lambda told: "{" + f"{told[1]},".join(f"{k}:{b}{v}" for k, b, v in told[0]) + told[1] + "}"
    )


def arrays(values):
    return st.lists(values, max_size=3).map(lambda items: "[" + ",".join(items) + "]")


inner_keys = st.sampled_from(["x", "y", "z", "k"])
values = st.recursive(
    leaves | st.sampled_from(BROKEN), lambda v: objects(v, inner_keys) | arrays(v), max_leaves=4
)
tails = st.sampled_from(["", "", "", "", " ", "\n", " tail", "{}", "}"])
heads = st.sampled_from(["", "", "", "", " ", "\n", "\ufeff", "x"])


@st.composite
def schemas(draw, kinds=tuple(SCALARS + NESTED), most=4):
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=most))
    strict = draw(st.lists(st.integers(0, 5), min_size=len(chosen), max_size=len(chosen)))
    return pa.schema([arrow_field(f"c{n}", kind, strict[n] != 0) for n, kind in enumerate(chosen)])


column_keys = st.sampled_from(["c0", "c1", "c2", "c3", "other"])
rows = objects(values, column_keys)
whole = rows | rows | rows | arrays(rows | leaves) | values


@st.composite
def changed(draw, messages):
    """A message with a few bytes changed, cut or repeated."""
    message = draw(messages)
    at = draw(st.integers(0, max(len(message) - 1, 0)))
    changes = [b"", b"\xff", b"\x00", b'"', b",", b"}", b"\n", b"\r", b"\\", b"0"]
    change = draw(st.sampled_from(changes))
    return message[:at] + change + message[at + draw(st.integers(0, 2)) :]


def framed(text):
    return st.tuples(heads, text, tails).map("".join)


def batches(text):
    message = framed(text).map(lambda told: told.encode("utf-8", "surrogatepass"))
    return st.lists(message | message | changed(message) | st.none() | st.just(b""), max_size=6)


flags = st.dictionaries(
    st.sampled_from(["ignore-parse-errors", "fail-on-missing-field", "decode.json-parser.enabled"]),
    st.sampled_from(["true", "false"]),
).filter(
    lambda told: (
        not (
            told.get("ignore-parse-errors") == "true"
            and told.get("fail-on-missing-field") == "true"
        )
    )
)
standards = st.sampled_from([{}, {}, {"timestamp-format.standard": "ISO-8601"}])


# --- the properties -----------------------------------------------------------------------


@COMMON
@given(schemas(), batches(whole), flags, standards)
def test_json(schema, messages, options, standard):
    assert_same("json", schema, messages, {**options, **standard})


@st.composite
def alike(draw):
    """Messages of one template, now and then one that is not."""
    keys = draw(st.permutations(["c0", "c1", "c2", "c3", "ö"]))[: draw(st.integers(1, 5))]
    colon, comma, end = draw(
        st.sampled_from(
            [(":", ",", "}"), (": ", ", ", "}"), (":\t", " ,", " }\r"), (":", ",", "}}")]
        )
    )
    usual = {key: draw(st.sampled_from(ALIKE)) for key in keys}
    messages = []
    for _ in range(draw(st.integers(1, 8))):
        members = []
        for key in keys:
            odd = not draw(st.integers(0, 5))
            value = draw(leaves | values | st.sampled_from(BROKEN) if odd else usual[key])
            members.append(f'"{key}"{colon}{value}')
        message = ("{" + comma.join(members) + end).encode("utf-8", "surrogatepass")
        messages.append(draw(changed(st.just(message))) if not draw(st.integers(0, 7)) else message)
    return messages


numbers = st.integers(-(2**70), 2**70).map(str) | st.sampled_from(NUMBERS)
decimals = st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.decimals(
    -1000, 1000, places=3
).map(str)
stamps = st.datetimes().map(lambda at: f'"{at.isoformat(" ")}"') | st.sampled_from(
    ['"2024-01-01 00:00:00"', '"2024-01-01 00:00:00.123"', '"2023-02-31 10:00:00Z"']
)
ALIKE = [numbers, decimals, quoted, stamps, st.sampled_from(["true", "false", "null"])]


@settings(COMMON, max_examples=200)
@given(schemas(kinds=tuple(SCALARS)), alike(), flags, standards)
def test_json_of_one_template(schema, messages, options, standard):
    assert_same("json", schema, messages, {**options, **standard})


ignoring = st.sampled_from([{}, {"ignore-parse-errors": "true"}])
image = st.just("null") | rows | rows


@COMMON
@given(schemas(most=3), st.data(), ignoring, st.booleans())
def test_debezium_json(schema, data, options, wrapped):
    op = st.sampled_from(['"c"', '"r"', '"u"', '"d"', '"t"', "null", "5", '"cr"'])
    source = st.sampled_from(
        ["null", "5", "{}", '{"db":"d","ts_ms":5,"x":[1]}', '{"db":7,"ts_ms":"9"}', '{"ts_ms":1.5}']
    )
    body = st.tuples(image, image, op, source, leaves).map(
        lambda t: f'{{"before":{t[0]},"after":{t[1]},"source":{t[3]},"op":{t[2]},"ts_ms":{t[4]}}}'
    )
    text = body
    if wrapped:
        options = {**options, "schema-include": "true"}
        text = body.map(lambda inner: f'{{"schema":{{"a":[1.10]}},"payload":{inner}}}') | values
    keys = data.draw(
        st.sampled_from(
            [
                (),
                ("source.database", "ingestion-timestamp"),
                ("schema", "source.properties", "source.timestamp"),
            ]
        )
    )
    assert_same("debezium-json", schema, data.draw(batches(text)), options, keys)


@COMMON
@given(schemas(most=3), st.data(), ignoring)
def test_ogg_json(schema, data, options):
    op = st.sampled_from(['"I"', '"U"', '"D"', '"T"', "null"])
    stamp = quoted | st.just('"2024-01-01T00:00:00.123456"')
    text = st.tuples(image, image, op, stamp).map(
        lambda t: f'{{"before":{t[0]},"after":{t[1]},"op_type":{t[2]},"current_ts":{t[3]}}}'
    )
    keys = data.draw(st.sampled_from([(), ("ingestion-timestamp", "primary-keys")]))
    assert_same("ogg-json", schema, data.draw(batches(text)), options, keys)


@COMMON
@given(schemas(most=3), st.data(), ignoring)
def test_maxwell_json(schema, data, options):
    change = st.sampled_from(['"insert"', '"update"', '"delete"', '"ddl"', "null", "1"])
    text = st.tuples(image, image, change, leaves).map(
        lambda t: f'{{"data":{t[0]},"old":{t[1]},"type":{t[2]},"ts":{t[3]}}}'
    )
    keys = data.draw(st.sampled_from([(), ("ingestion-timestamp",)]))
    assert_same("maxwell-json", schema, data.draw(batches(text)), options, keys)


@COMMON
@given(schemas(most=3), st.data(), ignoring)
def test_canal_json(schema, data, options):
    change = st.sampled_from(['"INSERT"', '"UPDATE"', '"DELETE"', '"CREATE"', '"ALTER"', "null"])
    as_text = objects(quoted | st.just("null") | values, column_keys)
    many = arrays(as_text | image) | image
    name = st.sampled_from(["null", '"a"', '"b"', "5"])
    text = st.tuples(many, many, change, name).map(
        lambda t: f'{{"data":{t[0]},"old":{t[1]},"type":{t[2]},"table":{t[3]}}}'
    )
    if data.draw(st.booleans()):
        options = {**options, "table.include": "a|5"}
    keys = data.draw(st.sampled_from([(), ("table", "pk-names")]))
    assert_same("canal-json", schema, data.draw(batches(text)), options, keys)


CSV_NESTED = ["ARRAY<INT>", "ARRAY<STRING>", "ROW<x INT, y TIME(3)>", "ROW<x STRING NOT NULL>"]
csv_options = st.fixed_dictionaries(
    {},
    optional={
        "ignore-parse-errors": st.just("true"),
        "null-literal": st.sampled_from(["null", "", "12"]),
        "field-delimiter": st.sampled_from([";", "\\t", "|"]),
        "quote-character": st.sampled_from(["'", "|"]),
        "escape-character": st.sampled_from(["\\", "*"]),
        "trim-spaces": st.just("true"),
        "allow-comments": st.just("true"),
        "empty-string-as-null": st.just("true"),
        "ignore-trailing-unmappable": st.just("true"),
        "allow-trailing-comma": st.just("false"),
        "fail-on-missing-columns": st.just("true"),
    },
).filter(lambda told: told.get("quote-character") != told.get("field-delimiter") or not told)


@COMMON
@given(schemas(kinds=tuple(SCALARS + CSV_NESTED)), st.data(), csv_options)
def test_csv(schema, data, options):
    if any(pa.types.is_time64(field.type) for field in schema):
        schema = pa.schema([field for field in schema if not pa.types.is_time64(field.type)])
    mark = {"\\t": "\t"}.get(
        options.get("field-delimiter", ","), options.get("field-delimiter", ",")
    )
    quote = options.get("quote-character", '"')
    plain = texts | st.sampled_from(NUMBERS) | st.sampled_from(["1;2", "1;x", ";", "#", "# a"])
    cell = plain | plain.map(lambda text: quote + text.replace(quote, quote * 2) + quote)
    width = len(schema)
    line = st.lists(cell, min_size=max(width - 1, 1), max_size=width + 1) | st.lists(
        cell, min_size=width, max_size=width
    )
    columns = data.draw(st.none() | st.permutations(schema.names).map(lambda names: names[1:]))
    messages = data.draw(batches(line.map(mark.join)))
    assert_same("csv", schema, messages, options, columns=columns)


SIMPLE = {
    "BIGINT": st.integers(-(2**63), 2**63 - 1).map(str),
    "INT": st.sampled_from(["0", "7", "-3", "007", "+1"]),
    "DOUBLE": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "BOOLEAN": st.sampled_from(["true", "false"]),
    "STRING": st.sampled_from(["a", "ä b", "", "null", "\x1f", "\x1f\x1e\x1d\x1c", 'a"b']),
    "DATE": st.dates().map(str),
    "TIMESTAMP(3)": st.sampled_from(["2024-01-01 00:00:00", "2024-01-01 12:00:00.5"]),
    "DECIMAL(10, 2)": st.sampled_from(["1.5", "-2", "0.005"]),
}


@settings(COMMON, max_examples=150)
@given(st.lists(st.sampled_from(list(SIMPLE)), min_size=1, max_size=7), st.data())
def test_csv_of_usual_lines(kinds, data):
    schema = pa.schema([arrow_field(f"c{n}", kind) for n, kind in enumerate(kinds)])
    odd = texts | st.sampled_from(['"a,b"', '"a\nb"', '""', '"a""b"', '"1"', '"x" ', '"', "a,b"])
    messages = []
    for _ in range(data.draw(st.integers(1, 8))):
        cells = [data.draw(SIMPLE[kind]) for kind in kinds]
        if not data.draw(st.integers(0, 3)):
            cells[data.draw(st.integers(0, len(kinds) - 1))] = data.draw(odd)
        quoting = data.draw(st.sets(st.integers(0, len(kinds) - 1), max_size=2))
        for at in quoting:
            cells[at] = '"{}"'.format(cells[at].replace('"', '""'))
        messages.append(",".join(cells).encode("utf-8", "surrogatepass"))
    columns = data.draw(st.none() | st.permutations(schema.names).map(lambda names: names[1:]))
    options = data.draw(st.sampled_from([{}, {}, {"null-literal": "null"}]))
    assert_same("csv", schema, messages, options, columns=columns)


@COMMON
@given(
    st.sampled_from(["STRING", "BYTES", "BOOLEAN", "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE"]),
    st.booleans(),
    st.lists(st.none() | st.binary(max_size=9) | st.binary(min_size=8, max_size=8), max_size=6),
    st.sampled_from(
        [{}, {"line-delimiter": "\\n"}, {"charset": "UTF-16"}, {"endianness": "little-endian"}]
    ),
)
def test_raw(sql_type, may_be_null, messages, options):
    assert_same("raw", pa.schema([arrow_field("c0", sql_type, may_be_null)]), messages, options)


@COMMON
@given(
    st.integers(1, 38).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, p))),
    st.lists(
        st.from_regex(r"\A[+-]?[0-9]{0,45}(\.[0-9]{0,45})?([eE][+-]?[0-9]{1,3})?\Z"), max_size=4
    ),
)
def test_decimals_of_any_length(size, written):
    schema = pa.schema([arrow_field("c0", f"DECIMAL({size[0]}, {size[1]})")])
    assert_same("csv", schema, [text.encode() for text in written])
    assert_same("json", schema, [f'{{"c0":{text}}}'.encode() for text in written])
    assert_same("json", schema, [f'{{"c0":"{text}"}}'.encode() for text in written])


@pytest.mark.parametrize("depth", [400, 499, 500, 501, 600, 900, 1100, 20_000])
@pytest.mark.parametrize("where", ["unwanted", "wanted"])
def test_nesting_is_bounded_alike_however_deep_the_stack(depth, where):
    opening, closing = "[" * (depth - 1), "]" * (depth - 1)
    key = "c0" if where == "wanted" else "other"
    message = f'{{"{key}":{opening}{closing}}}'.encode()
    schema = pa.schema([arrow_field("c0", "STRING")])
    decoded = build("json").decoder(schema).decode([message])
    assert decoded.rows.num_rows == (1 if depth <= 500 else 0)
    assert_same("json", schema, [message, b'{"c0":"x"}'])
