"""NULL where the table says NOT NULL is refused on writing, with its row and its place named."""

from __future__ import annotations

import pyarrow as pa
import pytest
from streamcore import RecordError
from streamcore.testing.codec import build
from streamcore.types import arrow_schema

JSON = ["json", "debezium-json", "ogg-json", "maxwell-json", "canal-json"]
ROW = "ROW<a INT NOT NULL, b INT>"


def write(identifier, sql, values, plain=None):
    """Encode one column; `plain` is the type it comes in, where that says nothing of NULL."""
    schema = arrow_schema({"c": sql})
    arrived = schema if plain is None else arrow_schema({"c": plain})
    column = pa.array(values, arrived.field(0).type)
    batch = pa.RecordBatch.from_arrays([column], ["c"])
    return build(identifier).encoder(schema).encode(batch)


NULLS = [
    ("INT NOT NULL", [1, None], "row 1, column 'c'"),
    (ROW, [None, {"a": 1, "b": None}, {"a": None, "b": 1}], "row 2, column 'c.a'"),
    ("ARRAY<INT NOT NULL>", [[1, 2], None, [], [1, 2, None]], "row 3, column 'c[2]'"),
]
DEEPER = [
    ("MAP<STRING, INT NOT NULL>", [None, [("k", 1), ("m", None)]], "row 1, column 'c['m']'"),
    (f"ARRAY<{ROW}>", [[None], [{"a": 1}, {"a": None}]], "row 1, column 'c[1].a'"),
    ("ROW<x ARRAY<INT NOT NULL>>", [{"x": None}, {"x": [None]}], "row 1, column 'c.x[0]'"),
    (f"MAP<STRING, {ROW}>", [[("k", None)], [("k", {"a": None})]], "row 1, column 'c['k'].a'"),
    (f"ROW<r {ROW}>", [{"r": None}, None, {"r": {"a": None}}], "row 2, column 'c.r.a'"),
]


@pytest.mark.parametrize(
    ("identifier", "sql", "values", "where"),
    [
        *((name, *case) for name in JSON for case in NULLS + DEEPER),
        *(("csv", *case) for case in NULLS),
        ("raw", "INT NOT NULL", [1, None], "row 1, column 'c'"),
        ("raw", "STRING NOT NULL", [None], "row 0, column 'c'"),
    ],
)
def test_a_null_where_none_may_be_is_refused_by_its_path(identifier, sql, values, where):
    for plain in (None, sql.replace(" NOT NULL", "")):
        with pytest.raises(RecordError) as error:
            write(identifier, sql, values, plain)
        assert str(error.value) == f"{where}: NULL, but it is NOT NULL"


@pytest.mark.parametrize(
    ("sql", "values", "written"),
    [
        (ROW, [None, {"a": 1, "b": None}], [b'{"c":null}', b'{"c":{"a":1,"b":null}}']),
        ("ARRAY<INT NOT NULL>", [None, [], [1]], [b'{"c":null}', b'{"c":[]}', b'{"c":[1]}']),
        (f"ARRAY<{ROW}>", [[None]], [b'{"c":[null]}']),
        (f"MAP<STRING, {ROW}>", [[("k", None)]], [b'{"c":{"k":null}}']),
        ("MULTISET<STRING>", [[("k", 1)]], [b'{"c":{"k":1}}']),
    ],
)
def test_what_lies_in_a_null_does_not_count(sql, values, written):
    assert write("json", sql, values) == written


@pytest.mark.parametrize(
    ("identifier", "written"),
    [
        ("json", [b'{"c":null}', b'{"c":{"a":1}}']),
        ("csv", [b"", b"1"]),
        ("avro", [b"\x00", b"\x02\x02"]),
    ],
)
def test_a_null_row_whose_fields_are_null_too_is_written(identifier, written):
    schema = arrow_schema({"c": "ROW<a INT NOT NULL>"})
    fields = [pa.array([None, 1], pa.int32())]
    column = pa.StructArray.from_arrays(fields, ["a"], mask=pa.array([True, False]))
    batch = pa.RecordBatch.from_arrays([column], ["c"])
    assert build(identifier).encoder(schema).encode(batch) == written


@pytest.mark.parametrize(
    ("sql", "good", "bad", "where"),
    [
        ("ARRAY<INT NOT NULL>", [1], [2, None], "c[1]"),
        ("MAP<STRING, INT NOT NULL>", [("k", 1)], [("k", 2), ("m", None)], "c['m']"),
        (ROW, {"a": 1}, {"b": 1}, "c.a"),
    ],
)
def test_the_row_is_counted_over_all_slices(sql, good, bad, where):
    schema = arrow_schema({"c": sql})
    values = pa.array([None, *[good] * 40_000, None, bad], schema.field(0).type)
    batch = pa.RecordBatch.from_arrays([values.slice(5)], schema=schema)
    with pytest.raises(RecordError) as error:
        build("json").encoder(schema).encode(batch)
    assert str(error.value) == f"row 39997, column '{where}': NULL, but it is NOT NULL"
    build("json").encoder(schema).encode(batch.slice(0, 39_997))
