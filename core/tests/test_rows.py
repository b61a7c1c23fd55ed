"""Key, value and metadata columns become a table's rows, and rows become messages again."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from streamcore import Column, RecordError, RecordFormat, Rejected, Table
from streamcore.rows import Assembler, Splitter, ValueFields, castable, key_problems, key_value


class Plain(RecordFormat):
    """JSON objects, decoded one by one."""

    identifier = "plain"

    def decode_record(self, payload, schema):
        found = json.loads(payload)
        yield from found if isinstance(found, list) else [found]


class Changes(Plain):
    """A format that carries updates and deletes."""

    identifier = "changes"
    changelog = True


MILLIS = pa.timestamp("ms", "UTC")


def columns(**types):
    return tuple(Column(name, text) for name, text in types.items())


def assembler(table, *, key_fields=(), prefix="", include=ValueFields.ALL, upsert=False):
    layout = key_value(table, key_fields, prefix, include)
    output = pa.schema([c.field.with_nullable(True) for c in table.output])
    key_format = Plain() if key_fields else None
    return Assembler(table, layout, key_format, Plain(), output, upsert=upsert)


def test_rows_come_in_declared_order_with_metadata_cast_to_the_declared_type():
    table = Table(
        (
            Column("at", "TIMESTAMP(3)", metadata="timestamp"),
            Column("id", "BIGINT"),
            Column("part", "STRING", metadata="partition"),
        )
    )
    made = assembler(table).assemble(
        [None, None],
        [b'{"id": 1}', b'{"id": 2}'],
        {"timestamp": pa.array([5, 6], MILLIS), "partition": pa.array([0, 1], pa.int32())},
    )
    assert made.batch.to_pylist() == [
        {"at": datetime(1970, 1, 1, 0, 0, 0, 5000), "id": 1, "part": "0"},
        {"at": datetime(1970, 1, 1, 0, 0, 0, 6000), "id": 2, "part": "1"},
    ]


def test_a_rejected_message_never_shifts_its_neighbours_metadata():
    table = Table((Column("id", "BIGINT"), Column("at", "BIGINT", metadata="offset")))
    made = assembler(table).assemble(
        [None] * 4,
        [b'{"id": 1}', b"broken", b'[{"id": 3}, {"id": 33}]', b'{"id": 4}'],
        {"offset": pa.array([10, 11, 12, 13])},
    )
    assert [(r["id"], r["at"]) for r in made.batch.to_pylist()] == [
        (1, 10),
        (3, 12),
        (33, 12),
        (4, 13),
    ]
    assert [index for index, _ in made.rejected] == [1]


def test_key_columns_lose_their_prefix_and_leave_the_value():
    table = Table(columns(k_id="INT", id="STRING", name="STRING"))
    made = assembler(
        table, key_fields=["k_id"], prefix="k_", include=ValueFields.EXCEPT_KEY
    ).assemble([b'{"id": 7}'], [b'{"id": "seven", "name": "x"}'], {})
    assert made.batch.to_pylist() == [{"k_id": 7, "id": "seven", "name": "x"}]


def test_a_message_without_a_key_keeps_its_row_with_null_key_columns():
    table = Table(columns(k="INT", v="INT"))
    made = assembler(table, key_fields=["k"], include=ValueFields.EXCEPT_KEY).assemble(
        [None, b'{"k": 2}'], [b'{"v": 1}', b'{"v": 2}'], {}
    )
    assert made.batch.to_pylist() == [{"k": None, "v": 1}, {"k": 2, "v": 2}]


def test_a_key_that_gives_two_rows_repeats_the_value():
    table = Table(columns(k="INT", v="INT"))
    made = assembler(table, key_fields=["k"], include=ValueFields.EXCEPT_KEY).assemble(
        [b'[{"k": 1}, {"k": 2}]', b'{"k": 3}'], [b'{"v": 10}', b'{"v": 30}'], {}
    )
    assert [(r["k"], r["v"]) for r in made.batch.to_pylist()] == [(1, 10), (2, 10), (3, 30)]


def test_the_value_wins_where_key_and_value_both_carry_a_column():
    table = Table(columns(k="INT", v="INT"))
    made = assembler(table, key_fields=["k"]).assemble([b'{"k": 1}'], [b'{"k": 2, "v": 3}'], {})
    assert made.batch.to_pylist() == [{"k": 2, "v": 3}]


def test_a_bad_key_costs_its_message_and_says_so():
    table = Table(columns(k="INT", v="INT"))
    made = assembler(table, key_fields=["k"], include=ValueFields.EXCEPT_KEY).assemble(
        [b"{", b'{"k": 2}'], [b'{"v": 1}', b'{"v": 2}'], {}
    )
    assert made.batch.to_pylist() == [{"k": 2, "v": 2}]
    assert made.rejected[0].index == 0
    assert made.rejected[0].reason.startswith("key: ")


def test_keys_find_their_rows_past_bad_and_missing_ones():
    table = Table(columns(k="INT", v="INT"))
    made = assembler(table, key_fields=["k"], include=ValueFields.EXCEPT_KEY).assemble(
        [b'{"k": 0}', b"{", None, b'{"k": 3}', b'{"k": 4}'],
        [b'{"v": 0}', b'{"v": 1}', b'{"v": 2}', b"broken", b'[{"v": 4}, {"v": 44}]'],
        {},
    )
    assert [(r["k"], r["v"]) for r in made.batch.to_pylist()] == [
        (0, 0),
        (None, 2),
        (4, 4),
        (4, 44),
    ]
    assert [index for index, _ in made.rejected] == [1, 3]


def test_upserts_turn_null_values_into_deletes_in_their_place():
    table = Table((*columns(k="INT", v="INT"), Column("_row_kind", "STRING", metadata="row-kind")))
    made = assembler(table, key_fields=["k"], upsert=True).assemble(
        [b'{"k": 1}', b'{"k": 2}', None, b'{"k": 1}'],
        [b'{"k": 1, "v": 5}', None, b'{"k": 9, "v": 9}', b'{"k": 1, "v": 6}'],
        {},
    )
    assert [tuple(row.values()) for row in made.batch.to_pylist()] == [
        (1, 5, "+U"),
        (2, None, "-D"),
        (1, 6, "+U"),
    ]
    assert made.rejected == [Rejected(2, "the key is null")]


def test_a_format_that_has_rows_for_null_values_deletes_just_the_same():
    class Nullable(Plain):
        """Gives null rows for null values."""

        identifier = "nullable"

        def decoder(self, schema, columns=None, metadata=()):
            plain = super().decoder(schema, columns, metadata)

            class Filled:
                def decode(self, messages):
                    return plain.decode([each or b"{}" for each in messages])

            return Filled()

    table = Table((*columns(k="INT", v="INT"), Column("_row_kind", "STRING", metadata="row-kind")))
    layout = key_value(table, ["k"], "", ValueFields.EXCEPT_KEY)
    output = pa.schema([c.field for c in table.output])
    made = Assembler(table, layout, Plain(), Nullable(), output, upsert=True).assemble(
        [b'{"k": 1}', b'{"k": 1}', b'{"k": 2}'], [b'{"v": 5}', None, b'{"v": 6}'], {}
    )
    assert [tuple(row.values()) for row in made.batch.to_pylist()] == [
        (1, 5, "+U"),
        (1, None, "-D"),
        (2, 6, "+U"),
    ]


def test_a_query_that_wants_no_columns_still_gets_its_rows_counted():
    table = Table(columns(a="INT", b="INT")).reading([])
    made = assembler(table).assemble([None] * 3, [b'{"a": 1}'] * 3, {})
    assert (made.batch.num_rows, made.batch.num_columns) == (3, 0)


def test_only_projected_columns_and_metadata_are_asked_for():
    table = Table((*columns(a="INT", b="INT"), Column("o", "BIGINT", metadata="offset")))
    narrow = assembler(table.reading(["b"]))
    assert narrow.metadata_keys == ()
    assert narrow.assemble([None], [b'{"a": 1, "b": 2}'], {}).batch.to_pylist() == [{"b": 2}]


def test_splitting_gives_key_value_metadata_and_kinds_back():
    table = Table(
        (
            *columns(k_id="INT", v="STRING"),
            Column("at", "TIMESTAMP(3)", metadata="timestamp"),
            Column("p", "INT", metadata="partition", virtual=True),
            Column("_row_kind", "STRING", metadata="row-kind"),
        )
    )
    layout = key_value(table, ["k_id"], "k_", ValueFields.EXCEPT_KEY)
    batch = pa.RecordBatch.from_pylist(
        [{"k_id": 1, "v": "x", "at": datetime(2024, 1, 1), "_row_kind": "-D"}],
        pa.schema(
            [
                ("k_id", pa.int32()),
                ("v", pa.string()),
                ("at", pa.timestamp("us")),
                ("_row_kind", pa.string()),
            ]
        ),
    )
    split = Splitter(table, layout, {"timestamp": MILLIS}).split(batch)
    assert split.key.to_pylist() == [{"id": 1}]
    assert split.value.to_pylist() == [{"v": "x"}]
    assert split.metadata["timestamp"].to_pylist() == [datetime(2024, 1, 1, tzinfo=UTC)]
    assert split.kinds.to_pylist() == [3]


def test_a_null_in_a_not_null_column_is_refused_by_name_and_row():
    table = Table((Column("id", "INT", nullable=False),))
    layout = key_value(table, [], "", ValueFields.ALL)
    batch = pa.RecordBatch.from_pydict({"id": pa.array([1, None], pa.int32())})
    with pytest.raises(RecordError, match="row 1: column 'id' is NOT NULL but its value is null"):
        Splitter(table, layout, {}).split(batch)


def test_a_null_inside_a_row_is_left_to_the_format_and_a_null_row_is_written():
    table = Table((Column("r", "ROW<a INT NOT NULL>"), Column("l", "ARRAY<BIGINT NOT NULL>")))
    layout = key_value(table, [], "", ValueFields.ALL)
    as_spark_says = pa.StructArray.from_arrays(  # a NULL row has NULL fields there
        [pa.array([None, None, 1], pa.int32())], ["a"], mask=pa.array([True, False, False])
    )
    batch = pa.RecordBatch.from_pydict({"r": as_spark_says, "l": pa.array([None, [None], [1]])})
    assert Splitter(table, layout, {}).split(batch).value.to_pylist() == [
        {"r": None, "l": None},
        {"r": {"a": None}, "l": [None]},
        {"r": {"a": 1}, "l": [1]},
    ]


def test_an_unknown_row_kind_is_refused():
    table = Table((*columns(id="INT"), Column("_row_kind", "STRING", metadata="row-kind")))
    layout = key_value(table, [], "", ValueFields.ALL)
    batch = pa.RecordBatch.from_pydict(
        {"id": pa.array([1], pa.int32()), "_row_kind": pa.array(["upsert"])}
    )
    with pytest.raises(RecordError, match=r"'upsert' in _row_kind is not one of \+I, -U, \+U, -D"):
        Splitter(table, layout, {}).split(batch)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            (None, ["id"], "", ValueFields.ALL),
            "key.fields: can only be declared together with 'key.format'",
        ),
        ((Plain(), [], "", ValueFields.ALL), "key.format: needs one or more 'key.fields'"),
        (
            (Plain(), ["nope"], "", ValueFields.ALL),
            "key.fields: 'nope' is not a physical column of the table; choose from id, k_x",
        ),
        (
            (Plain(), ["id"], "k_", ValueFields.EXCEPT_KEY),
            "key.fields-prefix: every field in 'key.fields' must start with 'k_', "
            "but 'id' does not",
        ),
        (
            (Plain(), ["k_x"], "k_", ValueFields.ALL),
            "key.fields-prefix: is not allowed while 'value.fields-include' is 'ALL'; "
            "set it to 'EXCEPT_KEY' so that key and value columns do not overlap",
        ),
        (
            (Changes(), ["id"], "", ValueFields.ALL),
            "key.format: 'changes' carries updates and deletes; a key needs an insert-only format",
        ),
    ],
)
def test_a_key_that_cannot_be_is_explained(arguments, expected):
    table = Table((*columns(id="INT", k_x="INT"), Column("o", "BIGINT", metadata="offset")))
    assert [str(problem) for problem in key_problems(table, *arguments)] == [expected]


def test_castable_knows_what_arrow_can_cast():
    assert castable(pa.int32(), pa.string())
    assert castable(MILLIS, pa.timestamp("ms"))
    assert not castable(pa.map_(pa.string(), pa.binary()), pa.int32())
