"""datagen makes the rows its options ask for."""

import pyarrow as pa
import pytest
from streamcore import Column, OptionError, Table
from streamcore.checks import check_table
from streamcore.registry import installed
from streamcore_sql.connectors.generate import Generator, Stretch

EVERY_TYPE = [
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(10, 2)",
    "CHAR(3)",
    "VARCHAR(5)",
    "STRING",
    "BINARY(4)",
    "BYTES",
    "DATE",
    "TIME(0)",
    "TIMESTAMP(3)",
    "TIMESTAMP_LTZ(3)",
    "INTERVAL DAY TO SECOND",
    "ARRAY<INT>",
    "MAP<STRING, INT>",
    "MULTISET<STRING>",
    "ROW<a INT, b ROW<c STRING>>",
]


def generate(columns, options=(), rows=100):
    connector = installed().build("connector", "datagen", dict(options))
    table = Table(tuple(Column(name, kind) for name, kind in columns))
    check_table(connector, table, writing=False)
    fields = [column.field for column in table.columns]
    stretch = Stretch(0, rows, 1_700_000_000_000_000, 1_700_000_010_000_000)
    batch = Generator(fields, connector.rules()).batch(stretch, pa.schema(fields))
    return connector, batch


def test_every_type_can_be_made():
    _, batch = generate([(f"c{i}", kind) for i, kind in enumerate(EVERY_TYPE)])
    batch.validate(full=True)
    assert batch.num_rows == 100
    assert all(column.null_count == 0 for column in batch.columns)


def test_numbers_stay_within_their_bounds():
    options = {"fields.a.min": "-2", "fields.a.max": "2", "fields.d.min": "1", "fields.d.max": "3"}
    _, batch = generate([("a", "INT"), ("d", "DECIMAL(5, 2)")], options, rows=1000)
    assert set(batch.column("a").to_pylist()) == {-2, -1, 0, 1, 2}
    assert all(1 <= value <= 3 for value in batch.column("d").to_pylist())


def test_a_sequence_counts_and_ends_the_table():
    options = {"fields.id.kind": "sequence", "fields.id.start": "5", "fields.id.end": "7"}
    connector, batch = generate([("id", "STRING")], options, rows=3)
    assert batch.column("id").to_pylist() == ["5", "6", "7"]
    assert connector.bounded()
    assert connector.total() == 3


def test_lengths_nulls_and_past_times():
    options = {
        "fields.s.length": "7",
        "fields.v.length": "9",
        "fields.v.var-len": "true",
        "fields.n.null-rate": "0.5",
        "fields.t.max-past": "1 min",
        "fields.r.x.max": "0",
        "fields.r.x.min": "0",
    }
    columns = [
        ("s", "STRING"),
        ("v", "STRING"),
        ("n", "INT"),
        ("t", "TIMESTAMP(3)"),
        ("r", "ROW<x INT>"),
    ]
    _, batch = generate(columns, options, rows=1000)
    rows = batch.to_pylist()
    assert {len(row["s"]) for row in rows} == {7}
    assert {len(row["v"]) for row in rows} == set(range(1, 10))
    assert 350 < batch.column("n").null_count < 650
    assert {row["r"]["x"] for row in rows} == {0}
    times = [row["t"].timestamp() for row in rows]
    assert max(times) - min(times) > 30


def test_the_same_rows_are_made_again_after_a_restart():
    first = generate([("a", "INT"), ("b", "STRING")])[1]
    again = generate([("a", "INT"), ("b", "STRING")])[1]
    assert first.equals(again)


def test_every_problem_of_the_rules_is_told():
    options = {
        "fields.a.kind": "sequenze",
        "fields.b.kind": "sequence",
        "fields.c.min": "3",
        "fields.c.max": "1",
        "fields.d.maximum": "3",
    }
    with pytest.raises(OptionError) as caught:
        installed().build("connector", "datagen", options)
    text = str(caught.value)
    assert "fields.a.kind: 'sequenze' is not one of random, sequence" in text
    assert "fields.b.start: required when the kind is 'sequence'" in text
    assert "fields.c.min: 3 is more than the max, 1" in text
    assert "'maximum' is not one of" in text
    with pytest.raises(OptionError, match="no such column; choose from id"):
        generate([("id", "INT")], {"fields.di.min": "1"})
